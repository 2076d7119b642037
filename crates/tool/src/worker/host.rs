//! The daemon's end of one worker: a call goes out, its progress and questions come back, then its outcome.

use std::path::Path;
use std::process::Stdio;

use polyclaw_domain::agent::Sandbox;
use polyclaw_domain::tool::{Progress, ToolOutcome, Toolbox};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::wire::{self, FETCH, LONGEST_ANSWER, Message, PROGRESS, RUN, Run};
use crate::error::{Error, Result};
use crate::http_fetch;
use crate::sandbox::{Profile, Program, Sandboxes, Started};

/// A worker beside its programs needs memory of its own, and its limits are to be met after theirs: a program that
/// goes too far is ended, not the worker that looks after it.
const OWN_MEMORY_MB: u32 = 512;
const MORE_PROCESSES: u32 = 4;

pub struct Host {
    started: Started,
    calls: u64,
}

/// The worker is of no use any more: it ended, or wrote what is not the protocol.
pub struct Crash;

impl Host {
    pub async fn start(
        sandboxes: &Sandboxes,
        command: &[String],
        sandbox: &Sandbox,
        workspace: &Path,
    ) -> Result<Self> {
        let limits = sandbox.limits();
        let short = |limit: Option<u64>| limit.and_then(|limit| u32::try_from(limit).ok());
        let roomier = Sandbox {
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
            readable: Vec::new(),
        };
        Ok(Self { started: sandboxes.start(program, Stdio::null()).await?, calls: 0 })
    }

    pub fn calls(&self) -> u64 {
        self.calls
    }

    pub fn pid(&self) -> Option<u32> {
        self.started.supervisor()
    }

    /// Runs one call. After a crash nothing more can be asked of it.
    pub async fn run(
        &mut self,
        run: &Run,
        tools: &dyn Toolbox,
        progress: Progress<'_>,
    ) -> std::result::Result<ToolOutcome, Crash> {
        self.calls += 1;
        let id = self.calls;
        self.send(&Message::request(id, RUN, json!(run))).await?;
        loop {
            let message = wire::next(&mut self.started.lines, LONGEST_ANSWER).await.ok_or(Crash)?;
            match message.method.as_deref() {
                Some(PROGRESS) => progress(message.params["text"].as_str().ok_or(Crash)?),
                Some(FETCH) => self.fetch(message.id.ok_or(Crash)?, run, tools, progress).await?,
                Some(_) => return Err(Crash),
                None if message.id == Some(id) => return outcome(message.result, message.error),
                None => return Err(Crash),
            }
        }
    }

    /// What the worker has no network for. It is the call's own fetch or none: the arguments are not the worker's.
    async fn fetch(
        &mut self,
        id: u64,
        run: &Run,
        tools: &dyn Toolbox,
        progress: Progress<'_>,
    ) -> std::result::Result<(), Crash> {
        if run.call.name != http_fetch::NAME {
            return Err(Crash);
        }
        let outcome = tools.run(&run.scope, &run.turn, &run.call, progress).await;
        self.send(&Message::result(id, json!(outcome))).await
    }

    async fn send(&mut self, message: &Message) -> std::result::Result<(), Crash> {
        let input = self.started.input.as_mut().ok_or(Crash)?;
        input.write_all(&message.line()).await.map_err(|_| Crash)
    }
}

fn outcome(result: Option<Value>, error: Option<Value>) -> std::result::Result<ToolOutcome, Crash> {
    if let Some(error) = error {
        let why = error["message"].as_str().unwrap_or("it gave no reason");
        return Ok(Error::Refused(why.to_owned()).into());
    }
    serde_json::from_value(result.ok_or(Crash)?).map_err(|_| Crash)
}
