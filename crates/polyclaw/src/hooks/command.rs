//! A hook that is a program: the event on its standard input, an environment of its own, and an end in time.

use std::process::Stdio;
use std::time::Duration;

use polyclaw_domain::config::HookEvent;
use polyclaw_domain::sanitize;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::command::guard::GUARD_COMMAND;

const PASSED_ENVIRONMENT: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER"];
/// What it says is worth this many bytes of the log.
const MAX_LOGGED_OUTPUT_BYTES: u64 = 4 * 1024;

/// The exit code by which a program refuses what it is asked about.
const REFUSAL_EXIT_CODE: i32 = 2;

/// How a program that was asked did not say yes.
pub enum HookFailure {
    /// It says no, and why.
    Refused(String),
    /// It could not be asked, or broke.
    Failed(String),
}

impl From<HookFailure> for String {
    fn from(refused: HookFailure) -> Self {
        match refused {
            HookFailure::Refused(why) => {
                format!("exit status: {REFUSAL_EXIT_CODE}: {}", sanitize::to_single_line(&why, 500))
            }
            HookFailure::Failed(error) => error,
        }
    }
}

pub async fn run(
    command: &[String],
    event: HookEvent,
    body: Vec<u8>,
    timeout: Duration,
) -> Result<(), String> {
    run_hook_program(command, event, body, timeout).await.map_err(String::from)
}

pub async fn run_hook_program(
    command: &[String],
    event: HookEvent,
    body: Vec<u8>,
    timeout: Duration,
) -> Result<(), HookFailure> {
    let failed = |error: String| HookFailure::Failed(error);
    let (program, arguments) =
        command.split_first().ok_or_else(|| failed("there is no program".to_owned()))?;
    let passed_on = PASSED_ENVIRONMENT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    // The guard dies with the daemon, however that ends, and takes the program and all it started along.
    let child = Command::new(GUARD_COMMAND[0])
        .args(&GUARD_COMMAND[1..])
        .arg(program)
        .args(arguments)
        .env_clear()
        .envs(passed_on)
        .env("POLYCLAW_EVENT", event.as_str())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("{program}: {error}")))?;
    let mut guard = GuardedChild(child);
    match tokio::time::timeout(timeout, exchange_with_program(&mut guard.0, &body)).await {
        Ok(ended) => ended,
        Err(_) => {
            Err(failed(format!("{program}: ended, because it took longer than {} s", timeout.as_secs())))
        }
    }
}

async fn exchange_with_program(child: &mut Child, body: &[u8]) -> Result<(), HookFailure> {
    let mut text = Vec::new();
    let stdin = child.stdin.take();
    let stderr = child.stderr.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            // One that does not read is one that does not care.
            let _ = stdin.write_all(body).await;
        }
    };
    let read = async {
        if let Some(stderr) = stderr {
            let _ = stderr.take(MAX_LOGGED_OUTPUT_BYTES).read_to_end(&mut text).await;
        }
    };
    let ((), (), status) = tokio::join!(write, read, child.wait());
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) if status.code() == Some(REFUSAL_EXIT_CODE) => {
            Err(HookFailure::Refused(sanitize::limit_block(&String::from_utf8_lossy(&text), 2_000)))
        }
        Ok(status) => {
            let text = sanitize::to_single_line(&String::from_utf8_lossy(&text), 500);
            Err(HookFailure::Failed(format!("{status}: {text}")))
        }
        Err(error) => Err(HookFailure::Failed(error.to_string())),
    }
}

/// Tells the guard when it is dropped, which ends the program and all that it started. Of one that has ended nobody is
/// told: its number may be another's by now.
struct GuardedChild(Child);

impl Drop for GuardedChild {
    fn drop(&mut self) {
        if let Some(guard) = self.0.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            let _ = kill_process(guard, Signal::TERM);
        }
    }
}
