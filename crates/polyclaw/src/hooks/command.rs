//! Runs a hook program: with the event on its standard input, its own environment and a timeout.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use polyclaw_domain::config::HookEvent;
use polyclaw_domain::sanitize;
use polyclaw_tool::AgentFolders;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::command::guard::GUARD_COMMAND;

const PASSED_ENVIRONMENT: [&str; 5] = ["HOME", "LANG", "LC_ALL", "TZ", "USER"];
/// Maximum bytes of a program's output in the log.
const MAX_LOGGED_OUTPUT_BYTES: u64 = 4 * 1024;

/// The working directory of programs: agents cannot write it, so nothing they wrote is loaded from there.
const START_FOLDER: &str = "/";

/// The exit code with which a program refuses the action.
const REFUSAL_EXIT_CODE: i32 = 2;

/// Why a hook program did not succeed.
pub enum HookFailure {
    /// The program refused, with its reason.
    Refused(String),
    /// The program could not be run, or failed.
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

/// The program of a hook, and the folders that it must not be loaded from.
#[derive(Clone)]
pub struct HookProgram {
    pub command: Vec<String>,
    pub timeout: Duration,
    pub agent_folders: AgentFolders,
}

impl HookProgram {
    /// Rejects a command that would run a file that an agent may have written, because hooks are not sandboxed.
    pub fn check_command(&self) -> Result<(), String> {
        match self.agent_folders.find_planted_word(&self.command, Path::new(START_FOLDER)) {
            Some(word) => {
                let word = sanitize::to_single_line(word, 200);
                Err(format!("{word:?} in its command is a path in a folder that agents can write"))
            }
            None => Ok(()),
        }
    }
}

pub async fn run(hook: &HookProgram, event: HookEvent, body: Vec<u8>) -> Result<(), String> {
    run_hook_program(hook, event, body).await.map_err(String::from)
}

pub async fn run_hook_program(
    hook: &HookProgram,
    event: HookEvent,
    body: Vec<u8>,
) -> Result<(), HookFailure> {
    let failed = |error: String| HookFailure::Failed(error);
    // Again: a link may lead elsewhere by now.
    hook.check_command().map_err(failed)?;
    let (program, arguments) =
        hook.command.split_first().ok_or_else(|| failed("no program is given".to_owned()))?;
    let timeout = hook.timeout;
    let passed_on = PASSED_ENVIRONMENT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    // The guard ends with the daemon, however that ends, and kills the program with all its descendants.
    let child = Command::new(GUARD_COMMAND[0])
        .args(&GUARD_COMMAND[1..])
        .arg(program)
        .args(arguments)
        .env_clear()
        .envs(passed_on)
        .env("PATH", hook.agent_folders.search_path())
        .current_dir(START_FOLDER)
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
            Err(failed(format!("{program}: killed, because it took longer than {} s", timeout.as_secs())))
        }
    }
}

async fn exchange_with_program(child: &mut Child, body: &[u8]) -> Result<(), HookFailure> {
    let mut text = Vec::new();
    let stdin = child.stdin.take();
    let stderr = child.stderr.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input does not need it.
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

/// Signals the guard when dropped, which kills the program with all its descendants. Does not signal after the guard
/// was reaped, because its process ID may have been reused.
struct GuardedChild(Child);

impl Drop for GuardedChild {
    fn drop(&mut self) {
        if let Some(guard) = self.0.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            let _ = kill_process(guard, Signal::TERM);
        }
    }
}
