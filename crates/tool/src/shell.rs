//! The `shell` tool: runs one command in the agent's sandbox. No process of it outlives the call.

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
use crate::blocking;
use crate::error::{Error, Result};
use crate::sandbox::{
    ProgramEnd, SandboxGrants, SandboxLauncher, SandboxProfile, SandboxedProgram, StartedProgram,
};
use crate::workspace;
use output::ShellOutput;

pub const TOOL_NAME: &str = "shell";
const DEFAULT_TIMEOUT_SECONDS: u64 = 120;
const MAX_TIMEOUT_SECONDS: u64 = 600;
/// Timeout of draining the pipe. It is normally closed once everything has ended, except if a process cannot be killed
/// yet.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(300);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellArguments {
    /// The command line, run by sh.
    command: String,
    /// Timeout in seconds, up to 600. The command is killed when it expires. Default: 120.
    timeout_seconds: Option<u64>,
    /// The folder to run in, relative to the workspace. Default: the workspace itself.
    cwd: Option<String>,
}

pub fn spec() -> ToolSpec {
    ToolSpec {
        effect: ToolEffect::Effect,
        risk: ToolRisk::High,
        consent: ToolConsent::AskPerson,
        confined: false,
        ..arguments::build_tool_spec::<ShellArguments>(
            TOOL_NAME,
            "Runs a command with sh and returns its output and exit status. There is no terminal and no input; \
             processes left in the background are killed when the command ends. Store files in the workspace: other \
             places are read-only, and files in /tmp may be gone at the next call.",
        )
    }
}

/// The spec for a sandboxed shell, which needs no approval.
pub fn confined_spec() -> ToolSpec {
    ToolSpec { consent: ToolConsent::NotNeeded, confined: true, ..spec() }
}

enum CommandOutcome {
    Ended(ProgramEnd),
    OutOfTime(u64),
}

pub async fn run(
    scope: &ToolScope,
    arguments: ShellArguments,
    sandboxes: &SandboxLauncher,
    progress: ProgressSink<'_>,
) -> Result<ToolOutcome> {
    let seconds = arguments.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS).clamp(1, MAX_TIMEOUT_SECONDS);
    let workspace = scope.workspace.clone();
    let folders = blocking::run_blocking(move |_| {
        let place = workspace::resolve_path(&workspace, arguments.cwd.as_deref().unwrap_or("."))?;
        place.open_folder()?;
        Ok((place.root().to_owned(), place.full_path()))
    });
    let (workspace, folder) = folders.await?;
    let program = SandboxedProgram {
        sandbox: &scope.sandbox,
        profile: SandboxProfile::Command,
        workspace: &workspace,
        folder: &folder,
        command: ["/bin/sh", "-c", &arguments.command].map(str::to_owned).to_vec(),
        grants: SandboxGrants::default(),
    };
    let (reader, writer) = std::io::pipe().map_err(Error::Command)?;
    let started = sandboxes.start(program, Stdio::from(writer)).await?;
    let pipe = pipe::Receiver::from_owned_fd(reader.into()).map_err(Error::Command)?;
    let mut running = RunningCommand { started, pipe, output: ShellOutput::new(progress) };
    let end = running.run_until_end(seconds).await;
    running.drain_pipe().await;
    let facts = SandboxFacts {
        mode: scope.sandbox.mode,
        isolation: scope.isolation,
        worker: None,
        crashes: 0,
        fault: None,
        files: None,
        program: Some(Box::new(running.started.facts.clone())),
    };
    let mut report = command_report(&end, running.output.finish());
    if report.is_error && running.started.facts.removal_only {
        report.content.push_str(&removal_only_notice(scope.sandbox.disk_limit_mb()));
    }
    Ok(ToolOutcome { facts: Some(facts), ..report })
}

/// Why a command could write nothing, and what to do about it.
fn removal_only_notice(limit_mb: u64) -> String {
    format!(
        "\n[the workspace exceeded its quota of {limit_mb} MiB when this command started: the command could read \
         and remove files, but not write any. Remove files you do not need with rm, or ask a person to raise \
         sandbox.disk_mb of this agent]"
    )
}

struct RunningCommand<'a> {
    started: StartedProgram,
    pipe: pipe::Receiver,
    output: ShellOutput<'a>,
}

impl RunningCommand<'_> {
    /// Passes on output until the command ends or times out. Everything it started is gone when this returns.
    async fn run_until_end(&mut self, seconds: u64) -> CommandOutcome {
        let limit = Instant::now() + Duration::from_secs(seconds);
        let mut buffer = vec![0; 16 * 1024];
        let mut is_open = true;
        {
            let mut ended = std::pin::pin!(self.started.wait_for_end());
            loop {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(limit) => break,
                    end = &mut ended => return CommandOutcome::Ended(end),
                    read = self.pipe.read(&mut buffer), if is_open => match read {
                        Ok(count) if count > 0 => self.output.push(&buffer[..count]),
                        _ => is_open = false,
                    },
                }
            }
        }
        self.started.stop().await;
        CommandOutcome::OutOfTime(seconds)
    }

    /// Reads what is left in the pipe.
    async fn drain_pipe(&mut self) {
        let limit = Instant::now() + DRAIN_TIMEOUT;
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(Ok(count)) = timeout_at(limit, self.pipe.read(&mut buffer)).await {
            if count == 0 || Instant::now() >= limit {
                return;
            }
            self.output.push(&buffer[..count]);
        }
    }
}

/// Reports a program of which only its end is known.
pub fn end_outcome(end: ProgramEnd) -> ToolOutcome {
    command_report(&CommandOutcome::Ended(end), String::new())
}

fn command_report(outcome: &CommandOutcome, mut text: String) -> ToolOutcome {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let how = match outcome {
        CommandOutcome::Ended(ProgramEnd::Exited(0)) => {
            return ToolOutcome::ok(format!("{text}[exit status 0]"));
        }
        CommandOutcome::Ended(ProgramEnd::Exited(code)) => format!("exit status {code}"),
        CommandOutcome::Ended(ProgramEnd::Signalled(signal)) => format!("killed by signal {signal}"),
        CommandOutcome::Ended(ProgramEnd::OverMemory(limit)) => {
            format!("killed: memory use exceeded {limit} MiB")
        }
        CommandOutcome::Ended(ProgramEnd::OverProcesses(limit)) => {
            format!("killed: more than {limit} processes")
        }
        CommandOutcome::Ended(ProgramEnd::OverDisk(limit)) => {
            format!(
                "killed: the workspace and its temporary files exceed the quota of {limit} MiB; remove files you do \
                 not need"
            )
        }
        CommandOutcome::Ended(ProgramEnd::Unknown) => "killed externally".to_owned(),
        CommandOutcome::OutOfTime(seconds) => format!("killed: timed out after {seconds} s"),
    };
    ToolOutcome::error(format!("{text}[{how}]"))
}
