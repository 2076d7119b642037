//! A home in a temporary folder, the binary that uses it, and a daemon that ends with its test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use polyclaw_testkit::model_server::ModelServer;
use serde_json::Value;
use tempfile::TempDir;

/// Longer than any healthy operation takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub struct Home {
    dir: TempDir,
    pub port: u16,
}

pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        let value: Value = serde_json::from_str(&self.stdout).expect("JSON on stdout");
        value["ok"].clone()
    }

    /// The exit code and the `code` of the error.
    #[track_caller]
    pub fn error(&self) -> (i32, String) {
        let value: Value = serde_json::from_str(&self.stdout).expect("JSON on stdout");
        (self.code, value["error"]["code"].as_str().expect("an error with a code").to_owned())
    }
}

impl Home {
    pub fn new() -> Self {
        Self::in_folder(&std::env::temp_dir())
    }

    pub fn in_folder(folder: &Path) -> Self {
        let port = polyclaw_testkit::free_port();
        Self { dir: tempfile::tempdir_in(folder).unwrap(), port }
    }

    /// A home whose model is the scripted one.
    pub fn with_model(model: &ModelServer) -> Self {
        Self::with_model_and(model, "")
    }

    /// The same with additional config.
    pub fn with_model_and(model: &ModelServer, rest: &str) -> Self {
        Self::new().served_by(model, rest)
    }

    pub fn served_by(self, model: &ModelServer, rest: &str) -> Self {
        let home = self;
        home.write_config(&format!(
            "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"demo\"]\n{rest}",
            model.url()
        ));
        home
    }

    /// The program creates the folder, as on a real machine.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The home of an instance that was started once.
    pub fn token(&self) -> String {
        std::fs::read_to_string(self.path().join("token")).unwrap().trim().to_owned()
    }

    pub fn write_config(&self, rest: &str) {
        fs::create_dir_all(self.path()).unwrap();
        let text = format!("schema = 1\n[gateway]\nport = {}\n{rest}", self.port);
        fs::write(self.path().join("config.toml"), text).unwrap();
    }

    pub fn command(&self, args: &[&str]) -> Command {
        command(&self.path(), args)
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        ran(self.command(args))
    }

    /// Starts a daemon and waits until it responds.
    #[track_caller]
    pub fn daemon(&self) -> Daemon {
        self.daemon_with(&[])
    }

    #[track_caller]
    pub fn daemon_with(&self, env: &[(&str, &str)]) -> Daemon {
        let mut command = self.command(&["daemon", "--port", &self.port.to_string()]);
        let child =
            command.envs(env.iter().copied()).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let daemon = Daemon { child };
        until("the daemon responds", || self.run(&["status", "--json"]).code == 0);
        daemon
    }

    /// Every stored message of a conversation, as role and text.
    pub fn transcript(&self, session: &str) -> Vec<(String, String)> {
        let exported = self.run(&["sessions", "export", session]);
        let message = |line: &str| {
            let message: Value = serde_json::from_str(line).unwrap();
            (message["role"].as_str().unwrap().to_owned(), message["text"].as_str().unwrap().to_owned())
        };
        exported.stdout.lines().map(message).collect()
    }
}

/// Runs the program without the machine's own settings.
pub fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polyclaw"));
    command
        .args(args)
        .env_clear()
        .env("POLYCLAW_HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("POLYCLAW_NO_PULL", "1")
        .stdin(Stdio::null());
    command
}

pub fn ran(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub struct Daemon {
    child: Child,
}

impl Daemon {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Kills it like `kill -9` or a power cut.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the daemon ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
