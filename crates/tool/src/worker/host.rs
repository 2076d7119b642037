//! The daemon's end of one worker: a call goes out, its progress and questions come back, then its outcome.

use std::path::Path;
use std::process::Stdio;
use std::task::{Context, Waker};

use polyclaw_domain::agent::SandboxSettings;
use polyclaw_domain::media;
use polyclaw_domain::tool::{ProgressSink, ToolOutcome, Toolbox};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use super::wire::{self, FETCH, LONGEST_ANSWER, Message, PROGRESS, RUN, Run};
use crate::error::{Error, Result};
use crate::http_fetch;
use crate::sandbox::{End, Grants, Profile, Program, Sandboxes, Started};

/// A worker beside its programs needs memory of its own, and its limits are to be met after theirs: a program that
/// goes too far is ended, not the worker that looks after it.
const OWN_MEMORY_MB: u32 = 512;
const MORE_PROCESSES: u32 = 4;

pub struct Host {
    started: Started,
    calls: u64,
}

/// The worker is of no use any more: it ended, or wrote what is not the protocol.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Crash {
    /// The limit that its program, and it with it, went over: the program's own.
    pub over: Option<Over>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Memory(u64),
    Processes(u64),
}

impl Crash {
    const PLAIN: Self = Self { over: None };

    /// What a line that is no message says of the end. A bomb may be so fast that the supervisor of the worker sees it
    /// before that of the program does.
    fn of(line: &[u8]) -> Self {
        let over = match End::said(line) {
            Some(End::OverMemory(limit)) => Some(Over::Memory(limit.saturating_sub(OWN_MEMORY_MB.into()))),
            Some(End::OverProcesses(limit)) => Some(Over::Processes(limit / u64::from(MORE_PROCESSES))),
            _ => None,
        };
        Self { over }
    }
}

impl Host {
    pub async fn start(
        sandboxes: &Sandboxes,
        command: &[String],
        sandbox: &SandboxSettings,
        workspace: &Path,
    ) -> Result<Self> {
        let limits = sandbox.program_limits();
        let short = |limit: Option<u64>| limit.and_then(|limit| u32::try_from(limit).ok());
        let roomier = SandboxSettings {
            memory_mb: short(limits.memory_mb).map(|limit| limit.saturating_add(OWN_MEMORY_MB)),
            processes: short(limits.processes).map(|limit| limit.saturating_mul(MORE_PROCESSES)),
            ..sandbox.clone()
        };
        let program = Program {
            sandbox: &roomier,
            profile: Profile::Worker,
            workspace,
            folder: workspace,
            command: command.to_vec(),
            grants: Grants::default(),
        };
        Ok(Self { started: sandboxes.start(program, Stdio::null()).await?, calls: 0 })
    }

    pub fn calls(&self) -> u64 {
        self.calls
    }

    pub fn pid(&self) -> Option<u32> {
        self.started.supervisor()
    }

    /// Whether it still waits for a call: one that has something to say before it is asked has ended.
    pub fn is_waiting(&mut self) -> bool {
        let look = std::pin::pin!(self.started.lines.fill_buf());
        look.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Runs one call. After a crash nothing more can be asked of it.
    pub async fn run(
        &mut self,
        run: &Run,
        tools: &dyn Toolbox,
        progress: ProgressSink<'_>,
    ) -> std::result::Result<ToolOutcome, Crash> {
        self.calls += 1;
        let id = self.calls;
        self.send(&Message::request(id, RUN, json!(run))).await?;
        loop {
            let line = wire::line(&mut self.started.lines, LONGEST_ANSWER).await.ok_or(Crash::PLAIN)?;
            let message = wire::message(&line).ok_or_else(|| Crash::of(&line))?;
            match message.method.as_deref() {
                Some(PROGRESS) => progress(message.params["text"].as_str().ok_or(Crash::PLAIN)?),
                Some(FETCH) => self.fetch(message.id.ok_or(Crash::PLAIN)?, run, tools, progress).await?,
                Some(_) => return Err(Crash::PLAIN),
                None if message.id == Some(id) => return outcome(message.result, message.error),
                None => return Err(Crash::PLAIN),
            }
        }
    }

    /// What the worker has no network for. It is the call's own fetch or none: the arguments are not the worker's.
    async fn fetch(
        &mut self,
        id: u64,
        run: &Run,
        tools: &dyn Toolbox,
        progress: ProgressSink<'_>,
    ) -> std::result::Result<(), Crash> {
        if run.call.name != http_fetch::NAME {
            return Err(Crash::PLAIN);
        }
        let outcome = tools.run(&run.scope, &run.turn, &run.call, progress).await;
        self.send(&Message::result(id, json!(outcome))).await
    }

    async fn send(&mut self, message: &Message) -> std::result::Result<(), Crash> {
        let input = self.started.input.as_mut().ok_or(Crash::PLAIN)?;
        input.write_all(&message.line()).await.map_err(|_| Crash::PLAIN)
    }
}

fn outcome(result: Option<Value>, error: Option<Value>) -> std::result::Result<ToolOutcome, Crash> {
    if let Some(error) = error {
        let why = error["message"].as_str().unwrap_or("it gave no reason");
        return Ok(Error::Refused(why.to_owned()).into());
    }
    let mut outcome: ToolOutcome =
        serde_json::from_value(result.ok_or(Crash::PLAIN)?).map_err(|_| Crash::PLAIN)?;
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
        let said = json!(ToolOutcome { images, ..ToolOutcome::ok("") });
        assert_eq!(outcome(Some(said), None).unwrap().images.len(), media::MAX_IMAGES_PER_MESSAGE);
    }

    #[test]
    fn the_end_by_a_limit_is_told_with_the_limit_of_the_program() {
        for (line, over) in [
            (r#"{"ended":{"over_processes":1024}}"#, Some(Over::Processes(256))),
            (r#"{"ended":{"over_memory":2560}}"#, Some(Over::Memory(2048))),
            (r#"{"ended":{"signalled":9}}"#, None),
            ("rubbish", None),
        ] {
            assert_eq!(Crash::of(line.as_bytes()), Crash { over }, "{line}");
        }
    }
}
