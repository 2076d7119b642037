//! A server program: confined or in a process group of its own, with its stderr logged.

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

use super::group::ProcessGroup;
use super::launch::{self, ServerLaunch};
use super::settings::{McpSettings, McpTransport, ServerProgram};
use crate::error::{Error, Result};
use crate::sandbox::{RunningSandbox, SandboxLauncher, SandboxProfile, SandboxedProgram, end_from_tail};
use tail::{OutputTail, TailReader};

/// Time to exit after its input is closed, before it is killed.
const EXIT_GRACE: Duration = Duration::from_secs(2);
/// Timeout of reading its last output.
const FINAL_READ_TIMEOUT: Duration = Duration::from_millis(300);
const MAX_LOG_LINE_BYTES: u64 = 8 * 1024;
/// Last lines kept to explain why it ended.
const RETAINED_LOG_LINES: usize = 3;
/// Limits for all processes of a confined server together.
const MAX_SERVER_MEMORY_MB: u32 = 4096;
const MAX_SERVER_PROCESSES: u32 = 512;

pub struct ServerProcess {
    kind: ProcessKind,
    recent_lines: Arc<Mutex<VecDeque<String>>>,
    log: JoinHandle<()>,
}

enum ProcessKind {
    Confined {
        running: RunningSandbox,
        tail: OutputTail,
    },
    /// Runs with the rights of the daemon.
    Guarded {
        child: Child,
        /// Kills the program and its children on drop.
        group: ProcessGroup,
    },
}

/// Both directions of the protocol.
pub struct ServerStreams {
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
}

/// Starts the program and returns its protocol streams.
pub async fn start(name: &str, settings: &Arc<McpSettings>) -> Result<(ServerProcess, ServerStreams)> {
    let (kind, streams, stderr) = start_program(settings)
        .await
        .map_err(|why| Error::Server(name.to_owned(), format!("cannot start: {why}")))?;
    let texts = Arc::default();
    let log = tokio::spawn(log_stderr(name.to_owned(), Arc::clone(settings), stderr, Arc::clone(&texts)));
    Ok((ServerProcess { kind, recent_lines: texts, log }, streams))
}

async fn start_program(settings: &McpSettings) -> std::result::Result<SpawnedServer, String> {
    let McpTransport::Program(program) = &settings.transport else {
        return Err("the server is not a program".to_owned());
    };
    let launch = launch::prepare_launch(program)?;
    let result = match program.sandbox {
        McpSandbox::Confined => start_confined(program, launch).await,
        McpSandbox::Off => start_guarded(program, launch).map_err(Error::Command),
    };
    result.map_err(start_failure_reason)
}

fn start_failure_reason(error: Error) -> String {
    match error {
        Error::Command(error) => error.to_string(),
        Error::Sandbox(why) | Error::NoNamespaces(why) => format!(
            "it cannot be sandboxed ({why}). sandbox = \"off\" in its section starts it with the permissions of the \
             instance"
        ),
        other => other.to_string(),
    }
}

type SpawnedServer = (ProcessKind, ServerStreams, Box<dyn AsyncRead + Send + Unpin>);

async fn start_confined(program: &ServerProgram, launch: ServerLaunch) -> Result<SpawnedServer> {
    let sandbox = SandboxSettings {
        memory_mb: Some(MAX_SERVER_MEMORY_MB),
        processes: Some(MAX_SERVER_PROCESSES),
        listen: true,
        ..SandboxSettings::default()
    };
    let command = std::iter::once(&program.command).chain(&program.args).cloned().collect();
    let start = SandboxedProgram {
        sandbox: &sandbox,
        profile: SandboxProfile::Server,
        workspace: &launch.folder,
        folder: &launch.cwd,
        command,
        grants: launch.grants,
    };
    let (reader, writer) = std::io::pipe().map_err(Error::Command)?;
    let stderr = pipe::Receiver::from_owned_fd(reader.into()).map_err(Error::Command)?;
    let sandboxes = SandboxLauncher::new(program.host.sandbox.clone());
    let started = sandboxes.start(start, Stdio::from(writer)).await?;
    let input = started.input.ok_or(Error::Broken)?;
    let tail = OutputTail::default();
    let output = Box::new(TailReader::new(started.lines, tail.clone()));
    let kind = ProcessKind::Confined { running: started.running, tail };
    Ok((kind, ServerStreams { output, input: Box::new(input) }, Box::new(stderr)))
}

fn start_guarded(program: &ServerProgram, launch: ServerLaunch) -> std::io::Result<SpawnedServer> {
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
    let group = ProcessGroup::led_by(child.id());
    let broken = || std::io::Error::other("it has no standard streams");
    let output = Box::new(child.stdout.take().ok_or_else(broken)?);
    let input = Box::new(child.stdin.take().ok_or_else(broken)?);
    let stderr = Box::new(child.stderr.take().ok_or_else(broken)?);
    Ok((ProcessKind::Guarded { child, group }, ServerStreams { output, input }, stderr))
}

impl ProcessKind {
    /// Gives it a moment to exit, then ends it with everything it started. Returns how it ended.
    async fn shut_down(&mut self) -> Option<String> {
        match self {
            Self::Confined { running, tail } => {
                // Its supervisor waits for it and then ends it.
                running.reap().await;
                end_from_tail(&tail.bytes()).map(|words| sanitize::to_single_line(&words, 300))
            }
            Self::Guarded { child, group } => {
                let status = tokio::time::timeout(EXIT_GRACE, child.wait()).await;
                group.kill();
                if status.is_err() {
                    let _ = child.wait().await;
                }
                status.ok()?.ok().map(|status| status.to_string())
            }
        }
    }
}

impl ServerProcess {
    /// Ends the program if it is still running. Its streams must be closed before.
    pub async fn shut_down(mut self) -> Option<String> {
        let how = self.kind.shut_down().await?;
        // The last output is read to its end, unless a process that left the group still holds the stream.
        let _ = tokio::time::timeout(FINAL_READ_TIMEOUT, self.log).await;
        let texts = self.recent_lines.lock().unwrap_or_else(PoisonError::into_inner);
        let last = texts.iter().map(String::as_str).collect::<Vec<_>>().join(" / ");
        Some(if last.is_empty() { how } else { format!("{how}: {last}") })
    }
}

/// Logs stderr line by line, with secrets redacted.
async fn log_stderr(
    name: String,
    settings: Arc<McpSettings>,
    stderr: impl AsyncRead + Unpin,
    texts: Arc<Mutex<VecDeque<String>>>,
) {
    let mut lines = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        // An endless line is read in pieces, so memory stays bounded.
        match (&mut lines).take(MAX_LOG_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = sanitize::to_single_line(&settings.redact(&String::from_utf8_lossy(&line)), 500);
        if text.is_empty() {
            continue;
        }
        tracing::info!(mcp.server = name, "{text}");
        let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.len() == RETAINED_LOG_LINES {
            texts.pop_front();
        }
        texts.push_back(text);
    }
}
