//! The daemon's end of a worker: sends a call, and receives its progress, its requests and its outcome.

use std::path::Path;
use std::process::Stdio;
use std::task::{Context, Waker};

use polyclaw_domain::agent::SandboxSettings;
use polyclaw_domain::media;
use polyclaw_domain::tool::{ProgressSink, ToolOutcome, Toolbox};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use super::wire::{
    self, FETCH_METHOD, MAX_ANSWER_BYTES, PROGRESS_METHOD, RUN_METHOD, ToolRunParams, WorkerMessage,
};
use crate::error::{Error, Result};
use crate::http_fetch;
use crate::sandbox::{
    ProgramEnd, SandboxGrants, SandboxLauncher, SandboxProfile, SandboxedProgram, StartedProgram,
};

/// Extra limits for the worker itself, on top of its programs' limits: a program that exceeds its limits is killed
/// before the worker that supervises it.
const WORKER_MEMORY_MB: u32 = 512;
const EXTRA_WORKER_PROCESSES: u32 = 4;

pub struct WorkerHandle {
    started: StartedProgram,
    calls: u64,
}

/// The worker is unusable: it ended or violated the protocol.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WorkerCrash {
    /// The limit that its program exceeded, taking the worker with it. The value is the program's own limit.
    pub over: Option<ExceededLimit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    Memory(u64),
    Processes(u64),
}

impl WorkerCrash {
    const UNEXPLAINED: Self = Self { over: None };

    /// Interprets a line that is not a protocol message as a report of the end. A fork bomb can be so fast that the
    /// worker's supervisor sees it before the program's supervisor.
    fn from_line(line: &[u8]) -> Self {
        let over = match ProgramEnd::from_line(line) {
            Some(ProgramEnd::OverMemory(limit)) => {
                Some(ExceededLimit::Memory(limit.saturating_sub(WORKER_MEMORY_MB.into())))
            }
            Some(ProgramEnd::OverProcesses(limit)) => {
                Some(ExceededLimit::Processes(limit / u64::from(EXTRA_WORKER_PROCESSES)))
            }
            _ => None,
        };
        Self { over }
    }
}

impl WorkerHandle {
    pub async fn start(
        sandboxes: &SandboxLauncher,
        command: &[String],
        sandbox: &SandboxSettings,
        workspace: &Path,
    ) -> Result<Self> {
        let limits = sandbox.program_limits();
        let short = |limit: Option<u64>| limit.and_then(|limit| u32::try_from(limit).ok());
        let roomier = SandboxSettings {
            memory_mb: short(limits.memory_mb).map(|limit| limit.saturating_add(WORKER_MEMORY_MB)),
            processes: short(limits.processes).map(|limit| limit.saturating_mul(EXTRA_WORKER_PROCESSES)),
            ..sandbox.clone()
        };
        let program = SandboxedProgram {
            sandbox: &roomier,
            profile: SandboxProfile::Worker,
            workspace,
            folder: workspace,
            command: command.to_vec(),
            grants: SandboxGrants::default(),
        };
        Ok(Self { started: sandboxes.start(program, Stdio::null()).await?, calls: 0 })
    }

    pub fn call_count(&self) -> u64 {
        self.calls
    }

    pub fn pid(&self) -> Option<u32> {
        self.started.supervisor_pid()
    }

    /// Whether it still waits for a call. A worker that writes without being asked has ended.
    pub fn is_idle(&mut self) -> bool {
        let look = std::pin::pin!(self.started.lines.fill_buf());
        look.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Runs one call. After an error the worker cannot be used again.
    pub async fn run(
        &mut self,
        run: &ToolRunParams,
        tools: &dyn Toolbox,
        progress: ProgressSink<'_>,
    ) -> std::result::Result<ToolOutcome, WorkerCrash> {
        self.calls += 1;
        let id = self.calls;
        self.send_message(&WorkerMessage::request(id, RUN_METHOD, json!(run))).await?;
        loop {
            let line = wire::read_line(&mut self.started.lines, MAX_ANSWER_BYTES)
                .await
                .ok_or(WorkerCrash::UNEXPLAINED)?;
            let message = wire::parse_message(&line).ok_or_else(|| WorkerCrash::from_line(&line))?;
            match message.method.as_deref() {
                Some(PROGRESS_METHOD) => {
                    progress(message.params["text"].as_str().ok_or(WorkerCrash::UNEXPLAINED)?);
                }
                Some(FETCH_METHOD) => {
                    self.fetch_for_worker(message.id.ok_or(WorkerCrash::UNEXPLAINED)?, run, tools, progress)
                        .await?;
                }
                Some(_) => return Err(WorkerCrash::UNEXPLAINED),
                None if message.id == Some(id) => return parse_outcome(message.result, message.error),
                None => return Err(WorkerCrash::UNEXPLAINED),
            }
        }
    }

    /// Fetches a page for a worker without network. Uses the arguments of the call, not of the worker, and only if the
    /// call is a fetch.
    async fn fetch_for_worker(
        &mut self,
        id: u64,
        run: &ToolRunParams,
        tools: &dyn Toolbox,
        progress: ProgressSink<'_>,
    ) -> std::result::Result<(), WorkerCrash> {
        if run.call.name != http_fetch::TOOL_NAME {
            return Err(WorkerCrash::UNEXPLAINED);
        }
        let outcome = tools.run(&run.scope, &run.turn, &run.call, progress).await;
        self.send_message(&WorkerMessage::result(id, json!(outcome))).await
    }

    async fn send_message(&mut self, message: &WorkerMessage) -> std::result::Result<(), WorkerCrash> {
        let input = self.started.input.as_mut().ok_or(WorkerCrash::UNEXPLAINED)?;
        input.write_all(&message.to_line()).await.map_err(|_| WorkerCrash::UNEXPLAINED)
    }
}

fn parse_outcome(
    result: Option<Value>,
    error: Option<Value>,
) -> std::result::Result<ToolOutcome, WorkerCrash> {
    if let Some(error) = error {
        let why = error["message"].as_str().unwrap_or("no reason given");
        return Ok(Error::Refused(why.to_owned()).into());
    }
    let mut outcome: ToolOutcome = serde_json::from_value(result.ok_or(WorkerCrash::UNEXPLAINED)?)
        .map_err(|_| WorkerCrash::UNEXPLAINED)?;
    // Each image becomes a database row, and the worker may be compromised.
    outcome.images.truncate(media::MAX_IMAGES_PER_MESSAGE);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::media::Image;

    use super::*;

    #[test]
    fn worker_images_are_limited_per_message() {
        let image = Image::from_bytes(*b"GIF89a").unwrap();
        let images = vec![("a".to_owned(), image); media::MAX_IMAGES_PER_MESSAGE + 5];
        let reply = json!(ToolOutcome { images, ..ToolOutcome::ok("") });
        assert_eq!(parse_outcome(Some(reply), None).unwrap().images.len(), media::MAX_IMAGES_PER_MESSAGE);
    }

    #[test]
    fn worker_limit_crash_is_reported_with_program_limit() {
        for (line, over) in [
            (r#"{"ended":{"over_processes":1024}}"#, Some(ExceededLimit::Processes(256))),
            (r#"{"ended":{"over_memory":2560}}"#, Some(ExceededLimit::Memory(2048))),
            (r#"{"ended":{"signalled":9}}"#, None),
            ("rubbish", None),
        ] {
            assert_eq!(WorkerCrash::from_line(line.as_bytes()), WorkerCrash { over }, "{line}");
        }
    }
}
