//! A control plane on its own home. It ends with the test, together with everything it started.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub use polyclaw_testkit::free_port;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than any healthy operation takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub struct Plane {
    pub dir: TempDir,
    pub port: u16,
    /// Environment of the server, besides the defaults.
    pub environment: Vec<(&'static str, String)>,
    /// The user of the server process, if not that of the test.
    user: Option<u32>,
    server: Option<Child>,
}

/// A response: its status, and its body as JSON, else as text.
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub etag: Option<String>,
    pub replayed: bool,
}

impl Answer {
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{}: {}", self.status, self.body);
        self.body
    }

    /// The status and the code of an error.
    #[track_caller]
    pub fn refusal(&self) -> (u16, &str) {
        (
            self.status,
            self.body["error"]["code"].as_str().unwrap_or_else(|| panic!("no error: {}", self.body)),
        )
    }
}

fn http() -> &'static (tokio::runtime::Runtime, reqwest::Client) {
    static HTTP: OnceLock<(tokio::runtime::Runtime, reqwest::Client)> = OnceLock::new();
    HTTP.get_or_init(|| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        (runtime, client.build().unwrap())
    })
}

pub fn wait<T>(future: impl Future<Output = T>) -> T {
    http().0.block_on(future)
}

impl Plane {
    /// A control plane that responds.
    #[track_caller]
    pub fn new() -> Self {
        let mut plane = Self::idle();
        plane.serve();
        plane
    }

    /// A home without running processes.
    pub fn idle() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            port: free_port(),
            environment: Vec::new(),
            user: None,
            server: None,
        }
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn token(&self) -> String {
        fs::read_to_string(self.home().join("cp/token")).unwrap().trim().to_owned()
    }

    pub fn folder(&self, instance: &Value) -> PathBuf {
        self.home().join("cp/instances").join(instance["id"].as_str().unwrap())
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = match self.user {
            Some(_) => Command::new(self.dir.path().join("polyclaw")),
            None => Command::new(env!("CARGO_BIN_EXE_polyclaw")),
        };
        command
            .args(args)
            .env_clear()
            .env("POLYCLAW_HOME", self.home())
            .env("POLYCLAW_CP_PORT", self.port.to_string())
            .env("PATH", "/usr/bin:/bin")
            .env("POLYCLAW_NO_PULL", "1")
            .stdin(Stdio::null());
        command
    }

    /// Returns the exit code and the JSON output of a command.
    pub fn run(&self, args: &[&str]) -> (i32, Value) {
        let mut command = self.command(&[args, &["--json"]].concat());
        if let Some(user) = self.user {
            command.uid(user).gid(user).current_dir("/");
        }
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let value = serde_json::from_str(&text);
        let value = value.unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
        (output.status.code().unwrap_or(-1), value)
    }

    #[track_caller]
    pub fn serve(&mut self) {
        self.serve_with(&["control"]);
    }

    /// Runs as a user other than root, whoever runs the test.
    #[track_caller]
    pub fn serve_as_nobody(&mut self) {
        const NOBODY: u32 = 65_534;
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(self.dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            // The build may be in a folder that the user `nobody` cannot read.
            fs::copy(env!("CARGO_BIN_EXE_polyclaw"), self.dir.path().join("polyclaw")).unwrap();
            self.user = Some(NOBODY);
        }
        self.serve();
    }

    /// Gives the test's files to the user of the server.
    pub fn give_to_user(&self, folder: &std::path::Path) {
        if let Some(user) = self.user {
            let owner = format!("{user}:{user}");
            let given = Command::new("chown").args(["-R", &owner]).arg(folder).status().unwrap();
            assert!(given.success());
        }
    }

    #[track_caller]
    pub fn serve_with(&mut self, args: &[&str]) {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.dir.path().join("server.log"))
            .unwrap();
        let mut command = self.command(args);
        command.envs(self.environment.iter().map(|(name, value)| (*name, value)));
        if let Some(user) = self.user {
            command.uid(user).gid(user).current_dir("/");
        }
        self.server = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let log = self.dir.path().join("server.log");
        until(&|| format!("the control plane responds: {}", fs::read_to_string(&log).unwrap()), || {
            self.get("/version").status == 200
        });
    }

    pub fn pid(&self) -> u32 {
        self.server.as_ref().unwrap().id()
    }

    /// Kills it like `kill -9` or a power cut.
    pub fn kill(&mut self) {
        let mut server = self.server.take().unwrap();
        server.kill().unwrap();
        server.wait().unwrap();
    }

    /// Returns how it ended after a signal, and how long that took.
    #[track_caller]
    pub fn end(&mut self) -> (bool, Duration) {
        let mut server = self.server.take().unwrap();
        signal("TERM", i64::from(server.id()));
        let began = Instant::now();
        let mut status = None;
        until(&|| "the server ends".to_owned(), || {
            status = server.try_wait().unwrap();
            status.is_some()
        });
        (status.unwrap().success(), began.elapsed())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.call("GET", path, None, &[])
    }

    pub fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, Some(body), &[])
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, None, &[])
    }

    pub fn call(&self, method: &str, path: &str, body: Option<Value>, headers: &[(&str, &str)]) -> Answer {
        wait(self.calling(method, path, body, headers))
    }

    /// Uses the operator's token, unless the headers contain another.
    pub async fn calling(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let place = if path.starts_with("/ws") { String::new() } else { "/api".to_owned() };
        let mut request = http().1.request(method.parse().unwrap(), format!("{}{place}{path}", self.url()));
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            let token = fs::read_to_string(self.home().join("cp/token")).unwrap_or_default();
            request = request.bearer_auth(token.trim());
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let Ok(response) = request.send().await else {
            return Answer { status: 0, body: json!(null), etag: None, replayed: false };
        };
        let header = |name: &str| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let (status, etag) = (response.status().as_u16(), header("etag"));
        let replayed = header("idempotency-replayed").is_some();
        let text = response.text().await.unwrap_or_default();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer { status, body, etag, replayed }
    }

    /// Creates an instance with its own port.
    #[track_caller]
    pub fn create(&self, name: &str) -> Value {
        self.post("/instances", json!({ "name": name, "port": free_port() })).ok()
    }

    #[track_caller]
    pub fn start(&self, name: &str) -> Value {
        self.post(&format!("/instances/{name}/start"), json!({})).ok()
    }

    #[track_caller]
    pub fn started(&self, name: &str) -> Value {
        self.create(name);
        self.start(name)
    }

    pub fn status(&self, name: &str) -> String {
        self.get(&format!("/instances/{name}")).body["status"].as_str().unwrap_or("?").to_owned()
    }

    #[track_caller]
    pub fn until_status(&self, name: &str, status: &str) {
        until(&|| format!("{name} is {status}: {}", self.get(&format!("/instances/{name}")).body), || {
            self.status(name) == status
        });
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
        // Instances outlive their control plane, but not the test.
        let instances = fs::read_dir(self.home().join("cp/instances")).into_iter().flatten().flatten();
        for folder in instances.map(|entry| entry.path()).chain([self.home()]) {
            for pid in processes_of(&folder) {
                let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
            }
        }
    }
}

/// Processes of daemons with this home.
pub fn processes_of(home: &std::path::Path) -> Vec<i64> {
    let entry = format!("POLYCLAW_HOME={}\0", home.display());
    let is_ours = |pid: &i64| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(entry.len()).any(|window| window == entry.as_bytes())
    };
    let numbers =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(is_ours).collect()
}

/// Writes a file and creates its parent folders.
pub fn put(folder: &std::path::Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn signal(name: &str, pid: i64) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success());
    // The threads of a process stop one after the other.
    if name == "STOP" {
        until(&|| format!("{pid} is stopped"), || threads(pid).iter().all(|stat| stat.contains(") T ")));
    }
}

fn threads(pid: i64) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("stat")).ok()).collect()
}

pub fn is_alive(pid: i64) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[track_caller]
pub fn until(what: &dyn Fn() -> String, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "waited too long until {}", what());
        std::thread::sleep(Duration::from_millis(25));
    }
}
