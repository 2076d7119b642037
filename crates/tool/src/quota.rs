//! Disk usage of workspaces. File tools check it before they write; the supervisor checks it while a program runs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polyclaw_tree::{MountRule, measure_tree};

use crate::error::{Error, Result};
use crate::workspace::WorkspacePath;

const MIB: u64 = 1024 * 1024;
/// A measure is good for this long, or for this many times what it took.
const MIN_MEASURE_TTL: Duration = Duration::from_secs(2);
const TTL_PER_MEASURE_TIME: u32 = 50;

/// Workspaces as they were measured last, with what was written since.
#[derive(Default)]
pub struct WorkspaceQuotas(HashMap<PathBuf, UsageMeasure>);

struct UsageMeasure {
    used: u64,
    at: Instant,
    took: Duration,
}

impl WorkspaceQuotas {
    /// Rejects a file of `size` bytes if its workspace would exceed `limit_mb`.
    pub fn admit_file(&mut self, place: &WorkspacePath, size: u64, limit_mb: u64) -> Result<()> {
        let limit = limit_mb.saturating_mul(MIB);
        let growth = size.saturating_sub(place.file_size());
        if growth == 0 {
            return Ok(());
        }
        let root = place.root();
        if self.measure_used(root, limit).saturating_add(growth) > limit {
            // Files may have been removed since the last measurement.
            self.0.remove(root);
            if self.measure_used(root, limit).saturating_add(growth) > limit {
                return Err(Error::Quota { path: place.display_path().to_owned(), limit_mb });
            }
        }
        if let Some(measure) = self.0.get_mut(root) {
            measure.used += growth;
        }
        Ok(())
    }

    fn measure_used(&mut self, root: &Path, limit: u64) -> u64 {
        let rest = |measure: &UsageMeasure| MIN_MEASURE_TTL.max(measure.took * TTL_PER_MEASURE_TIME);
        if let Some(measure) = self.0.get(root).filter(|measure| measure.at.elapsed() < rest(measure)) {
            return measure.used;
        }
        let at = Instant::now();
        let used = measure_tree(root, limit, MountRule::Enter);
        self.0.insert(root.to_owned(), UsageMeasure { used, at, took: at.elapsed() });
        used
    }
}
