//! Processes of this build on a restored home, and the calls that a client makes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longer than a healthy machine needs, even when it is busy.
const TIMEOUT: Duration = Duration::from_secs(120);

pub struct Server {
    child: Child,
    home: PathBuf,
    url: String,
    token: String,
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
}

/// The binary without anything of the machine's own settings.
pub fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polyclaw"));
    command.args(args).env_clear().env("POLYCLAW_HOME", home).env("PATH", "/usr/bin:/bin");
    command.env("POLYCLAW_NO_PULL", "1").stdin(Stdio::null());
    command
}

impl Server {
    /// Starts a daemon or a control plane, and waits until `alive` answers.
    pub fn start(mut command: Command, port: u16, token_file: &Path, alive: &str) -> Self {
        let home = token_file.parent().unwrap().to_owned();
        let log = token_file.parent().unwrap().join("test.log");
        let child = command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        let server = Self {
            child: child.spawn().unwrap(),
            home,
            url: format!("http://127.0.0.1:{port}"),
            token: std::fs::read_to_string(token_file).unwrap().trim().to_owned(),
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            client: reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap(),
        };
        let is_alive = || {
            server.runtime.block_on(async {
                let answer = server.client.get(format!("{}{alive}", server.url)).send().await;
                answer.is_ok_and(|answer| answer.status().is_success())
            })
        };
        let began = Instant::now();
        while !is_alive() {
            let said = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(began.elapsed() < TIMEOUT, "the server does not answer: {}", said());
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// The folder of its token.
    pub fn home(&self) -> &Path {
        &self.home
    }

    #[track_caller]
    pub fn get_with_token(&self, path: &str, token: &str) -> Value {
        self.call(self.client.get(format!("{}{path}", self.url)), token)
    }

    /// Fails if the call is refused.
    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.get_with_token(path, &self.token)
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.call(self.client.post(format!("{}{path}", self.url)).json(body), &self.token)
    }

    #[track_caller]
    fn call(&self, request: reqwest::RequestBuilder, token: &str) -> Value {
        let answer = self.runtime.block_on(async {
            let answer = request.bearer_auth(token).send().await.unwrap();
            (answer.status(), answer.json().await.unwrap_or(json!(null)))
        });
        assert!(answer.0.is_success(), "{}: {}", answer.0, answer.1);
        answer.1
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the call returns something.
#[track_caller]
pub fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(began.elapsed() < TIMEOUT, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
