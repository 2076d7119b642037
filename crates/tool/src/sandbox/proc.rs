//! `/proc` as confined programs see it: their own processes and a few facts about the machine. The rest is closed, as
//! containers do it: root may read all of it, and being root in a user namespace does not change that.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};

/// What programs read to learn about the machine they are on. Everything else beside their processes is masked.
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

/// Something nobody can read, to lie over a file or a folder. Without a device's rules: those would open it for writing.
pub struct MaskSource {
    file: PathBuf,
    folder: PathBuf,
}

impl MaskSource {
    pub fn create_in(inside: &Path) -> io::Result<Self> {
        let (file, folder) = (inside.join(".closed"), inside.join(".closed.d"));
        fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(&file)?;
        // Empty, and not quite closed: who removes it has to look into it.
        fs::DirBuilder::new().mode(0o500).create(&folder)?;
        Ok(Self { file, folder })
    }

    pub fn path_for(&self, is_folder: bool) -> &Path {
        if is_folder { &self.folder } else { &self.file }
    }
}

/// What is to be masked, and whether it is a folder.
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

/// Mounts something nobody can open over each. `scratch` is a folder that is mounted over afterwards.
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
