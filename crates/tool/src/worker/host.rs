//! The daemon's end of one worker: a call goes out, its progress and questions come back, then its outcome.

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

/// A worker beside its programs needs memory of its own, and its limits are to be met after theirs: a program that
/// goes too far is ended, not the worker that looks after it.
const WORKER_MEMORY_MB: u32 = 512;
const EXTRA_WORKER_PROCESSES: u32 = 4;

pub struct WorkerHandle {
    started: StartedProgram,
    calls: u64,
}

/// The worker is of no use any more: it ended, or wrote what is not the protocol.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WorkerCrash {
    /// The limit that its program, and it with it, went over: the program's own.
    pub over: Option<ExceededLimit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    Memory(u64),
    Processes(u64),
}

impl WorkerCrash {
    const UNEXPLAINED: Self = Self { over: None };

    /// What a line that is no message says of the end. A bomb may be so fast that the supervisor of the worker sees it
    /// before that of the program does.
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

    /// Whether it still waits for a call: one that has something to say before it is asked has ended.
    pub fn is_idle(&mut self) -> bool {
        let look = std::pin::pin!(self.started.lines.fill_buf());
        look.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Runs one call. After a crash nothing more can be asked of it.
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

    /// What the worker has no network for. It is the call's own fetch or none: the arguments are not the worker's.
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
        let why = error["message"].as_str().unwrap_or("it gave no reason");
        return Ok(Error::Refused(why.to_owned()).into());
    }
    let mut outcome: ToolOutcome = serde_json::from_value(result.ok_or(WorkerCrash::UNEXPLAINED)?)
        .map_err(|_| WorkerCrash::UNEXPLAINED)?;
    // Each is a row, and who answers may have been taken over.
    outcome.images.truncate(media::MAX_IMAGES_PER_MESSAGE);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::media::Image;

    use super::*;

    #[test]
    fn a_worker_returns_no_more_images_than_a_message_has() {
        let image = Image::from_bytes(*b"GIF89a").unwrap();
        let images = vec![("a".to_owned(), image); media::MAX_IMAGES_PER_MESSAGE + 5];
        let reply = json!(ToolOutcome { images, ..ToolOutcome::ok("") });
        assert_eq!(parse_outcome(Some(reply), None).unwrap().images.len(), media::MAX_IMAGES_PER_MESSAGE);
    }

    #[test]
    fn the_end_by_a_limit_is_told_with_the_limit_of_the_program() {
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
