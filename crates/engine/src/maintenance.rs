//! Sessions nobody uses any more: said or removed, every hour. What is removed is written to a file first; what runs
//! or waits is never touched.

mod archive;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use polyclaw_domain::agent::MemoryScope;
use polyclaw_domain::config::{MaintenanceConfig, MaintenanceMode};
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_store::media;
use polyclaw_store::sessions::{self, UnusedSession};
use serde_json::json;

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::hub::FrameKind;
use archive::Archive;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Sessions looked at in one go.
const MOST: usize = 1_000;

/// What the config says, and where removed sessions are written.
#[derive(Clone, Debug)]
pub struct Upkeep {
    pub rules: MaintenanceConfig,
    pub folder: PathBuf,
}

/// What was removed, or would be.
#[derive(Clone, Debug, Default)]
pub struct Cleanup {
    pub unused: Vec<UnusedSession>,
    /// How many of them are gone.
    pub removed: usize,
    /// Files of the archive that are gone, or would be, because it is larger than its budget.
    pub dropped_files: Vec<String>,
}

/// Whether it is done, or only looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    Dry,
    Real,
}

impl Engine {
    pub async fn clean_up(&self, run: Run) -> Result<Cleanup> {
        let upkeep = self.settings().upkeep.clone();
        let before = self.now().minus(i64::from(upkeep.rules.prune_after_days) * DAY_MS);
        let kept = usize::try_from(upkeep.rules.max_entries).unwrap_or(usize::MAX);
        let unused = self.db().read(move |tx| sessions::list_unused(tx, before, kept, MOST)).await?;
        let archive = Archive::of(&upkeep);
        let began = SystemTime::now();
        let mut cleanup = Cleanup { unused, ..Cleanup::default() };
        if run == Run::Real {
            for one in &cleanup.unused {
                cleanup.removed += usize::from(self.remove_unused(&archive, one).await?);
            }
            self.remove_images().await?;
        }
        cleanup.dropped_files = archive.keep_to_budget(run, began).await.map_err(not_written)?;
        Ok(cleanup)
    }

    /// Writes a session down, then removes it, if it is still as it was.
    async fn remove_unused(&self, archive: &Archive, unused: &UnusedSession) -> Result<bool> {
        archive.write(self, unused).await?;
        let (wanted, key) = (unused.clone(), unused.key.clone());
        if !self.db().write(move |tx| sessions::delete_unused(tx, &wanted)).await? {
            return Ok(false);
        }
        self.brain().forget_all(None, Some(key.clone()), Some(MemoryScope::Session)).await?;
        self.hub.publish(&key, FrameKind::Changed);
        Ok(true)
    }

    /// Removes the images that only removed sessions showed.
    pub(crate) async fn remove_images(&self) -> Result<()> {
        let removed = self.db().write(media::remove_unused).await?;
        tracing::debug!(removed, "images that nothing shows any more are removed");
        Ok(())
    }

    /// Records what was removed.
    pub async fn tell_cleanup(&self, cleanup: &Cleanup) {
        if cleanup.unused.is_empty() && cleanup.dropped_files.is_empty() {
            return;
        }
        let data = json!({ "unused": cleanup.unused.len(), "removed": cleanup.removed,
            "dropped_files": cleanup.dropped_files.len() });
        let kind = EventKind::SessionCleaned;
        self.record(NewEvent { kind, session: None, turn: None, agent: None, trace: None, data }).await;
    }
}

/// Looks every hour, at first when an hour has passed: a start has other things to do.
pub(crate) async fn maintain(engine: &Engine) -> Result<()> {
    loop {
        tokio::select! {
            () = tokio::time::sleep(HOUR) => {}
            () = engine.drained() => return Ok(()),
        }
        let run = match engine.settings().upkeep.rules.mode {
            MaintenanceMode::Warn => Run::Dry,
            MaintenanceMode::Enforce => Run::Real,
        };
        match engine.clean_up(run).await {
            Ok(cleanup) => engine.tell_cleanup(&cleanup).await,
            Err(error) => tracing::error!(%error, "sessions nobody uses could not be cleaned up"),
        }
    }
}

fn not_written(error: std::io::Error) -> Error {
    Error::Archive(error.to_string())
}
