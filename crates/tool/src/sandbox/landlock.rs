//! Landlock rules: the paths that a program may open. Everything else is closed.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::sandbox::LandlockFacts;

use super::plan::{SandboxPlan, SandboxProfile};
use super::survey;

/// Older versions cannot prevent truncating files outside.
const MIN_LANDLOCK_ABI: ABI = ABI::V3;
/// Used if the kernel supports it: devices, network, signals and abstract sockets.
const MAX_LANDLOCK_ABI: ABI = ABI::V6;

/// Programs and their libraries.
const SYSTEM_PATHS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/sys/devices/system"];

/// Parts of `/etc` that programs need and everyone may read; no password hashes, no host keys.
const ETC_FILES: [&str; 44] = [
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "environment",
    "fonts",
    "gai.conf",
    "gitconfig",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "inputrc",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "locale.alias",
    "locale.conf",
    "locale.gen",
    "localtime",
    "lsb-release",
    "machine-info",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki/tls/certs",
    "profile",
    "profile.d",
    "protocols",
    "python3",
    "resolv.conf",
    "services",
    "shells",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "vimrc",
];

/// Machine information in a `/proc` that shows the processes of all users.
const PROC_FILES: [&str; 9] =
    ["cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "sys/kernel", "sys/vm", "uptime", "version"];

const DEVICE_FILES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Closes the file system to this process except for the paths of the plan.
pub fn apply_landlock(plan: &SandboxPlan) -> Result<LandlockFacts, String> {
    let refused = |error: RulesetError| format!("landlock: {error}");
    let mut ruleset = new_ruleset(plan).map_err(refused)?;
    let mut count = 0;
    for (path, access) in path_rules(plan) {
        // A missing path needs no rule.
        let Ok(fd) = PathFd::new(&path) else { continue };
        if path == plan.workspace {
            check_workspace_id(&fd, plan)?;
        }
        ruleset = ruleset.add_rule(PathBeneath::new(fd, access_for_kind(&path, access))).map_err(refused)?;
        count += 1;
    }
    let status = ruleset.restrict_self().map_err(refused)?;
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        _ => return Err("this kernel does not support landlock".to_owned()),
    };
    let enforced = match status.ruleset {
        RulesetStatus::FullyEnforced => "fully",
        RulesetStatus::PartiallyEnforced => "partially",
        RulesetStatus::NotEnforced => return Err("landlock is not enforced by this kernel".to_owned()),
    };
    Ok(LandlockFacts { abi, enforced: enforced.to_owned(), rules: count })
}

/// The rule must be for the folder that the daemon meant, even if a link has taken the place of a folder above it.
fn check_workspace_id(opened: &PathFd, plan: &SandboxPlan) -> Result<(), String> {
    let stat = rustix::fs::fstat(opened).map_err(|error| format!("cannot read its workspace: {error}"))?;
    match (stat.st_dev, stat.st_ino) == plan.workspace_id {
        true => Ok(()),
        false => Err("its workspace was replaced by another folder during startup".to_owned()),
    }
}

fn new_ruleset(plan: &SandboxPlan) -> Result<RulesetCreated, RulesetError> {
    let files = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let files =
        files.handle_access(AccessFs::from_all(MIN_LANDLOCK_ABI))?.set_compatibility(CompatLevel::BestEffort);
    let mut all = files
        .handle_access(AccessFs::from_all(MAX_LANDLOCK_ABI))?
        .scope(Scope::from_all(MAX_LANDLOCK_ABI))?;
    if plan.mode == SandboxMode::Strict {
        all = all.handle_access(AccessNet::from_all(MAX_LANDLOCK_ABI))?;
    } else if !plan.listen {
        all = all.handle_access(AccessNet::BindTcp)?;
    }
    all.create()
}

fn path_rules(plan: &SandboxPlan) -> Vec<(PathBuf, BitFlags<AccessFs>)> {
    let (all, read) = (AccessFs::from_all(MAX_LANDLOCK_ABI), AccessFs::from_read(MAX_LANDLOCK_ABI));
    let look = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let own = if plan.removal_only {
        read | AccessFs::RemoveFile | AccessFs::RemoveDir | AccessFs::Truncate
    } else {
        all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
    };
    let temporary = if plan.own_temporary { PathBuf::from("/tmp") } else { plan.temporary.clone() };
    let mut rules = vec![(temporary, own)];
    rules.extend(plan.written_paths().map(|path| (path.clone(), own)));
    if plan.profile == SandboxProfile::Server {
        rules.extend(survey::readable_except_hidden(plan).into_iter().map(|path| (path, read)));
    }
    if plan.own_temporary {
        rules.push((PathBuf::from("/dev/shm"), own));
    }
    if plan.profile == SandboxProfile::Worker {
        // This executable as it runs, also if an update has replaced the file, to start programs with.
        rules.push((PathBuf::from("/proc/self/exe"), read));
    }
    rules.extend(plan.readable.iter().map(|path| (path.clone(), read)));
    rules.extend(SYSTEM_PATHS.iter().map(|path| (PathBuf::from(path), read)));
    rules.extend(ETC_FILES.iter().map(|name| (Path::new("/etc").join(name), look)));
    rules.extend(DEVICE_FILES.iter().map(|path| (PathBuf::from(path), device)));
    // Never for writing, because most of it affects the whole machine. A worker must find the processes that it ends;
    // their private files stay closed to it.
    if plan.own_proc || plan.profile == SandboxProfile::Worker {
        rules.push((PathBuf::from("/proc"), look));
    } else {
        rules.extend(PROC_FILES.iter().map(|name| (Path::new("/proc").join(name), look)));
    }
    rules
}

/// Limits the rights of a file to those that apply to files.
fn access_for_kind(path: &Path, access: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    if path.is_dir() { access } else { access & AccessFs::from_file(MAX_LANDLOCK_ABI) }
}
