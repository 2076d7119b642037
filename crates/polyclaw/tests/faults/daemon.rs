//! A daemon of this build with its own home, started in the environment that a fault needs.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use polyclaw_testkit::model_server::ModelServer;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const TOKEN: &str = "fault-test";
/// Longer than any recovery takes.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The result of a call.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Answer {
    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    pub fn reply(&self) -> &str {
        self.body["reply"]["text"].as_str().unwrap_or_default()
    }
}

/// A config with the scripted model and whatever a test adds.
pub fn config(model: &ModelServer, rest: &str) -> String {
    format!(
        "[providers.scripted]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
         [agents.defaults]\nmodel = \"scripted/m\"\n{rest}\n",
        model.url()
    )
}

pub struct Daemon {
    child: Child,
    pub url: String,
    pub client: reqwest::Client,
    pub home: PathBuf,
    _folder: TempDir,
}

impl Daemon {
    /// Starts in an ordinary folder.
    pub async fn start(config: &str) -> Self {
        Self::start_with(config, |program, _| program).await
    }

    /// `surround` may wrap the daemon's command; it must exec into the same process.
    pub async fn start_with(config: &str, surround: impl FnOnce(Command, &Path) -> Command) -> Self {
        let mut daemon = Self::spawn(config, surround);
        daemon.wait_ready().await;
        daemon
    }

    /// The same, without waiting until it is ready.
    pub fn spawn(config: &str, surround: impl FnOnce(Command, &Path) -> Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("config.toml"), config).unwrap();
        let port = polyclaw_testkit::free_port();
        let mut program = Command::new(env!("CARGO_BIN_EXE_polyclaw"));
        program.args(["daemon", "--port", &port.to_string()]);
        let mut command = surround(program, &home);
        let log = OpenOptions::new().create(true).append(true).open(home.join("daemon.log")).unwrap();
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("POLYCLAW_HOME", &home)
            .env("POLYCLAW_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn().unwrap();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
        Self { child, url: format!("http://127.0.0.1:{port}"), client, home, _folder: folder }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The home as the daemon sees it, with its mounts.
    pub fn inside(&self) -> PathBuf {
        let path = self.home.strip_prefix("/").unwrap();
        Path::new("/proc").join(self.pid().to_string()).join("root").join(path)
    }

    /// Changes a soft limit of the running daemon; `None` lifts it.
    pub fn limit(&self, resource: Resource, soft: Option<u64>) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).unwrap());
        let unchanged = rustix::process::getrlimit(resource);
        let hard = unchanged.maximum;
        let wanted = Rlimit { current: soft.or(hard), maximum: hard };
        prlimit(pid, resource, wanted).unwrap();
    }

    pub fn assert_alive(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the daemon ended: {ended:?}\n{}", self.log());
    }

    /// Whether it ends on its own within this time.
    pub async fn ends_within(&mut self, limit: Duration) -> bool {
        let began = Instant::now();
        while began.elapsed() < limit {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    /// Its output.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.home.join("daemon.log")).unwrap_or_default()
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts another process on the same home.
    pub async fn start_again(&mut self) {
        let port = polyclaw_testkit::free_port();
        let log = OpenOptions::new().create(true).append(true).open(self.home.join("daemon.log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_polyclaw"));
        command
            .args(["daemon", "--port", &port.to_string()])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("POLYCLAW_HOME", &self.home)
            .env("POLYCLAW_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        self.child = command.spawn().unwrap();
        self.url = format!("http://127.0.0.1:{port}");
        self.wait_ready().await;
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.inside().join("daemon.log")).unwrap_or_default()
    }

    pub async fn wait_ready(&mut self) {
        let began = Instant::now();
        while self.ready().await != 200 {
            self.assert_alive();
            assert!(began.elapsed() < PATIENCE, "not ready after {PATIENCE:?}: {}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The status of the readiness probe; 0 without a response.
    pub async fn ready(&self) -> u16 {
        let asked = self.client.get(format!("{}/ready", self.url)).send().await;
        asked.map_or(0, |answer| answer.status().as_u16())
    }

    pub async fn get(&self, path: &str) -> Value {
        let asked = self.client.get(format!("{}{path}", self.url)).bearer_auth(TOKEN);
        asked.send().await.unwrap().json().await.unwrap()
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer, reqwest::Error> {
        let asked = self.client.post(format!("{}{path}", self.url)).bearer_auth(TOKEN).json(body);
        let answer = asked.send().await?;
        Ok(Answer { status: answer.status().as_u16(), body: answer.json().await? })
    }

    /// Sends a message in the session `agent:main:web:dm:<who>`; the text is also its idempotency key.
    pub async fn say(&self, who: &str, text: &str, wait: u64) -> Result<Answer, reqwest::Error> {
        let body = json!({ "text": text, "idempotency_key": text });
        self.post(&format!("/api/v1/sessions/{}/messages?wait={wait}", key(who)), &body).await
    }

    /// The stored messages of a conversation, as role and text.
    pub async fn transcript(&self, who: &str) -> Vec<(String, String)> {
        let found = self.get(&format!("/api/v1/sessions/{}/transcript?limit=1000", key(who))).await;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let messages = found["messages"].as_array().cloned().unwrap_or_default();
        messages.iter().map(|message| (text(&message["role"]), text(&message["text"]))).collect()
    }

    /// Asserts that a message is stored once and answered once.
    pub async fn assert_answered_once(&self, who: &str, text: &str, reply: &str) {
        let transcript = self.transcript(who).await;
        let times = |role: &str, wanted: &str| {
            transcript.iter().filter(|(from, output)| from == role && output == wanted).count()
        };
        assert_eq!((times("user", text), times("assistant", reply)), (1, 1), "{who} {text}: {transcript:?}");
    }
}

pub fn key(who: &str) -> String {
    format!("agent%3Amain%3Aweb%3Adm%3A{who}")
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
