//! Messages between the daemon and its helper. One JSON object per line, over the socket that is the helper's standard
//! input. Programs never get it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::sandbox::{ProgramConfinement, ProgramLimits};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub const SUPERVISE_STAGE: &str = "supervise";
pub const INIT_STAGE: &str = "init";
pub const ENTER_STAGE: &str = "enter";

/// The helper was called incorrectly.
pub const EXIT_MISUSED: u8 = 64;
/// The helper refused to start the program and reported why.
pub const EXIT_REFUSED: u8 = 65;

/// Maximum length of a line. Above the size of any plan or report.
pub const MAX_LINE_BYTES: u64 = 256 * 1024;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SandboxPlan {
    pub mode: SandboxMode,
    pub profile: SandboxProfile,
    /// Readable and writable.
    pub workspace: PathBuf,
    /// Which folder that was when the daemon looked: device and inode.
    pub workspace_id: (u64, u64),
    /// Where the program starts; below the workspace.
    pub folder: PathBuf,
    /// An empty folder for this run, its `/tmp`.
    pub temporary: PathBuf,
    /// Readable and executable, in addition to the system folders.
    pub readable: Vec<PathBuf>,
    /// Readable and writable, in addition to the workspace.
    pub writable: Vec<PathBuf>,
    /// Opened as a test after confinement; every attempt must fail.
    pub hidden: Vec<HiddenPath>,
    pub limits: ProgramLimits,
    /// Disk quota of the workspace. Only programs of commands are watched for it.
    pub disk_mb: Option<u64>,
    /// Whether it may read and remove only: the workspace holds more than its quota. Set by the supervisor.
    pub removal_only: bool,
    /// Whether it may listen for TCP connections.
    pub listen: bool,
    /// How namespaces are created.
    pub namespace_mode: NamespaceMode,
    /// The command that starts the helper again.
    pub helper: Vec<String>,
    pub program: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// The daemon's namespaces, to distinguish new ones from them.
    pub namespaces: Vec<String>,
    /// Whether `/proc` shows only the program's own processes. Set by the supervisor.
    pub own_proc: bool,
    /// Whether `/tmp` is private to this run. Set by the supervisor.
    pub own_temporary: bool,
    /// Whether all mounts except writable paths are read-only. Set by the supervisor.
    pub sealed: bool,
    /// Whether this runs inside a worker, which is already confined.
    pub already_namespaced: bool,
}

/// A path that no confined program may open. Identified by device and inode, because inside the name may refer to
/// another file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HiddenPath {
    pub path: PathBuf,
    device: u64,
    inode: u64,
}

impl HiddenPath {
    /// Returns `None` if the path does not exist.
    pub fn from_path(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self { path: path.to_owned(), device: meta.dev(), inode: meta.ino() })
    }

    pub fn matches(&self, meta: &std::fs::Metadata) -> bool {
        (meta.dev(), meta.ino()) == (self.device, self.inode)
    }
}

/// Describes the sandbox of a worker to the worker, which starts its programs with the same settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InheritedSandbox {
    pub own_proc: bool,
    pub own_temporary: bool,
    pub sealed: bool,
    /// The daemon's namespaces.
    pub namespaces: Vec<String>,
}

impl InheritedSandbox {
    /// The environment variable of a worker that holds this value.
    pub const SANDBOX_VARIABLE: &str = "POLYCLAW_SANDBOX";

    pub fn from_environment() -> Option<Self> {
        serde_json::from_str(&std::env::var(Self::SANDBOX_VARIABLE).ok()?).ok()
    }
}

impl SandboxPlan {
    /// Returns all writable paths except `/tmp`.
    pub fn written_paths(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.workspace).chain(&self.writable)
    }

    pub fn to_inherited(&self) -> InheritedSandbox {
        InheritedSandbox {
            own_proc: self.own_proc,
            own_temporary: self.own_temporary,
            sealed: self.sealed,
            namespaces: self.namespaces.clone(),
        }
    }
}

/// The kind of program: a command of a model, a worker that confines commands further, or an MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxProfile {
    Command,
    Worker,
    /// Chosen by the operator, not by a model. It may read the machine except for hidden paths, and write its own
    /// folder.
    Server,
}

/// How namespaces are created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamespaceMode {
    /// By the supervisor.
    Own,
    Bubblewrap(PathBuf),
    /// No namespaces: only landlock, seccomp and the supervisor.
    Bare,
}

/// A message of the helper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelperMessage {
    /// The program starts now with this confinement.
    Facts(Box<ProgramConfinement>),
    /// This machine does not allow this mode at all; another one may be tried.
    NoNamespaces(String),
    /// The program is not started.
    Refused(String),
    Ended(ReportedEnd),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportedEnd {
    Exited(i32),
    Signalled(i32),
    /// Killed by the supervisor: the processes together exceeded a limit.
    OverMemory(u64),
    OverProcesses(u64),
    /// Killed by the supervisor: the workspace exceeded its quota.
    OverDisk(u64),
}

/// Writes one line to the daemon. Errors are ignored, because the daemon is gone then.
pub fn send_line(line: &HelperMessage) {
    let Ok(mut text) = serde_json::to_vec(line) else { return };
    text.push(b'\n');
    write_input(&text);
}

/// Writes to standard input, which is a socket in a helper.
fn write_input(mut text: &[u8]) {
    while !text.is_empty() {
        match rustix::io::write(std::io::stdin().as_fd(), text) {
            Ok(count) if count > 0 => text = &text[count..],
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Reads one line byte by byte, because the following bytes belong to the next stage.
pub fn read_json_line<T: DeserializeOwned>(from: impl Read) -> Option<T> {
    let mut line = Vec::new();
    let mut bytes = BufReader::with_capacity(1, from.take(MAX_LINE_BYTES));
    bytes.read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

/// Passes a plan to the next stage, through the pipe that is initially its standard error.
pub fn write_plan(plan: &SandboxPlan, mut to: impl Write) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(plan)?;
    text.push(b'\n');
    to.write_all(&text)
}
