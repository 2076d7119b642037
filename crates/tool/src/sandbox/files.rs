//! Files: what a program may open, as landlock rules. Everything that is not listed is closed.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::sandbox::LandlockFacts;

use super::plan::{Plan, Profile};
use super::survey;

/// Without these rights landlock would leave a hole: files outside could be cut to nothing.
const LEAST: ABI = ABI::V3;
/// Taken where the kernel has it: devices, network, signals and abstract sockets.
const NEWEST: ABI = ABI::V6;

/// Programs and what they are made of.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/sys/devices/system"];

/// Of `/etc`, what programs need and everybody may know: no password hashes, no host keys.
const ETC: [&str; 44] = [
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

/// Of a `/proc` that shows everybody's processes, what is about the machine.
const PROC: [&str; 9] =
    ["cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "sys/kernel", "sys/vm", "uptime", "version"];

const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Closes the file system to this process but for what the plan names.
pub fn close(plan: &Plan) -> Result<LandlockFacts, String> {
    let refused = |error: RulesetError| format!("landlock: {error}");
    let mut ruleset = ruleset(plan).map_err(refused)?;
    let mut count = 0;
    for (path, access) in rules(plan) {
        // What is not there needs no exception.
        let Ok(fd) = PathFd::new(&path) else { continue };
        ruleset = ruleset.add_rule(PathBeneath::new(fd, for_kind(&path, access))).map_err(refused)?;
        count += 1;
    }
    let status = ruleset.restrict_self().map_err(refused)?;
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        _ => return Err("this kernel has no landlock".to_owned()),
    };
    let enforced = match status.ruleset {
        RulesetStatus::FullyEnforced => "fully",
        RulesetStatus::PartiallyEnforced => "partially",
        RulesetStatus::NotEnforced => return Err("landlock is not enforced by this kernel".to_owned()),
    };
    Ok(LandlockFacts { abi, enforced: enforced.to_owned(), rules: count })
}

fn ruleset(plan: &Plan) -> Result<RulesetCreated, RulesetError> {
    let files = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let files = files.handle_access(AccessFs::from_all(LEAST))?.set_compatibility(CompatLevel::BestEffort);
    let mut all = files.handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?;
    if plan.mode == SandboxMode::Strict {
        all = all.handle_access(AccessNet::from_all(NEWEST))?;
    } else if !plan.listen {
        all = all.handle_access(AccessNet::BindTcp)?;
    }
    all.create()
}

fn rules(plan: &Plan) -> Vec<(PathBuf, BitFlags<AccessFs>)> {
    let (all, read) = (AccessFs::from_all(NEWEST), AccessFs::from_read(NEWEST));
    let look = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let own = all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let temporary = if plan.own_temporary { PathBuf::from("/tmp") } else { plan.temporary.clone() };
    let mut rules = vec![(temporary, own)];
    rules.extend(plan.written().map(|path| (path.clone(), own)));
    if plan.profile == Profile::Server {
        rules.extend(survey::readable_except_hidden(plan).into_iter().map(|path| (path, read)));
    }
    if plan.own_temporary {
        rules.push((PathBuf::from("/dev/shm"), own));
    }
    if plan.profile == Profile::Worker {
        // Ourselves as we run, to start programs with; even where an update has taken the name.
        rules.push((PathBuf::from("/proc/self/exe"), read));
    }
    rules.extend(plan.readable.iter().map(|path| (path.clone(), read)));
    rules.extend(SYSTEM.iter().map(|path| (PathBuf::from(path), read)));
    rules.extend(ETC.iter().map(|name| (Path::new("/etc").join(name), look)));
    rules.extend(DEVICES.iter().map(|path| (PathBuf::from(path), device)));
    // Never for writing: most of what can be written there belongs to the whole machine. A worker must find the processes
    // it is to end; what is theirs alone stays closed to it.
    if plan.own_proc || plan.profile == Profile::Worker {
        rules.push((PathBuf::from("/proc"), look));
    } else {
        rules.extend(PROC.iter().map(|name| (Path::new("/proc").join(name), look)));
    }
    rules
}

/// A file takes only the rights that files have.
fn for_kind(path: &Path, access: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) }
}
