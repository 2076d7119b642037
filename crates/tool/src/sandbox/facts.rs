//! Reads back the confinement that is in force. The plan is used only to know what to try.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;

use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::sandbox::{ConfinementProbe, LandlockFacts, ProgramConfinement};

use super::limits;
use super::plan::{HiddenPath, SandboxPlan, SandboxProfile};

/// A sample of machine-wide settings. They are opened for writing and never written.
const MACHINE_SETTINGS: [&str; 6] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/fs/suid_dumpable",
    "/proc/irq/default_smp_affinity",
    "/proc/sysrq-trigger",
    "/sys/kernel/profiling",
];
/// Files that reveal the kernel's memory, timers and keys.
const KERNEL_DETAILS: [&str; 4] = ["/proc/kpageflags", "/proc/slabinfo", "/proc/timer_list", "/proc/keys"];

const NAMESPACE_KINDS: [&str; 6] = ["user", "pid", "mnt", "net", "ipc", "uts"];

/// Returns this process's namespaces, in the kernel's notation.
pub fn current_namespaces() -> Vec<String> {
    let name = |kind: &&str| std::fs::read_link(format!("/proc/self/ns/{kind}"));
    NAMESPACE_KINDS.iter().filter_map(|kind| Some(name(kind).ok()?.to_string_lossy().into_owned())).collect()
}

/// Things that must be opened before file access is restricted.
pub struct PreConfinement {
    status: File,
    own_namespaces: Vec<String>,
}

impl PreConfinement {
    pub fn capture_state(of_daemon: &[String]) -> Result<Self, String> {
        let status =
            File::open("/proc/self/status").map_err(|error| format!("/proc/self/status: {error}"))?;
        let own = current_namespaces().into_iter().filter(|name| !of_daemon.contains(name)).collect();
        Ok(Self { status, own_namespaces: own })
    }

    pub fn has_own_namespace(&self, kind: &str) -> bool {
        self.own_namespaces.iter().any(|name| name.split(':').next() == Some(kind))
    }

    /// Collects the facts. The open status file shows the state when it is read, which is after confinement.
    pub fn collect_facts(
        mut self,
        plan: &SandboxPlan,
        landlock: Option<LandlockFacts>,
    ) -> Result<ProgramConfinement, String> {
        let mut status = String::new();
        self.status.read_to_string(&mut status).map_err(|error| format!("/proc/self/status: {error}"))?;
        let value = |key: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            found.map(str::trim).unwrap_or_default().to_owned()
        };
        Ok(ProgramConfinement {
            pid: std::process::id(),
            landlock,
            namespaces: self.own_namespaces,
            bubblewrap: plan.namespace_mode.is_bubblewrap(),
            no_new_privs: value("NoNewPrivs") == "1",
            seccomp: value("Seccomp").parse().unwrap_or(0),
            seccomp_filters: value("Seccomp_filters").parse().unwrap_or(0),
            capabilities: value("CapEff"),
            limits: limits::read_limits(),
            removal_only: plan.removal_only && !can_make_file(plan),
            tried: try_forbidden_access(plan),
        })
    }
}

fn try_forbidden_access(plan: &SandboxPlan) -> ConfinementProbe {
    let is_open = |hidden: &HiddenPath| {
        let opened = File::open(&hidden.path).and_then(|file| file.metadata());
        opened.is_ok_and(|meta| hidden.matches(&meta))
    };
    ConfinementProbe {
        outside: std::fs::read_dir("/").is_ok() || plan.hidden.iter().any(is_open),
        attributes: plan.hidden.iter().any(can_change),
        network: is_socket_allowed(UdpSocket::bind(("127.0.0.1", 0))),
        unix_sockets: is_socket_allowed(UnixDatagram::unbound()),
        machine: reaches_machine(plan.profile),
        listen: is_socket_allowed(TcpListener::bind(("127.0.0.1", 0))),
    }
}

fn can_make_file(plan: &SandboxPlan) -> bool {
    let probe = plan.workspace.join(format!(".polyclaw-quota-probe-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&probe).is_ok();
    if made {
        std::fs::remove_file(&probe).ok();
    }
    made
}

fn reaches_machine(profile: SandboxProfile) -> bool {
    let can_write = |path: &&str| OpenOptions::new().write(true).open(path).is_ok();
    // A worker without its own `/proc` may read all of it. It is trusted code; its programs may not.
    let can_read = |path: &&str| profile != SandboxProfile::Worker && File::open(path).is_ok();
    MACHINE_SETTINGS.iter().any(can_write) || KERNEL_DETAILS.iter().any(can_read)
}

/// Whether the mode of a hidden path can be changed. Sets the current mode again, which is harmless if it succeeds.
fn can_change(hidden: &HiddenPath) -> bool {
    let set = |meta: std::fs::Metadata| std::fs::set_permissions(&hidden.path, meta.permissions()).is_ok();
    std::fs::metadata(&hidden.path).is_ok_and(|meta| hidden.matches(&meta) && set(meta))
}

/// Whether a socket was allowed. Only a permission error counts as denied, because other failures may be temporary.
fn is_socket_allowed<T>(socket: io::Result<T>) -> bool {
    !matches!(socket, Err(error) if error.kind() == io::ErrorKind::PermissionDenied)
}

/// Returns an error if the confinement does not hold; the program is then not started.
pub fn verify_confinement(plan: &SandboxPlan, program: &ProgramConfinement) -> Result<(), String> {
    if plan.mode == SandboxMode::Off {
        return Ok(());
    }
    let holds = [
        (program.no_new_privs, "no_new_privs is not set"),
        (program.seccomp == 2, "no seccomp filter is active"),
        (program.capabilities.chars().all(|digit| digit == '0'), "capabilities are not dropped"),
        (!program.tried.outside, "files outside the workspace can be read"),
        (!program.tried.attributes, "permissions of files outside the workspace can be changed"),
        (!program.tried.unix_sockets, "Unix sockets of this machine can be opened"),
        (!program.tried.machine, "machine-wide settings or information can be opened"),
        (plan.mode != SandboxMode::Strict || !program.tried.network, "the network can be reached"),
        (plan.listen || !program.tried.listen, "it can listen for connections"),
        (
            plan.removal_only == program.removal_only,
            "files can be created in a workspace that exceeds its quota",
        ),
        (program.limits.core_bytes == Some(0), "core dumps can be written"),
    ];
    match holds.iter().find(|(holds, _)| !holds) {
        Some((_, why)) => Err((*why).to_owned()),
        None => Ok(()),
    }
}
