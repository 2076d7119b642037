//! `shell`: one command, in the agent's sandbox, of which nothing outlives the call.

mod output;

use std::process::Stdio;
use std::time::Duration;

use polyclaw_domain::sandbox::SandboxFacts;
use polyclaw_domain::tool::{
    ProgressSink, ToolConsent, ToolEffect, ToolOutcome, ToolRisk, ToolScope, ToolSpec,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::{Instant, timeout_at};

use crate::arguments;
use crate::error::{Error, Result};
use crate::sandbox::{End, Grants, Profile, Program, Sandboxes, Started};
use crate::work;
use crate::workspace;
use output::Output;

pub const NAME: &str = "shell";
const USUAL_SECONDS: u64 = 120;
const MOST_SECONDS: u64 = 600;
/// When everything has ended the pipe is closed; this is for a process that can not be killed yet.
const DRAIN: Duration = Duration::from_millis(300);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The command line, run by sh.
    command: String,
    /// The command is killed after this time, up to 600. 120 if left out.
    timeout_seconds: Option<u64>,
    /// The folder to run in, relative to the workspace. The workspace itself if left out.
    cwd: Option<String>,
}

pub fn spec() -> ToolSpec {
    ToolSpec {
        effect: ToolEffect::Effect,
        risk: ToolRisk::High,
        consent: ToolConsent::AskPerson,
        confined: false,
        ..arguments::build_tool_spec::<Arguments>(
            NAME,
            "Runs a command with sh and returns its output and exit status. No terminal and no input; processes \
             left in the background are killed when the command ends. Files are to be kept in the workspace: other \
             places can not be written, and what is in /tmp may be gone at the next call.",
        )
    }
}

/// Where it is confined nobody has to be asked.
pub fn confined_spec() -> ToolSpec {
    ToolSpec { consent: ToolConsent::NotNeeded, confined: true, ..spec() }
}

enum Outcome {
    Ended(End),
    OutOfTime(u64),
}

pub async fn run(
    scope: &ToolScope,
    arguments: Arguments,
    sandboxes: &Sandboxes,
    progress: ProgressSink<'_>,
) -> Result<ToolOutcome> {
    let seconds = arguments.timeout_seconds.unwrap_or(USUAL_SECONDS).clamp(1, MOST_SECONDS);
    let workspace = scope.workspace.clone();
    let folders = work::blocking(move |_| {
        let place = workspace::locate(&workspace, arguments.cwd.as_deref().unwrap_or("."))?;
        place.open_folder()?;
        Ok((place.root().to_owned(), place.path()))
    });
    let (workspace, folder) = folders.await?;
    let program = Program {
        sandbox: &scope.sandbox,
        profile: Profile::Command,
        workspace: &workspace,
        folder: &folder,
        command: ["/bin/sh", "-c", &arguments.command].map(str::to_owned).to_vec(),
        grants: Grants::default(),
    };
    let (reader, writer) = std::io::pipe().map_err(Error::Command)?;
    let started = sandboxes.start(program, Stdio::from(writer)).await?;
    let pipe = pipe::Receiver::from_owned_fd(reader.into()).map_err(Error::Command)?;
    let mut running = Running { started, pipe, output: Output::new(progress) };
    let end = running.follow(seconds).await;
    running.drain().await;
    let facts = SandboxFacts {
        mode: scope.sandbox.mode,
        isolation: scope.isolation,
        worker: None,
        crashes: 0,
        fault: None,
        files: None,
        program: Some(Box::new(running.started.facts.clone())),
    };
    Ok(ToolOutcome { facts: Some(facts), ..report(&end, running.output.finish()) })
}

struct Running<'a> {
    started: Started,
    pipe: pipe::Receiver,
    output: Output<'a>,
}

impl Running<'_> {
    /// Passes output on until the command ends or its time is up. All it started is gone when this returns.
    async fn follow(&mut self, seconds: u64) -> Outcome {
        let limit = Instant::now() + Duration::from_secs(seconds);
        let mut buffer = vec![0; 16 * 1024];
        let mut is_open = true;
        {
            let mut ended = std::pin::pin!(self.started.ended());
            loop {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(limit) => break,
                    end = &mut ended => return Outcome::Ended(end),
                    read = self.pipe.read(&mut buffer), if is_open => match read {
                        Ok(count) if count > 0 => self.output.push(&buffer[..count]),
                        _ => is_open = false,
                    },
                }
            }
        }
        self.started.stop().await;
        Outcome::OutOfTime(seconds)
    }

    /// Takes what is still in the pipe.
    async fn drain(&mut self) {
        let limit = Instant::now() + DRAIN;
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(Ok(count)) = timeout_at(limit, self.pipe.read(&mut buffer)).await {
            if count == 0 || Instant::now() >= limit {
                return;
            }
            self.output.push(&buffer[..count]);
        }
    }
}

/// A program of which nothing is known but how it ended.
pub fn ended(end: End) -> ToolOutcome {
    report(&Outcome::Ended(end), String::new())
}

fn report(outcome: &Outcome, mut text: String) -> ToolOutcome {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let how = match outcome {
        Outcome::Ended(End::Exited(0)) => return ToolOutcome::ok(format!("{text}[exit status 0]")),
        Outcome::Ended(End::Exited(code)) => format!("exit status {code}"),
        Outcome::Ended(End::Signalled(signal)) => format!("killed by signal {signal}"),
        Outcome::Ended(End::OverMemory(limit)) => format!("killed: it used more than {limit} MiB of memory"),
        Outcome::Ended(End::OverProcesses(limit)) => format!("killed: it had more than {limit} processes"),
        Outcome::Ended(End::OverDisk(limit)) => {
            format!(
                "killed: the workspace and its temporary files hold more than the quota of {limit} MiB; remove what \
                 is not needed"
            )
        }
        Outcome::Ended(End::Unknown) => "killed from outside".to_owned(),
        Outcome::OutOfTime(seconds) => format!("killed: it ran longer than {seconds} s"),
    };
    ToolOutcome::error(format!("{text}[{how}]"))
}
