//! What the daemon asks its helper for, and what the helper says. One JSON object a line, over the socket that is the
//! helper's standard input: a program never gets it.

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

/// The helper was called in a way only a mistake explains.
pub const EXIT_MISUSED: u8 = 64;
/// The helper refused to start the program; a line said why.
pub const EXIT_REFUSED: u8 = 65;

/// Longer than any plan or report; a line is not read without bound.
pub const MAX_LINE_BYTES: u64 = 256 * 1024;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SandboxPlan {
    pub mode: SandboxMode,
    pub profile: SandboxProfile,
    /// Read and written.
    pub workspace: PathBuf,
    /// Where the program starts; below the workspace.
    pub folder: PathBuf,
    /// An empty folder of this run, its `/tmp`.
    pub temporary: PathBuf,
    /// Read and executed, beside the system's folders.
    pub readable: Vec<PathBuf>,
    /// Read and written, beside the workspace.
    pub writable: Vec<PathBuf>,
    /// Tried after confinement: none may open.
    pub hidden: Vec<HiddenPath>,
    pub limits: ProgramLimits,
    /// All that the workspace may hold; programs alone are watched for it.
    pub disk_mb: Option<u64>,
    /// Whether it may listen for TCP connections.
    pub listen: bool,
    /// How walls are built.
    pub namespace_mode: NamespaceMode,
    /// How to start the helper again.
    pub helper: Vec<String>,
    pub program: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// The daemon's namespaces, to tell one's own from them.
    pub namespaces: Vec<String>,
    /// Whether `/proc` shows the program's own processes only; set by the supervisor.
    pub own_proc: bool,
    /// Whether `/tmp` is this run's own; set by the supervisor.
    pub own_temporary: bool,
    /// Whether all that is mounted, but for what may be written, is read-only; set by the supervisor.
    pub sealed: bool,
    /// Whether this is started inside a worker, whose own walls stand already.
    pub already_namespaced: bool,
}

/// Something no confined program may open. Known by what it is: inside, its name may be another thing's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HiddenPath {
    pub path: PathBuf,
    device: u64,
    inode: u64,
}

impl HiddenPath {
    /// What is not there needs no hiding.
    pub fn from_path(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self { path: path.to_owned(), device: meta.dev(), inode: meta.ino() })
    }

    pub fn matches(&self, meta: &std::fs::Metadata) -> bool {
        (meta.dev(), meta.ino()) == (self.device, self.inode)
    }
}

/// What a worker is told of the walls it is in, so that those of its programs are described from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InheritedSandbox {
    pub own_proc: bool,
    pub own_temporary: bool,
    pub sealed: bool,
    /// The daemon's.
    pub namespaces: Vec<String>,
}

impl InheritedSandbox {
    /// In a worker's environment.
    pub const SANDBOX_VARIABLE: &str = "POLYCLAW_SANDBOX";

    pub fn from_environment() -> Option<Self> {
        serde_json::from_str(&std::env::var(Self::SANDBOX_VARIABLE).ok()?).ok()
    }
}

impl SandboxPlan {
    /// Everything the program may write, but for its `/tmp`.
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

/// What runs inside: a command of a model's, a worker of ours that confines commands further, or an MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxProfile {
    Command,
    Worker,
    /// Chosen by the operator, not by a model: it reads the machine but for what is hidden, and writes its own folder.
    Server,
}

/// How namespaces come about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamespaceMode {
    /// Made by the supervisor.
    Own,
    Bubblewrap(PathBuf),
    /// None: landlock, the filter and the supervisor alone.
    Bare,
}

/// What the helper says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelperMessage {
    /// The program starts now, under these.
    Facts(Box<ProgramConfinement>),
    /// This machine does not allow this way of building walls, now or later; another may be tried.
    NoNamespaces(String),
    /// It does not start.
    Refused(String),
    Ended(ReportedEnd),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportedEnd {
    Exited(i32),
    Signalled(i32),
    /// Killed by the supervisor: all processes together were over a limit.
    OverMemory(u64),
    OverProcesses(u64),
    /// Killed by the supervisor: the workspace held more than its quota.
    OverDisk(u64),
}

/// Writes one line to the daemon. Nobody is left to tell where this fails.
pub fn send_line(line: &HelperMessage) {
    let Ok(mut text) = serde_json::to_vec(line) else { return };
    text.push(b'\n');
    write_input(&text);
}

/// The standard input of a helper is a socket: it is written to as well.
fn write_input(mut text: &[u8]) {
    while !text.is_empty() {
        match rustix::io::write(std::io::stdin().as_fd(), text) {
            Ok(count) if count > 0 => text = &text[count..],
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Reads one line, byte by byte: what follows belongs to the next stage.
pub fn read_json_line<T: DeserializeOwned>(from: impl Read) -> Option<T> {
    let mut line = Vec::new();
    let mut bytes = BufReader::with_capacity(1, from.take(MAX_LINE_BYTES));
    bytes.read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

/// Hands a plan on to the next stage, through the pipe that is its standard error at first.
pub fn write_plan(plan: &SandboxPlan, mut to: impl Write) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(plan)?;
    text.push(b'\n');
    to.write_all(&text)
}
