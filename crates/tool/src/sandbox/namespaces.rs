//! Namespaces: processes, mounts and networks of the host are not forbidden inside, they do not exist there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use polyclaw_domain::agent::SandboxMode;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};

use rustix::thread::{CapabilitySet, CapabilitySets};

use super::plan::SandboxPlan;
use super::proc;

const TEMPORARY_FOLDER: &str = "/tmp";
const SHARED_MEMORY: &str = "/dev/shm";
const NO_DEVICE_FLAGS: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Enters new namespaces. The next child becomes the first process of the new process namespace.
pub fn enter_namespaces(plan: &SandboxPlan) -> io::Result<()> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mut new = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    if plan.mode == SandboxMode::Strict {
        new |= CloneFlags::CLONE_NEWNET;
    }
    unshare(new).map_err(|error| no_namespaces(error.into()))?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    keep_capabilities()
}

/// The kernel reports a lack of space if the machine allows no more user namespaces. Converts that into a permission
/// error.
fn no_namespaces(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::StorageFull => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the limit of user namespaces is reached (max_user_namespaces)",
        ),
        _ => error,
    }
}

/// Keeps capabilities inside the namespace for the next stage; an ordinary user would lose them at the first exec. The
/// last stage drops all of them.
fn keep_capabilities() -> io::Result<()> {
    let now = rustix::thread::capabilities(None)?;
    let sets = CapabilitySets { inheritable: now.permitted, ..now };
    rustix::thread::set_capabilities(None, sets)?;
    // `SYS_PTRACE` is for open files and maps of programs whose executable is not readable.
    let needed = [
        CapabilitySet::SYS_ADMIN,
        CapabilitySet::SETPCAP,
        CapabilitySet::DAC_OVERRIDE,
        CapabilitySet::SYS_PTRACE,
    ];
    for needed in needed {
        rustix::thread::configure_capability_in_ambient_set(needed, true)?;
    }
    Ok(())
}

/// Returns the command that starts the next stage in bubblewrap's namespaces.
pub fn bubblewrap_command(plan: &SandboxPlan, path: &Path) -> io::Result<Vec<String>> {
    // Resolved now, because inside the command `/proc/self/exe` would be bubblewrap.
    let own = fs::read_link("/proc/self/exe")?.to_string_lossy().into_owned();
    let wrap = bubblewrap_arguments(plan, path)?;
    Ok(wrap.into_iter().chain([own]).chain(plan.helper[1..].iter().cloned()).collect())
}

fn bubblewrap_arguments(plan: &SandboxPlan, path: &Path) -> io::Result<Vec<String>> {
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
    add(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", SHARED_MEMORY]);
    add(&["--bind", &text(&plan.temporary), TEMPORARY_FOLDER]);
    for kept in below_temporary(plan) {
        add(&["--ro-bind", &text(&kept), &text(&kept)]);
    }
    for path in plan.written_paths() {
        add(&["--bind", &text(path), &text(path)]);
    }
    let closed = proc::MaskSource::create_in(&plan.temporary)?;
    for (path, is_folder) in proc::masked_entries() {
        add(&["--ro-bind", &text(closed.path_for(is_folder)), &text(&path)]);
    }
    add(&["--remount-ro", "/proc", "--"]);
    Ok(words)
}

/// Whether the machine does not allow namespaces, as opposed to a temporary failure.
pub fn is_permanent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, NotFound, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(error.kind(), InvalidInput | NotFound | PermissionDenied | ReadOnlyFilesystem | Unsupported)
}

/// Sets up the mounts of the new namespace, all or nothing: a partial setup would not confine, and a `/proc` of another
/// namespace names other processes.
pub fn set_up_mounts(plan: &mut SandboxPlan) -> io::Result<()> {
    if !plan.namespace_mode.is_bubblewrap() {
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        mount("proc", "/proc", "proc", NO_DEVICE_FLAGS | MountFlags::NOEXEC, None)?;
        replace_temporary(plan)?;
        proc::mask_proc(Path::new(SHARED_MEMORY))?;
        mount("shm", SHARED_MEMORY, "tmpfs", NO_DEVICE_FLAGS, Some(c"size=64m,mode=1777"))?;
        seal_mounts(plan)?;
    }
    (plan.own_proc, plan.own_temporary, plan.sealed) = (true, true, true);
    if has_own_process_ids() {
        // The kernel does not reuse ids below 300, so the range for running processes starts above it.
        let most = 300 + 2 * plan.limits.processes.unwrap_or(16_384).max(16);
        fs::write("/proc/sys/kernel/pid_max", most.to_string()).ok();
    }
    if !plan.namespace_mode.is_bubblewrap() {
        let flags = MountFlags::BIND | MountFlags::RDONLY | NO_DEVICE_FLAGS | MountFlags::NOEXEC;
        mount_remount("/proc", flags, c"")?;
    }
    Ok(())
}

/// Since Linux 6.14 each process namespace has its own `pid_max`. Before, root would change the one of the whole
/// machine.
fn has_own_process_ids() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|word| word.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

/// Makes all mounts read-only except writable paths, because landlock does not restrict changes of modes and owners.
fn seal_mounts(plan: &SandboxPlan) -> io::Result<()> {
    for path in plan.written_paths() {
        mount_bind_recursive(path, path)?;
    }
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    for line in table.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, _, _, _, point, options, ..] = words[..] else { continue };
        let point = unescape_mount_point(point);
        let is_open = plan.written_paths().any(|path| point.starts_with(path))
            || [TEMPORARY_FOLDER, SHARED_MEMORY].iter().any(|open| point == Path::new(open))
            || point.starts_with("/proc");
        if is_open {
            continue;
        }
        match mount_remount(
            &point,
            MountFlags::BIND | MountFlags::RDONLY | retained_mount_flags(options),
            c"",
        ) {
            Ok(()) => {}
            // Another mount covers this one, so nothing in it can be reached by this path.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Decodes a mount point: the kernel writes blanks and similar characters in octal.
fn unescape_mount_point(point: &str) -> PathBuf {
    let octal = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    PathBuf::from(octal.iter().fold(point.to_owned(), |text, (code, message)| text.replace(code, message)))
}

/// Returns the options that a mount must keep. A namespace may add options and never remove them.
fn retained_mount_flags(options: &str) -> MountFlags {
    let known = [
        ("nosuid", MountFlags::NOSUID),
        ("nodev", MountFlags::NODEV),
        ("noexec", MountFlags::NOEXEC),
        ("noatime", MountFlags::NOATIME),
        ("nodiratime", MountFlags::NODIRATIME),
        ("relatime", MountFlags::RELATIME),
    ];
    let has = |name: &str| options.split(',').any(|option| option == name);
    known.iter().filter(|(name, _)| has(name)).fold(MountFlags::empty(), |flags, (_, flag)| flags | *flag)
}

/// Mounts the run's own folder over `/tmp`, with the paths below `/tmp` that must stay reachable.
fn replace_temporary(plan: &SandboxPlan) -> io::Result<()> {
    for kept in below_temporary(plan) {
        let inside = kept.strip_prefix(TEMPORARY_FOLDER).map_err(|_| io::ErrorKind::InvalidInput)?;
        let place = plan.temporary.join(inside);
        if kept.is_dir() {
            fs::create_dir_all(&place)?;
        } else {
            fs::create_dir_all(place.parent().unwrap_or(&place))?;
            fs::write(&place, "")?;
        }
        mount_bind_recursive(&kept, &place)?;
    }
    Ok(mount_bind_recursive(&plan.temporary, TEMPORARY_FOLDER)?)
}

fn below_temporary(plan: &SandboxPlan) -> Vec<PathBuf> {
    // The helper starts itself once more inside.
    let own = fs::read_link("/proc/self/exe").ok();
    let wanted = plan.written_paths().chain(&plan.readable).chain(&own);
    let below = wanted.filter(|path| path.starts_with(TEMPORARY_FOLDER) && path.exists()).cloned();
    outermost_paths(below.collect(), &plan.workspace)
}

/// Drops paths that are below another one: mounting them separately would overwrite the original. The workspace stays a
/// mount of its own, because only it is writable.
fn outermost_paths(mut paths: Vec<PathBuf>, workspace: &Path) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        if path == workspace || !kept.iter().any(|outer| path.starts_with(outer)) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_user_namespaces_are_a_permanent_error() {
        let full = io::Error::from_raw_os_error(libc::ENOSPC);
        assert!(!is_permanent(&full), "a full disk is not for good");
        assert!(is_permanent(&no_namespaces(full)));
    }

    #[test]
    fn nested_paths_are_not_mounted_twice() {
        let kept = |paths: &[&str], workspace: &str| {
            let kept = outermost_paths(paths.iter().map(PathBuf::from).collect(), Path::new(workspace));
            kept.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(kept(&["/tmp/x", "/tmp/x/a.txt", "/tmp/x/bin/polyclaw"], "/tmp/x"), ["/tmp/x"]);
        assert_eq!(kept(&["/tmp/x/work", "/tmp/x"], "/tmp/x/work"), ["/tmp/x", "/tmp/x/work"]);
        assert_eq!(kept(&["/tmp/x", "/tmp/xy"], "/tmp/x"), ["/tmp/x", "/tmp/xy"]);
    }
}
