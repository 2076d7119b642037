//! A server that is a program: a process group of its own, an environment of its own, and its words to the log.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polyclaw_domain::plain;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::group::Group;
use super::settings::{Reach, Settings, handed_on};
use crate::error::{Error, Result};

/// After its input has ended, before it is killed.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// For what it said as it ended to be read.
const LAST_READ: Duration = Duration::from_millis(300);
const LONGEST_LINE: u64 = 8 * 1024;
/// Lines kept, to say why it ended.
const KEPT_LINES: usize = 3;

pub struct Process {
    child: Child,
    /// Kills the program and all it started when this is dropped.
    group: Group,
    said: Arc<Mutex<VecDeque<String>>>,
    log: JoinHandle<()>,
}

/// Starts the program. Its three streams are ours.
pub fn start(name: &str, settings: &Arc<Settings>) -> Result<(Process, ChildStdout, ChildStdin)> {
    let Reach::Program { guard, command, args, env, cwd } = &settings.reach else {
        return Err(Error::Server(name.to_owned(), "it is not a program".to_owned()));
    };
    let mut words = guard.iter().map(String::as_str).chain([command.as_str()]);
    let mut program = Command::new(words.next().unwrap_or_default());
    program
        .args(words)
        .args(args)
        .env_clear()
        .envs(handed_on())
        .envs(env)
        .current_dir(cwd)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let failed =
        |error: std::io::Error| Error::Server(name.to_owned(), format!("it can not be started: {error}"));
    let mut child = program.spawn().map_err(failed)?;
    let group = Group::led_by(child.id());
    let broken = || Error::Server(name.to_owned(), "it has no streams".to_owned());
    let stdout = child.stdout.take().ok_or_else(broken)?;
    let stdin = child.stdin.take().ok_or_else(broken)?;
    let stderr = child.stderr.take().ok_or_else(broken)?;
    let said = Arc::default();
    let log = tokio::spawn(log(name.to_owned(), Arc::clone(settings), stderr, Arc::clone(&said)));
    Ok((Process { child, group, said, log }, stdout, stdin))
}

impl Process {
    /// Waits a moment for it to end by itself, then ends it with all it started.
    pub async fn end(mut self) -> Option<String> {
        let status = tokio::time::timeout(LAST_WORDS, self.child.wait()).await;
        self.group.kill();
        let status = match status {
            Ok(status) => status.ok().map(|status| status.to_string()),
            Err(_) => {
                let _ = self.child.wait().await;
                None
            }
        };
        // Its last words are read to their end, unless somebody who left the group still holds the stream.
        let _ = tokio::time::timeout(LAST_READ, self.log).await;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let last = said.iter().map(String::as_str).collect::<Vec<_>>().join(" / ");
        match (status, last.is_empty()) {
            (Some(status), true) => Some(status),
            (Some(status), false) => Some(format!("{status}: {last}")),
            (None, _) => None,
        }
    }
}

/// What it says aside goes to the log, line by line, without its secrets.
async fn log(
    name: String,
    settings: Arc<Settings>,
    stderr: impl AsyncRead + Unpin,
    said: Arc<Mutex<VecDeque<String>>>,
) {
    let mut lines = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line without an end comes in pieces: memory stays bounded.
        match (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = plain::line(&settings.redact(&String::from_utf8_lossy(&line)), 500);
        if text.is_empty() {
            continue;
        }
        tracing::info!(mcp.server = name, "{text}");
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() == KEPT_LINES {
            said.pop_front();
        }
        said.push_back(text);
    }
}
