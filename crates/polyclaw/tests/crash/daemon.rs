//! A daemon of this build with its own home, and client calls to it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use polyclaw_domain::channel::WebhookRequest;
use serde_json::{Value, json};

/// Longer than any healthy operation takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub const TOKEN: &str = "crash-test";

pub struct Home(pub PathBuf);

impl Home {
    pub fn new(folder: &Path, config: &str) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("config.toml"), config).unwrap();
        Self(folder.to_owned())
    }

    /// Starts the daemon; `kill_at` arms a kill point.
    pub async fn start(&self, kill_at: Option<&str>) -> Daemon {
        let port = polyclaw_testkit::free_port();
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.0.join("daemon.log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_polyclaw"));
        command
            .args(["daemon", "--port", &port.to_string()])
            .env("POLYCLAW_HOME", &self.0)
            .env("POLYCLAW_TOKEN", TOKEN)
            .env_remove("POLYCLAW_KILL_AT")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if let Some(kill_at) = kill_at {
            command.env("POLYCLAW_KILL_AT", kill_at);
        }
        let child = command.spawn().unwrap();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
        let mut daemon = Daemon { child, url: format!("http://127.0.0.1:{port}"), client };
        daemon.ready().await;
        daemon
    }
}

pub struct Daemon {
    child: Child,
    pub url: String,
    client: reqwest::Client,
}

impl Daemon {
    /// Waits until it serves, or has died at an earlier kill point.
    async fn ready(&mut self) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let answer = self.client.get(format!("{}/ready", self.url)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success())
                || self.child.try_wait().unwrap().is_some()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the daemon is not ready");
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, reqwest::Error> {
        let request = self.client.post(format!("{}{path}", self.url)).bearer_auth(TOKEN).json(body);
        request.send().await?.json().await
    }

    pub async fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}{path}", self.url)).bearer_auth(TOKEN);
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Posts a platform's call and returns whether it was accepted.
    pub async fn called(&self, channel: &str, call: &WebhookRequest) -> bool {
        let mut request = self.client.post(format!("{}/channels/{channel}/default", self.url));
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        request.body(call.body.clone()).send().await.is_ok_and(|answer| answer.status().is_success())
    }

    /// Sends a message like the web chat. A repeat with the same key is the same message.
    pub async fn say(&self, session: &str, text: &str, wait: u64) -> Result<Value, reqwest::Error> {
        let key = session.replace(':', "%3A");
        let body = json!({ "text": text, "idempotency_key": text });
        self.post(&format!("/api/v1/sessions/{key}/messages?wait={wait}"), &body).await
    }

    /// The same in a separate task.
    pub fn say_later(
        &self,
        session: String,
        text: String,
    ) -> tokio::task::JoinHandle<Result<Value, reqwest::Error>> {
        let (url, client) = (self.url.clone(), self.client.clone());
        tokio::spawn(async move {
            let key = session.replace(':', "%3A");
            let body = json!({ "text": text, "idempotency_key": text });
            let path = format!("{url}/api/v1/sessions/{key}/messages?wait=60");
            client.post(path).bearer_auth(TOKEN).json(&body).send().await?.json().await
        })
    }

    /// Whether it ends on its own within this time.
    pub async fn dies(&mut self, within: Duration) -> bool {
        let began = Instant::now();
        while began.elapsed() < within {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        false
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
