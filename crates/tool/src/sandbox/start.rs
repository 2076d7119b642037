//! The daemon's side: requests a program, receives the facts of its confinement, and learns how it ended.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use polyclaw_domain::agent::{SandboxMode, SandboxSettings};
use polyclaw_domain::sandbox as domain;
use polyclaw_folder::FolderHandle;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::facts;
use super::plan::{
    self, HelperMessage, HiddenPath, InheritedSandbox, NamespaceMode, ReportedEnd, SUPERVISE_STAGE,
    SandboxPlan, SandboxProfile,
};
use crate::error::{Error, Result};

/// Timeout from the request to the start of the program. Only an overloaded machine takes longer.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the supervisor may take to kill remaining processes before it is killed itself.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);
const PASSED_VARIABLES: [&str; 6] = ["PATH", "LANG", "LC_ALL", "TERM", "TZ", "USER"];

/// Settings for all programs of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxLauncherSettings {
    /// The command that starts the helper. If empty, no program can run.
    pub helper: Vec<String>,
    /// Parent of the temporary folders of runs.
    pub temporary: PathBuf,
    pub readable: Vec<PathBuf>,
    /// Paths that no confined program may ever open.
    pub hidden: Vec<PathBuf>,
    /// Namespace modes to try; the first that works is used.
    pub ways: Vec<NamespaceMode>,
    /// Set inside a worker: the sandbox it is already in.
    pub inherited: Option<InheritedSandbox>,
}

/// Starts programs, each in its own sandbox.
#[derive(Debug, Default)]
pub struct SandboxLauncher {
    settings: SandboxLauncherSettings,
    namespace_mode: OnceCell<NamespaceMode>,
}

/// The program to run.
pub struct SandboxedProgram<'a> {
    pub sandbox: &'a SandboxSettings,
    pub profile: SandboxProfile,
    pub workspace: &'a Path,
    pub folder: &'a Path,
    pub command: Vec<String>,
    pub grants: SandboxGrants,
}

/// Access of one program in addition to its profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxGrants {
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// Hidden from this program, in addition to paths hidden from all.
    pub hidden: Vec<PathBuf>,
    /// The complete environment, except for `HOME` and `TMPDIR`. Default: the usual variables.
    pub environment: Option<Vec<(String, String)>>,
}

pub struct StartedProgram {
    pub facts: domain::ProgramConfinement,
    /// Lines of the helper and, for a worker, of the worker.
    pub lines: BufReader<OwnedReadHalf>,
    /// Closing this ends the program and everything it started.
    pub input: Option<OwnedWriteHalf>,
    pub running: RunningSandbox,
}

/// The supervisor and the run's folder. On drop, the folder is removed as soon as the supervisor is gone.
pub struct RunningSandbox {
    child: Option<SupervisorProcess>,
    temporary: Option<RunFolder>,
}

/// The supervisor process. It ends once the socket is closed and all its processes have ended.
struct SupervisorProcess {
    child: Child,
    /// Whether the kernel ends all processes with the supervisor. If not, it must never be killed, because its
    /// processes would be left without one.
    has_namespaces: bool,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    Exited(i32),
    Signalled(i32),
    OverMemory(u64),
    OverProcesses(u64),
    OverDisk(u64),
    /// The supervisor ended without a report.
    Unknown,
}

impl ProgramEnd {
    /// Parses the end from a line of the supervisor.
    pub fn from_line(line: &[u8]) -> Option<Self> {
        match serde_json::from_slice(line) {
            Ok(HelperMessage::Ended(ended)) => Some(ended.into()),
            _ => None,
        }
    }
}

/// Describes the end from the last lines of the supervisor. `tail` may start in the middle of a line.
pub fn end_from_tail(tail: &[u8]) -> Option<String> {
    let message = tail.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    message
        .filter_map(|line| match line {
            HelperMessage::Refused(why) | HelperMessage::NoNamespaces(why) => Some(why),
            HelperMessage::Ended(ReportedEnd::Exited(code)) => Some(format!("exit status: {code}")),
            HelperMessage::Ended(ReportedEnd::Signalled(signal)) => Some(format!("signal: {signal}")),
            HelperMessage::Ended(ReportedEnd::OverMemory(limit)) => {
                Some(format!("memory use exceeded {limit} MiB"))
            }
            HelperMessage::Ended(ReportedEnd::OverProcesses(limit)) => {
                Some(format!("more than {limit} processes"))
            }
            HelperMessage::Ended(ReportedEnd::OverDisk(limit)) => {
                Some(format!("it wrote more than {limit} MiB"))
            }
            HelperMessage::Facts(_) => None,
        })
        .next()
}

impl From<ReportedEnd> for ProgramEnd {
    fn from(ended: ReportedEnd) -> Self {
        match ended {
            ReportedEnd::Exited(code) => Self::Exited(code),
            ReportedEnd::Signalled(signal) => Self::Signalled(signal),
            ReportedEnd::OverMemory(limit) => Self::OverMemory(limit),
            ReportedEnd::OverProcesses(limit) => Self::OverProcesses(limit),
            ReportedEnd::OverDisk(limit) => Self::OverDisk(limit),
        }
    }
}

impl SandboxLauncher {
    pub fn new(settings: SandboxLauncherSettings) -> Self {
        Self { settings, namespace_mode: OnceCell::new() }
    }

    pub fn settings(&self) -> &SandboxLauncherSettings {
        &self.settings
    }

    /// Starts a program in its sandbox, or fails. `output` receives its output.
    pub async fn start(&self, program: SandboxedProgram<'_>, output: Stdio) -> Result<StartedProgram> {
        let way = match program.sandbox.mode {
            SandboxMode::Off => NamespaceMode::Bare,
            // Probed once. Only a mode that works is remembered.
            _ => self.namespace_mode.get_or_try_init(|| self.find_namespace_mode()).await?.clone(),
        };
        self.start_with(way, program, output).await
    }

    /// Returns the first mode that works on this machine.
    async fn find_namespace_mode(&self) -> Result<NamespaceMode> {
        let mut last = Error::Sandbox("no sandbox method is configured".to_owned());
        for way in &self.settings.ways {
            match self.probe_mode(way).await {
                Ok(()) => return Ok(way.clone()),
                // Only a permanent refusal by the machine allows another mode. On a temporary failure nothing runs, and
                // no weaker mode is remembered.
                Err(Error::NoNamespaces(why)) => last = Error::NoNamespaces(why),
                Err(error) => return Err(error),
            }
            tracing::warn!(?way, error = %last, "this machine does not support a sandbox method");
        }
        Err(last)
    }

    async fn probe_mode(&self, way: &NamespaceMode) -> Result<()> {
        let room = RunFolder::new(&self.settings.temporary)?;
        let sandbox = SandboxSettings { mode: SandboxMode::Strict, ..SandboxSettings::default() };
        let program = SandboxedProgram {
            sandbox: &sandbox,
            profile: SandboxProfile::Command,
            workspace: &room.0,
            folder: &room.0,
            command: vec!["/bin/true".to_owned()],
            grants: SandboxGrants::default(),
        };
        let mut started = self.start_with(way.clone(), program, Stdio::null()).await?;
        match started.wait_for_end().await {
            ProgramEnd::Exited(0) => Ok(()),
            end => Err(Error::Sandbox(format!("a test run ended with {end:?}"))),
        }
    }

    async fn start_with(
        &self,
        way: NamespaceMode,
        program: SandboxedProgram<'_>,
        output: Stdio,
    ) -> Result<StartedProgram> {
        let temporary = RunFolder::new(&self.settings.temporary)?;
        let plan = self.build_plan(way, &program, &temporary)?;
        let (child, socket) = self.spawn_helper(output).map_err(Error::Command)?;
        let (lines, mut input) = socket.into_split();
        let mut text = serde_json::to_vec(&plan).map_err(|error| Error::Command(error.into()))?;
        text.push(b'\n');
        let mut lines = BufReader::new(lines);
        let result = timeout(START_TIMEOUT, async {
            input.write_all(&text).await.map_err(Error::Command)?;
            wait_started(&mut lines).await
        });
        let facts = result
            .await
            .unwrap_or_else(|_| Err(Error::Sandbox("the helper process does not respond".to_owned())));
        let child = SupervisorProcess { child, has_namespaces: plan.namespace_mode != NamespaceMode::Bare };
        let running = RunningSandbox { child: Some(child), temporary: Some(temporary) };
        Ok(StartedProgram { facts: facts?, lines, input: Some(input), running })
    }

    fn build_plan(
        &self,
        way: NamespaceMode,
        program: &SandboxedProgram<'_>,
        temporary: &RunFolder,
    ) -> Result<SandboxPlan> {
        let grants = &program.grants;
        let hidden = self.settings.hidden.iter().chain(&grants.hidden);
        let inherited = self.settings.inherited.as_ref();
        // A link in its path was put there after it was resolved.
        let workspace = FolderHandle::open(program.workspace).and_then(|folder| folder.identity());
        let workspace = workspace.map_err(Error::Workspace)?;
        Ok(SandboxPlan {
            mode: program.sandbox.mode,
            profile: program.profile,
            workspace: program.workspace.to_owned(),
            workspace_id: (workspace.device, workspace.inode),
            folder: program.folder.to_owned(),
            temporary: temporary.0.clone(),
            readable: self.settings.readable.iter().chain(&grants.readable).cloned().collect(),
            writable: grants.writable.clone(),
            hidden: hidden.filter_map(|path| HiddenPath::from_path(path)).collect(),
            limits: program_limits(program),
            disk_mb: (program.profile == SandboxProfile::Command).then(|| program.sandbox.disk_limit_mb()),
            removal_only: false,
            listen: program.sandbox.listen && program.sandbox.mode == SandboxMode::Workspace,
            namespace_mode: way,
            helper: self.settings.helper.clone(),
            program: program.command.clone(),
            environment: grants.environment.clone().unwrap_or_else(|| base_environment(program.sandbox.mode)),
            namespaces: inherited
                .map_or_else(facts::current_namespaces, |sandbox| sandbox.namespaces.clone()),
            own_proc: inherited.is_some_and(|sandbox| sandbox.own_proc),
            own_temporary: inherited.is_some_and(|sandbox| sandbox.own_temporary),
            sealed: inherited.is_some_and(|sandbox| sandbox.sealed),
            already_namespaced: inherited.is_some(),
        })
    }

    fn spawn_helper(&self, output: Stdio) -> io::Result<(Child, UnixStream)> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (program, arguments) = self.settings.helper.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(program);
        command.args(arguments).arg(SUPERVISE_STAGE).env_clear().envs(super::supervise::allocator_settings());
        command.stdin(OwnedFd::from(theirs)).stdout(output).stderr(Stdio::null()).process_group(0);
        Ok((command.spawn()?, UnixStream::from_std(ours)?))
    }
}

fn base_environment(mode: SandboxMode) -> Vec<(String, String)> {
    let mut environment: Vec<_> = PASSED_VARIABLES.iter().filter_map(|name| passed_variable(name)).collect();
    if mode == SandboxMode::Off {
        environment.extend(["HOME", "TMPDIR"].iter().filter_map(|name| passed_variable(name)));
    }
    if !environment.iter().any(|(name, _)| name == "PATH") {
        environment.push(("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()));
    }
    environment
}

/// A server runs as long as the daemon, so its CPU time and file sizes are not limited.
fn program_limits(program: &SandboxedProgram<'_>) -> domain::ProgramLimits {
    let limits = program.sandbox.program_limits();
    match program.profile {
        SandboxProfile::Command | SandboxProfile::Worker => limits,
        SandboxProfile::Server => domain::ProgramLimits { cpu_seconds: None, file_mb: None, ..limits },
    }
}

fn passed_variable(name: &str) -> Option<(String, String)> {
    Some((name.to_owned(), std::env::var(name).ok()?))
}

async fn wait_started(lines: &mut BufReader<OwnedReadHalf>) -> Result<domain::ProgramConfinement> {
    match next_message(lines).await {
        Some(HelperMessage::Facts(facts)) => Ok(*facts),
        Some(HelperMessage::NoNamespaces(why)) => Err(Error::NoNamespaces(why)),
        Some(HelperMessage::Refused(why)) => Err(Error::Sandbox(why)),
        Some(HelperMessage::Ended(ended)) => {
            Err(Error::Sandbox(format!("it ended before the program started: {ended:?}")))
        }
        None => Err(Error::Sandbox("the helper process ended without a message".to_owned())),
    }
}

async fn next_message(lines: &mut BufReader<OwnedReadHalf>) -> Option<HelperMessage> {
    let mut line = Vec::new();
    lines.take(plan::MAX_LINE_BYTES).read_until(b'\n', &mut line).await.ok()?;
    serde_json::from_slice(&line).ok()
}

impl StartedProgram {
    /// Waits for the program's end and returns it. Everything that it started is gone then.
    pub async fn wait_for_end(&mut self) -> ProgramEnd {
        let end = loop {
            match next_message(&mut self.lines).await {
                Some(HelperMessage::Ended(ended)) => break ended.into(),
                Some(HelperMessage::Refused(_) | HelperMessage::NoNamespaces(_)) => {}
                _ => break ProgramEnd::Unknown,
            }
        };
        self.stop().await;
        end
    }

    /// Ends the program if it is still running.
    pub async fn stop(&mut self) {
        drop(self.input.take());
        self.running.reap().await;
    }

    pub fn supervisor_pid(&self) -> Option<u32> {
        self.running.child.as_ref().and_then(|supervisor| supervisor.child.id())
    }
}

impl RunningSandbox {
    /// Waits for the supervisor, which exits once its connection is closed.
    pub async fn reap(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.reap().await;
        }
    }
}

impl Drop for RunningSandbox {
    fn drop(&mut self) {
        clean_up_later(self.child.take(), self.temporary.take());
    }
}

/// Waits for a supervisor in the background, then removes the run's folder.
fn clean_up_later(child: Option<SupervisorProcess>, temporary: Option<RunFolder>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        if let Some(mut child) = child {
            child.reap().await;
        }
        tokio::task::spawn_blocking(move || drop(temporary)).await.ok();
    });
}

impl SupervisorProcess {
    async fn reap(&mut self) {
        if timeout(CLEANUP_TIMEOUT, self.child.wait()).await.is_ok() {
            return;
        }
        tracing::error!(pid = self.child.id(), "processes of a program have not ended yet");
        if self.has_namespaces {
            self.child.kill().await.ok();
        }
    }
}

/// A folder of one run, removed on drop.
pub struct RunFolder(PathBuf);

impl RunFolder {
    fn new(parent: &Path) -> Result<Self> {
        let failed = |error: io::Error| Error::Sandbox(format!("cannot create a temporary folder: {error}"));
        let mut private = fs::DirBuilder::new();
        private.mode(0o700);
        private.recursive(true).create(parent).map_err(failed)?;
        private.recursive(false);
        for number in 0..10_000 {
            let path = parent.join(format!("run-{}-{number}", std::process::id()));
            match private.create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(Error::Sandbox("too many leftover temporary folders".to_owned()))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if let Err(error) = polyclaw_tree::remove_tree(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "could not remove a program's temporary folder");
        }
    }
}
