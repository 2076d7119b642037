//! Confinement as measured. Facts are read back from the confined process itself, never copied from a setting.

use serde::{Deserialize, Serialize};

use crate::agent::{SandboxMode, SandboxSettings, ToolIsolation};

/// The confinement in force while one tool ran. Stored with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxFacts {
    pub mode: SandboxMode,
    pub isolation: ToolIsolation,
    /// The pid of the worker process that ran the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// Number of worker processes that ended during this call.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub crashes: u32,
    /// Why no worker process ran the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<WorkerFault>,
    /// How paths were opened, for a file tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FileResolution>,
    /// The confinement of the program that the tool started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<ProgramConfinement>>,
}

/// Why a call that was to run in a worker process has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerFault {
    /// No worker became free in time.
    PoolExhausted,
    /// The worker ended during the call.
    WorkerCrash,
}

impl WorkerFault {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PoolExhausted => "pool_exhausted",
            Self::WorkerCrash => "worker_crash",
        }
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The rules by which the kernel resolved a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileResolution {
    pub resolved: String,
}

/// A program's confinement, as its process measured it just before `exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramConfinement {
    /// The pid of the program, to inspect it while it runs.
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock: Option<LandlockFacts>,
    /// Namespaces that differ from the daemon's, as the kernel names them: `pid:[4026532201]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Whether bubblewrap created the namespaces.
    pub bubblewrap: bool,
    pub no_new_privs: bool,
    /// The seccomp mode: 0 is none, 2 is filtered.
    pub seccomp: u32,
    pub seccomp_filters: u32,
    /// Remaining capabilities, as the kernel writes them.
    pub capabilities: String,
    pub limits: ProgramLimits,
    /// The workspace held more than its quota: the program could read and remove, and nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removal_only: bool,
    /// Tried, not assumed.
    pub tried: ConfinementProbe,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockFacts {
    pub abi: u32,
    /// `fully` or `partially`, as the kernel enforces the ruleset.
    pub enforced: String,
    /// Number of rules in the ruleset, each an exception to "nothing allowed".
    pub rules: u32,
}

/// What the process could still do after it was confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfinementProbe {
    /// List `/`, or open one of the hidden paths.
    pub outside: bool,
    /// Set the mode of a hidden path to its current value.
    pub attributes: bool,
    /// Open an internet socket.
    pub network: bool,
    /// Open a Unix socket.
    pub unix_sockets: bool,
    /// Open a machine-wide file: for writing, or one that reveals kernel details.
    #[serde(default)]
    pub machine: bool,
    /// Listen for TCP connections.
    #[serde(default)]
    pub listen: bool,
}

/// Limits of one program, as `getrlimit` returned them. `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramLimits {
    pub memory_mb: Option<u64>,
    pub cpu_seconds: Option<u64>,
    pub processes: Option<u64>,
    pub file_mb: Option<u64>,
    pub open_files: Option<u64>,
    pub core_bytes: Option<u64>,
}

/// Defaults of limits that an agent does not set.
pub const DEFAULT_MEMORY_MB: u32 = 2048;
pub const DEFAULT_CPU_SECONDS: u32 = 600;
pub const DEFAULT_MAX_PROCESSES: u32 = 256;
pub const DEFAULT_FILE_MB: u32 = 1024;
pub const DEFAULT_OPEN_FILES: u32 = 1024;
pub const DEFAULT_DISK_MB: u32 = 10_240;

impl SandboxSettings {
    /// Returns the limits to set, with defaults filled in.
    pub fn program_limits(&self) -> ProgramLimits {
        let or = |own: Option<u32>, usual: u32| Some(u64::from(own.unwrap_or(usual)));
        ProgramLimits {
            memory_mb: or(self.memory_mb, DEFAULT_MEMORY_MB),
            cpu_seconds: or(self.cpu_seconds, DEFAULT_CPU_SECONDS),
            processes: or(self.processes, DEFAULT_MAX_PROCESSES),
            file_mb: or(self.file_mb, DEFAULT_FILE_MB),
            open_files: Some(DEFAULT_OPEN_FILES.into()),
            core_bytes: Some(0),
        }
    }

    /// Returns the maximum size of the workspace, in MiB.
    pub fn disk_limit_mb(&self) -> u64 {
        self.disk_mb.unwrap_or(DEFAULT_DISK_MB).into()
    }

    pub fn is_enabled(&self) -> bool {
        self.mode != SandboxMode::Off
    }
}

impl SandboxMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::Strict => "strict",
        }
    }
}

impl SandboxFacts {
    /// Returns a one-line summary for people, most important first.
    pub fn summary_line(&self) -> String {
        let mut words = vec![format!("sandbox {}", self.mode.as_str())];
        if let Some(files) = &self.files {
            words.push(files.resolved.clone());
        }
        if let Some(program) = &self.program {
            program.append_summary(&mut words);
        }
        words.extend(self.worker.map(|pid| format!("worker {pid}")));
        words.join(" · ")
    }
}

impl ProgramConfinement {
    fn append_summary(&self, words: &mut Vec<String>) {
        words.extend(self.landlock.as_ref().map(|landlock| format!("landlock {}", landlock.abi)));
        if self.seccomp > 0 {
            words.push("seccomp".to_owned());
        }
        let own: Vec<&str> = self.namespaces.iter().filter_map(|name| name.split(':').next()).collect();
        if !own.is_empty() {
            let by = if self.bubblewrap { " by bubblewrap" } else { "" };
            words.push(format!("own {}{by}", own.join(", ")));
        }
        words.push(if self.tried.network { "network" } else { "no network" }.to_owned());
        words.extend(self.limits.memory_mb.map(|size| format!("{size} MiB")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_line_reports_measured_confinement() {
        let limits = SandboxSettings::default().program_limits();
        let program = ProgramConfinement {
            pid: 7,
            landlock: Some(LandlockFacts { abi: 7, enforced: "fully".to_owned(), rules: 20 }),
            namespaces: vec!["pid:[4026532201]".to_owned(), "net:[4026532202]".to_owned()],
            bubblewrap: false,
            no_new_privs: true,
            seccomp: 2,
            seccomp_filters: 2,
            capabilities: "0000000000000000".to_owned(),
            limits,
            removal_only: false,
            tried: ConfinementProbe {
                outside: false,
                attributes: false,
                network: false,
                unix_sockets: false,
                machine: false,
                listen: false,
            },
        };
        let facts = SandboxFacts {
            mode: SandboxMode::Strict,
            isolation: ToolIsolation::InProcess,
            worker: None,
            crashes: 0,
            fault: None,
            files: None,
            program: Some(Box::new(program)),
        };
        assert_eq!(
            facts.summary_line(),
            "sandbox strict · landlock 7 · seccomp · own pid, net · no network · 2048 MiB"
        );
    }

    #[test]
    fn agent_limits_override_default_limits() {
        let sandbox = SandboxSettings { memory_mb: Some(64), ..SandboxSettings::default() };
        assert_eq!(sandbox.program_limits().memory_mb, Some(64));
        assert_eq!(sandbox.program_limits().file_mb, Some(1024));
        assert_eq!(sandbox.program_limits().core_bytes, Some(0));
    }
}
