//! Usage of running programs that neither folders nor kernel counters show: unlinked files, and shared memory that is
//! mapped but not resident.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polyclaw_tree::{disk_bytes, file_identity};
use rustix::fs::FileType;
use rustix::process::Pid;

/// Pause between two scans of memory maps, as a multiple of the duration of a scan: programs can have thousands of maps.
const PAUSE_PER_LOOK: u32 = 10;

/// Returns the bytes of unlinked files that processes have open, on the disks of these folders.
pub fn unlinked_bytes(processes: &[Pid], folders: &[&PathBuf]) -> u64 {
    let stats = folders.iter().filter_map(|folder| rustix::fs::stat(folder.as_path()).ok());
    let disks: BTreeSet<u64> = stats.map(|stat| stat.st_dev).collect();
    let mut seen = BTreeSet::new();
    let mut used: u64 = 0;
    for pid in processes {
        let open = format!("/proc/{}/fd", pid.as_raw_nonzero());
        for entry in fs::read_dir(open).into_iter().flatten().flatten() {
            let Ok(stat) = rustix::fs::stat(entry.path()) else { continue };
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if is_file
                && stat.st_nlink == 0
                && disks.contains(&stat.st_dev)
                && seen.insert(file_identity(&stat))
            {
                used = used.saturating_add(disk_bytes(&stat));
            }
        }
    }
    used
}

/// Memory that processes share without a file on disk.
///
/// Counted by the size of its maps: a page released with `MADV_DONTNEED` stays in memory but leaves the program's
/// resident size, and `RLIMIT_DATA` covers private maps only. The kernel shows the pages of such an object only to
/// root, so a map may count for more than was written to it.
#[derive(Default)]
pub struct SharedMemory {
    /// The largest size seen of each object that is still mapped: unmapping a part frees nothing.
    objects: HashMap<String, u64>,
    next: Option<Instant>,
}

impl SharedMemory {
    /// Returns the KiB of all shared objects of these processes. Returns the last result if the last scan is recent.
    pub fn look_kb(&mut self, processes: &[Pid]) -> u64 {
        let began = Instant::now();
        if self.next.is_none_or(|next| next <= began) {
            let mut found = HashMap::new();
            for pid in processes {
                let maps = fs::read(Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("maps"));
                note_maps(&String::from_utf8_lossy(&maps.unwrap_or_default()), &mut found);
            }
            for (object, size) in &mut found {
                *size = self.objects.get(object).copied().unwrap_or(0).max(*size);
            }
            self.objects = found;
            let took: Duration = began.elapsed();
            self.next = Some(began + took * PAUSE_PER_LOOK);
        }
        self.objects.values().fold(0_u64, |all, size| all.saturating_add(*size)) / 1024
    }
}

/// Records the extent of each shared object, from the lines of a process's maps:
/// `7f0000000000-7f0001000000 rw-s 00000000 00:01 1234    /dev/zero (deleted)`.
fn note_maps(maps: &str, found: &mut HashMap<String, u64>) {
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let mut word = || words.next().unwrap_or_default();
        let (range, mode, offset, device, inode) = (word(), word(), word(), word(), word());
        let path = word();
        let in_memory =
            ["/dev/zero", "/memfd:", "/SYSV", "/dev/shm/"].iter().any(|start| path.starts_with(start));
        if !mode.ends_with('s') || !in_memory {
            continue;
        }
        let number = |hex: &str| u64::from_str_radix(hex, 16).unwrap_or(0);
        let (from, to) = range.split_once('-').unwrap_or_default();
        let reach = number(offset).saturating_add(number(to).saturating_sub(number(from)));
        let size = found.entry(format!("{device} {inode}")).or_default();
        *size = reach.max(*size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_objects_are_counted_once_and_files_ignored() {
        let maps = "7f0000000000-7f0001000000 rw-s 00000000 00:01 1234       /dev/zero (deleted)\n\
                    7f0001000000-7f0001001000 rw-s 00fff000 00:01 1234       /dev/zero (deleted)\n\
                    7f0002000000-7f0002100000 rw-s 00000000 00:01 77         /memfd:buffer (deleted)\n\
                    7f0003000000-7f0013000000 r--s 00000000 08:01 99         /usr/lib/locale/archive\n\
                    7f0014000000-7f0015000000 rw-p 00000000 00:00 0\n";
        let mut found = HashMap::new();
        note_maps(maps, &mut found);
        note_maps(maps, &mut found);
        assert_eq!(found, HashMap::from([("00:01 1234".into(), 16 << 20), ("00:01 77".into(), 1 << 20)]));
    }
}
