//! Starts a daemon of this home that outlives the command.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::failure::{CommandFailure, FailureExit};
use crate::home::{DAEMON_START_TIMEOUT, Home, access_failure};

const START_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Starts the daemon and returns when it responds, or with the reason why it does not.
pub async fn start_daemon(context: &CommandContext) -> Result<(), CommandFailure> {
    context.home.create_missing()?;
    let mut child = spawn_detached(&context.home)?;
    let began = Instant::now();
    while began.elapsed() < DAEMON_START_TIMEOUT {
        // A new client each time: a daemon that has just started may have written another address.
        if ApiClient::new(context)?.is_up().await {
            return Ok(());
        }
        if let Ok(Some(_)) = child.try_wait() {
            return Err(start_failure(&context.home));
        }
        tokio::time::sleep(START_POLL_INTERVAL).await;
    }
    Err(start_failure(&context.home))
}

/// Spawns the daemon in its own process group, so that Ctrl-C in this terminal does not reach it.
fn spawn_detached(home: &Home) -> Result<Child, CommandFailure> {
    let path = home.log_file();
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let log = log.map_err(|error| access_failure(&path, &error))?;
    let own =
        std::env::current_exe().map_err(|error| CommandFailure::failed("no_program", error.to_string()))?;
    let started = Command::new(own)
        .arg("daemon")
        .env("POLYCLAW_HOME", home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn();
    started.map_err(|error| CommandFailure::failed("no_daemon", format!("cannot start a daemon: {error}")))
}

fn start_failure(home: &Home) -> CommandFailure {
    let log = std::fs::read_to_string(home.log_file()).unwrap_or_default();
    let text =
        log.lines().rev().find(|line| line.starts_with("error:")).unwrap_or("it did not respond in time");
    CommandFailure::new(FailureExit::Unavailable, "no_daemon", format!("the daemon did not start: {text}"))
        .hint(format!("see its log: {}", home.log_file().display()))
}
