//! What a workspace holds in all. File tools ask before they write; the supervisor of a program looks while it runs.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::workspace::Place;

const MIB: u64 = 1024 * 1024;
const BLOCK: u64 = 512;
/// An empty file takes room as well: there could be millions.
const LEAST_FILE: u64 = 4096;
const LONGEST_MEASURE: Duration = Duration::from_secs(2);
/// A measure is good for this long, or for this many times what it took.
const SHORTEST_REST: Duration = Duration::from_secs(2);
const REST_PER_MEASURE: u32 = 50;

/// Bytes on disk below a folder, links not followed. Stops counting once it is more than `enough`, or takes too long: a
/// workspace may be a whole disk.
pub fn used_bytes(folder: &Path, enough: u64) -> u64 {
    let (mut used, began) = (0, Instant::now());
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop().filter(|_| began.elapsed() < LONGEST_MEASURE) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            used += meta.blocks().saturating_mul(BLOCK).max(LEAST_FILE);
            if used > enough {
                return used;
            }
            if meta.is_dir() {
                open.push(entry.path());
            }
        }
    }
    used
}

/// Workspaces as they were measured last, with what was written since.
#[derive(Default)]
pub struct Quotas(HashMap<PathBuf, Measure>);

struct Measure {
    used: u64,
    at: Instant,
    took: Duration,
}

impl Quotas {
    /// Refuses a file of `size` bytes where its workspace would then hold more than `limit_mb`.
    pub fn admit(&mut self, place: &Place, size: u64, limit_mb: u64) -> Result<()> {
        let limit = limit_mb.saturating_mul(MIB);
        let growth = size.saturating_sub(place.size());
        if growth == 0 {
            return Ok(());
        }
        let root = place.root();
        if self.used(root, limit).saturating_add(growth) > limit {
            // Somebody may have made room since it was measured.
            self.0.remove(root);
            if self.used(root, limit).saturating_add(growth) > limit {
                return Err(Error::Quota { path: place.shown().to_owned(), limit_mb });
            }
        }
        if let Some(measure) = self.0.get_mut(root) {
            measure.used += growth;
        }
        Ok(())
    }

    fn used(&mut self, root: &Path, limit: u64) -> u64 {
        let rest = |measure: &Measure| SHORTEST_REST.max(measure.took * REST_PER_MEASURE);
        if let Some(measure) = self.0.get(root).filter(|measure| measure.at.elapsed() < rest(measure)) {
            return measure.used;
        }
        let at = Instant::now();
        let used = used_bytes(root, limit);
        self.0.insert(root.to_owned(), Measure { used, at, took: at.elapsed() });
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_below_a_folder_counts_and_links_lead_nowhere() {
        let room = tempfile::tempdir().unwrap();
        let (inside, outside) = (room.path().join("ws"), room.path().join("big"));
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::write(&outside, vec![1; 1_000_000]).unwrap();
        fs::write(inside.join("a/b/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        let used = used_bytes(&inside, u64::MAX);
        assert!((100_000..200_000).contains(&used), "{used}");
        assert!(used_bytes(&inside, 1_000) > 1_000);
    }
}
