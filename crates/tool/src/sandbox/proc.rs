//! `/proc` in a sandbox: the program's own processes and a few facts about the machine. The rest is masked, as in
//! containers: root may read it, and a root user keeps that right in a user namespace.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};

/// Entries about the machine that programs need. All others, except processes, are masked.
const VISIBLE_PROC_ENTRIES: [&str; 19] = [
    "cgroups",
    "cmdline",
    "cpuinfo",
    "devices",
    "diskstats",
    "filesystems",
    "loadavg",
    "meminfo",
    "mounts",
    "net",
    "partitions",
    "self",
    "stat",
    "swaps",
    "sys",
    "thread-self",
    "uptime",
    "version",
    "vmstat",
];

/// An unreadable file and folder to mount over others. No device is used, because device rules would open it for
/// writing.
pub struct MaskSource {
    file: PathBuf,
    folder: PathBuf,
}

impl MaskSource {
    pub fn create_in(inside: &Path) -> io::Result<Self> {
        let (file, folder) = (inside.join(".closed"), inside.join(".closed.d"));
        fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(&file)?;
        // Empty and still readable, because removing it requires listing it.
        fs::DirBuilder::new().mode(0o500).create(&folder)?;
        Ok(Self { file, folder })
    }

    pub fn path_for(&self, is_folder: bool) -> &Path {
        if is_folder { &self.folder } else { &self.file }
    }
}

/// Returns the entries to mask, and whether each is a folder.
pub fn masked_entries() -> Vec<(PathBuf, bool)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_masked = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        !VISIBLE_PROC_ENTRIES.contains(&name.as_ref()) && !name.bytes().all(|byte| byte.is_ascii_digit())
    };
    let path = |entry: fs::DirEntry| (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()));
    entries.filter(is_masked).map(path).collect()
}

/// Mounts an inaccessible file or folder over each entry. `scratch` is a folder that is mounted over afterwards.
pub fn mask_proc(scratch: &Path) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("closed", scratch, "tmpfs", flags, Some(c"size=64k,mode=700"))?;
    let closed = MaskSource::create_in(scratch)?;
    mount_remount(scratch, flags | MountFlags::RDONLY, c"")?;
    for (path, is_folder) in masked_entries() {
        mount_bind(closed.path_for(is_folder), &path)?;
    }
    Ok(())
}
