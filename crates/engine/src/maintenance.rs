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
use archive::SessionArchive;

const CLEANUP_INTERVAL: Duration = Duration::from_secs(60 * 60);
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Sessions looked at in one go.
const MAINTENANCE_BATCH_SIZE: usize = 1_000;

/// What the config says, and where removed sessions are written.
#[derive(Clone, Debug)]
pub struct RetentionConfig {
    pub rules: MaintenanceConfig,
    pub folder: PathBuf,
}

/// What was removed, or would be.
#[derive(Clone, Debug, Default)]
pub struct CleanupReport {
    pub unused: Vec<UnusedSession>,
    /// How many of them are gone.
    pub removed: usize,
    /// Files of the archive that are gone, or would be, because it is larger than its budget.
    pub dropped_files: Vec<String>,
}

/// Whether it is done, or only looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupMode {
    Dry,
    Real,
}

impl Engine {
    pub async fn clean_up_sessions(&self, run: CleanupMode) -> Result<CleanupReport> {
        let upkeep = self.settings().retention.clone();
        let before = self.now().minus(i64::from(upkeep.rules.prune_after_days) * DAY_MS);
        let kept = usize::try_from(upkeep.rules.max_entries).unwrap_or(usize::MAX);
        let unused =
            self.db().read(move |tx| sessions::list_unused(tx, before, kept, MAINTENANCE_BATCH_SIZE)).await?;
        let archive = SessionArchive::from_config(&upkeep);
        let began = SystemTime::now();
        let mut cleanup = CleanupReport { unused, ..CleanupReport::default() };
        if run == CleanupMode::Real {
            for one in &cleanup.unused {
                cleanup.removed += usize::from(self.archive_and_remove(&archive, one).await?);
            }
            self.remove_unused_images().await?;
        }
        cleanup.dropped_files = archive.enforce_budget(run, began).await.map_err(archive_error)?;
        Ok(cleanup)
    }

    /// Writes a session down, then removes it, if it is still as it was.
    async fn archive_and_remove(&self, archive: &SessionArchive, unused: &UnusedSession) -> Result<bool> {
        archive.write_session(self, unused).await?;
        let (wanted, key) = (unused.clone(), unused.key.clone());
        if !self.db().write(move |tx| sessions::delete_unused(tx, &wanted)).await? {
            return Ok(false);
        }
        self.memory_store().forget_all(None, Some(key.clone()), Some(MemoryScope::Session)).await?;
        self.hub.publish(&key, FrameKind::Changed);
        Ok(true)
    }

    /// Removes the images that only removed sessions showed.
    pub(crate) async fn remove_unused_images(&self) -> Result<()> {
        let removed = self.db().write(media::remove_unused).await?;
        tracing::debug!(removed, "images that nothing shows any more are removed");
        Ok(())
    }

    /// Records what was removed.
    pub async fn record_cleanup(&self, cleanup: &CleanupReport) {
        if cleanup.unused.is_empty() && cleanup.dropped_files.is_empty() {
            return;
        }
        let data = json!({ "unused": cleanup.unused.len(), "removed": cleanup.removed,
            "dropped_files": cleanup.dropped_files.len() });
        let kind = EventKind::SessionCleaned;
        self.record_event(NewEvent { kind, session: None, turn: None, agent: None, trace: None, data }).await;
    }
}

/// Looks every hour, at first when an hour has passed: a start has other things to do.
pub(crate) async fn run_maintenance_loop(engine: &Engine) -> Result<()> {
    loop {
        tokio::select! {
            () = tokio::time::sleep(CLEANUP_INTERVAL) => {}
            () = engine.wait_for_drain() => return Ok(()),
        }
        let run = match engine.settings().retention.rules.mode {
            MaintenanceMode::Warn => CleanupMode::Dry,
            MaintenanceMode::Enforce => CleanupMode::Real,
        };
        match engine.clean_up_sessions(run).await {
            Ok(cleanup) => engine.record_cleanup(&cleanup).await,
            Err(error) => tracing::error!(%error, "sessions nobody uses could not be cleaned up"),
        }
    }
}

fn archive_error(error: std::io::Error) -> Error {
    Error::Archive(error.to_string())
}
