//! A server that is a program: confined or in a process group of its own, and its words to the log.

mod tail;

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polyclaw_domain::agent::SandboxSettings;
use polyclaw_domain::config::McpSandbox;
use polyclaw_domain::sanitize;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::group::Group;
use super::launch::{self, Launch};
use super::settings::{Reach, ServerProgram, Settings};
use crate::error::{Error, Result};
use crate::sandbox::{Profile, Program, Running, Sandboxes, last_words};
use tail::{Tail, Tailed};

/// After its input has ended, before it is killed.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// For what it said as it ended to be read.
const LAST_READ: Duration = Duration::from_millis(300);
const LONGEST_LINE: u64 = 8 * 1024;
/// Lines kept, to say why it ended.
const KEPT_LINES: usize = 3;
/// Of all processes of a confined server together.
const SERVER_MEMORY_MB: u32 = 4096;
const SERVER_PROCESSES: u32 = 512;

pub struct Process {
    kind: Kind,
    said: Arc<Mutex<VecDeque<String>>>,
    log: JoinHandle<()>,
}

enum Kind {
    Confined {
        running: Running,
        tail: Tail,
    },
    /// With the rights of the daemon.
    Guarded {
        child: Child,
        /// Kills the program and all it started when this is dropped.
        group: Group,
    },
}

/// Both directions of the protocol.
pub struct Streams {
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
}

/// Starts the program. Its streams are ours.
pub async fn start(name: &str, settings: &Arc<Settings>) -> Result<(Process, Streams)> {
    let (kind, streams, stderr) = begin(settings)
        .await
        .map_err(|why| Error::Server(name.to_owned(), format!("it can not be started: {why}")))?;
    let said = Arc::default();
    let log = tokio::spawn(log(name.to_owned(), Arc::clone(settings), stderr, Arc::clone(&said)));
    Ok((Process { kind, said, log }, streams))
}

async fn begin(settings: &Settings) -> std::result::Result<Begun, String> {
    let Reach::Program(program) = &settings.reach else { return Err("it is not a program".to_owned()) };
    let launch = launch::prepare(program)?;
    let begun = match program.sandbox {
        McpSandbox::Confined => confined(program, launch).await,
        McpSandbox::Off => guarded(program, launch).map_err(Error::Command),
    };
    begun.map_err(reason)
}

fn reason(error: Error) -> String {
    match error {
        Error::Command(error) => error.to_string(),
        Error::Sandbox(why) | Error::NoWalls(why) => format!(
            "it can not be confined ({why}). sandbox = \"off\" in its section starts it with the rights of the instance"
        ),
        other => other.to_string(),
    }
}

type Begun = (Kind, Streams, Box<dyn AsyncRead + Send + Unpin>);

async fn confined(program: &ServerProgram, launch: Launch) -> Result<Begun> {
    let sandbox = SandboxSettings {
        memory_mb: Some(SERVER_MEMORY_MB),
        processes: Some(SERVER_PROCESSES),
        listen: true,
        ..SandboxSettings::default()
    };
    let command = std::iter::once(&program.command).chain(&program.args).cloned().collect();
    let start = Program {
        sandbox: &sandbox,
        profile: Profile::Server,
        workspace: &launch.folder,
        folder: &launch.cwd,
        command,
        grants: launch.grants,
    };
    let (reader, writer) = std::io::pipe().map_err(Error::Command)?;
    let stderr = pipe::Receiver::from_owned_fd(reader.into()).map_err(Error::Command)?;
    let sandboxes = Sandboxes::new(program.host.sandbox.clone());
    let started = sandboxes.start(start, Stdio::from(writer)).await?;
    let input = started.input.ok_or(Error::Broken)?;
    let tail = Tail::default();
    let output = Box::new(Tailed::new(started.lines, tail.clone()));
    let kind = Kind::Confined { running: started.running, tail };
    Ok((kind, Streams { output, input: Box::new(input) }, Box::new(stderr)))
}

fn guarded(program: &ServerProgram, launch: Launch) -> std::io::Result<Begun> {
    let mut words = program.host.guard.iter().map(String::as_str).chain([program.command.as_str()]);
    let mut command = Command::new(words.next().unwrap_or_default());
    command
        .args(words)
        .args(&program.args)
        .env_clear()
        .envs(launch.grants.environment.unwrap_or_default())
        .current_dir::<&Path>(&launch.cwd)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let group = Group::led_by(child.id());
    let broken = || std::io::Error::other("it has no streams");
    let output = Box::new(child.stdout.take().ok_or_else(broken)?);
    let input = Box::new(child.stdin.take().ok_or_else(broken)?);
    let stderr = Box::new(child.stderr.take().ok_or_else(broken)?);
    Ok((Kind::Guarded { child, group }, Streams { output, input }, stderr))
}

impl Kind {
    /// Waits a moment for it to end by itself, then ends it with all it started. Says how it ended.
    async fn end(&mut self) -> Option<String> {
        match self {
            Self::Confined { running, tail } => {
                // Its supervisor gives it the moment, and ends it.
                running.reap().await;
                last_words(&tail.bytes()).map(|words| sanitize::to_single_line(&words, 300))
            }
            Self::Guarded { child, group } => {
                let status = tokio::time::timeout(LAST_WORDS, child.wait()).await;
                group.kill();
                if status.is_err() {
                    let _ = child.wait().await;
                }
                status.ok()?.ok().map(|status| status.to_string())
            }
        }
    }
}

impl Process {
    /// Ends it, if it has not ended yet. Its streams are closed before this is called.
    pub async fn end(mut self) -> Option<String> {
        let how = self.kind.end().await?;
        // Its last words are read to their end, unless somebody who left the group still holds the stream.
        let _ = tokio::time::timeout(LAST_READ, self.log).await;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let last = said.iter().map(String::as_str).collect::<Vec<_>>().join(" / ");
        Some(if last.is_empty() { how } else { format!("{how}: {last}") })
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
        let text = sanitize::to_single_line(&settings.redact(&String::from_utf8_lossy(&line)), 500);
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
