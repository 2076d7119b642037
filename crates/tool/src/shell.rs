//! `shell`: one command, in a process group that does not outlive the call.

mod group;
mod output;

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use polyclaw_domain::tool::{Consent, Effect, Progress, Risk, ToolOutcome, ToolScope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout, timeout_at};

use crate::arguments;
use crate::error::{Error, Result};
use crate::work;
use crate::workspace;
pub use group::Group;
use output::Output;

pub const NAME: &str = "shell";
const USUAL_SECONDS: u64 = 120;
const MOST_SECONDS: u64 = 600;
/// After the group is dead the pipe closes at once, unless a process that left the group still holds it.
const DRAIN: Duration = Duration::from_millis(300);
/// A process in an uninterruptible wait does not die when killed; the call does not wait for it.
const REAP: Duration = Duration::from_secs(2);
const PASSED_ON: [&str; 6] = ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER"];

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
        effect: Effect::Effect,
        risk: Risk::High,
        consent: Consent::AskPerson,
        ..arguments::spec::<Arguments>(
            NAME,
            "Runs a command with sh and returns its output and exit status. No terminal and no input; processes \
             left in the background are killed when the command ends.",
        )
    }
}

enum End {
    Exited(ExitStatus),
    OutOfTime(u64),
}

pub async fn run(scope: &ToolScope, arguments: Arguments, progress: Progress<'_>) -> Result<ToolOutcome> {
    let seconds = arguments.timeout_seconds.unwrap_or(USUAL_SECONDS).clamp(1, MOST_SECONDS);
    let workspace = scope.workspace.clone();
    let folder = work::blocking(move |_| {
        let place = workspace::locate(&workspace, arguments.cwd.as_deref().unwrap_or("."))?;
        place.open_folder()?;
        Ok(place.path())
    });
    let (child, group, pipe) = start(&arguments.command, &folder.await?).map_err(Error::Command)?;
    let mut running = Running { group, child, pipe, output: Output::new(progress) };
    let end = running.follow(seconds).await.map_err(Error::Command)?;
    running.drain().await;
    Ok(report(&end, running.output.finish()))
}

fn start(command: &str, folder: &Path) -> std::io::Result<(Child, Group, pipe::Receiver)> {
    let (reader, writer) = std::io::pipe()?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).current_dir(folder).stdin(Stdio::null());
    // One pipe for both streams keeps them in the order in which they were written.
    shell.stdout(writer.try_clone()?).stderr(writer);
    shell.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    shell.envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    shell.process_group(0).kill_on_drop(true);
    let child = shell.spawn()?;
    let group = Group::led_by(child.id());
    Ok((child, group, pipe::Receiver::from_owned_fd(reader.into())?))
}

/// Fields drop in this order: the group is killed while its leader is not reaped yet, so its id is still ours.
struct Running<'a> {
    group: Group,
    child: Child,
    pipe: pipe::Receiver,
    output: Output<'a>,
}

impl Running<'_> {
    /// Passes output on until the command ends or its time is up. The whole group is dead when this returns.
    async fn follow(&mut self, seconds: u64) -> std::io::Result<End> {
        let limit = Instant::now() + Duration::from_secs(seconds);
        let mut buffer = vec![0; 16 * 1024];
        let mut is_open = true;
        loop {
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(limit) => {
                    self.group.kill();
                    timeout(REAP, self.child.wait()).await.ok();
                    return Ok(End::OutOfTime(seconds));
                }
                status = self.child.wait() => {
                    self.group.kill();
                    return Ok(End::Exited(status?));
                }
                read = self.pipe.read(&mut buffer), if is_open => match read {
                    Ok(count) if count > 0 => self.output.push(&buffer[..count]),
                    _ => is_open = false,
                },
            }
        }
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

fn report(end: &End, mut text: String) -> ToolOutcome {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    match end {
        End::Exited(status) if status.success() => ToolOutcome::ok(format!("{text}[exit status 0]")),
        End::Exited(status) => {
            use std::os::unix::process::ExitStatusExt;
            let how = match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit status {code}"),
                (None, Some(signal)) => format!("killed by signal {signal}"),
                (None, None) => status.to_string(),
            };
            ToolOutcome::error(format!("{text}[{how}]"))
        }
        End::OutOfTime(seconds) => {
            ToolOutcome::error(format!("{text}[killed: it ran longer than {seconds} s]"))
        }
    }
}
