//! Namespaces: other processes, mounts and networks are not forbidden inside, they are not there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use polyclaw_domain::agent::SandboxMode;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};

use super::plan::{Plan, Way};

const TEMPORARY: &str = "/tmp";
const SHARED_MEMORY: &str = "/dev/shm";
const NO_DEVICES: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Leaves the daemon's namespaces. Whoever is started next is the first process of the new one.
pub fn leave(plan: &Plan) -> io::Result<()> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mut new = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    if plan.mode == SandboxMode::Strict {
        new |= CloneFlags::CLONE_NEWNET;
    }
    unshare(new)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// The command that starts what follows in bubblewrap's namespaces.
pub fn bubblewrap(plan: &Plan, path: &Path) -> io::Result<Vec<String>> {
    // Not /proc/self/exe: that would be bubblewrap.
    let own = fs::read_link("/proc/self/exe")?.to_string_lossy().into_owned();
    let wrap = bubblewrap_arguments(plan, path);
    Ok(wrap.into_iter().chain([own]).chain(plan.helper[1..].iter().cloned()).collect())
}

fn bubblewrap_arguments(plan: &Plan, path: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut words = vec![text(path)];
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    add(&[
        "--die-with-parent",
        "--as-pid-1",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
    ]);
    if plan.mode == SandboxMode::Strict {
        add(&["--unshare-net"]);
    }
    add(&["--dev-bind", "/", "/", "--proc", "/proc", "--tmpfs", SHARED_MEMORY]);
    add(&["--bind", &text(&plan.temporary), TEMPORARY]);
    for kept in below_temporary(plan) {
        add(&["--bind", &text(&kept), &text(&kept)]);
    }
    add(&["--"]);
    words
}

/// Arranges the mounts of the new namespace. What can not be arranged is done without, and said so in the plan.
pub fn furnish(plan: &mut Plan) {
    if matches!(plan.way, Way::Bubblewrap(_)) {
        (plan.own_proc, plan.own_temporary) = (true, true);
    } else if mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).is_ok() {
        plan.own_proc = mount("proc", "/proc", "proc", NO_DEVICES | MountFlags::NOEXEC, None).is_ok();
        plan.own_temporary = replace_temporary(plan).is_ok();
        mount("shm", SHARED_MEMORY, "tmpfs", NO_DEVICES, Some(c"size=64m,mode=1777")).ok();
    }
    // Since Linux 6.14 the most process ids a namespace has; the kernel takes no less than 301.
    let most = plan.limits.processes.unwrap_or(32_768).max(301);
    fs::write("/proc/sys/kernel/pid_max", most.to_string()).ok();
}

/// Puts the run's own folder over `/tmp`, with what it must still reach below that name.
fn replace_temporary(plan: &Plan) -> io::Result<()> {
    for kept in below_temporary(plan) {
        let inside = kept.strip_prefix(TEMPORARY).map_err(|_| io::ErrorKind::InvalidInput)?;
        let place = plan.temporary.join(inside);
        if kept.is_dir() {
            fs::create_dir_all(&place)?;
        } else {
            fs::create_dir_all(place.parent().unwrap_or(&place))?;
            fs::write(&place, "")?;
        }
        mount_bind_recursive(&kept, &place)?;
    }
    Ok(mount_bind_recursive(&plan.temporary, TEMPORARY)?)
}

fn below_temporary(plan: &Plan) -> Vec<PathBuf> {
    let wanted = [&plan.workspace].into_iter().chain(&plan.readable);
    wanted.filter(|path| path.starts_with(TEMPORARY) && path.exists()).cloned().collect()
}
