//! Reports or removes unused sessions every hour. A session is archived to a file before it is removed. Sessions with
//! running or waiting work are never touched.

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
/// Maximum sessions per run.
const MAINTENANCE_BATCH_SIZE: usize = 1_000;

/// The retention settings and the archive folder.
#[derive(Clone, Debug)]
pub struct RetentionConfig {
    pub rules: MaintenanceConfig,
    pub folder: PathBuf,
}

/// Sessions and files that were removed, or would be.
#[derive(Clone, Debug, Default)]
pub struct CleanupReport {
    pub unused: Vec<UnusedSession>,
    /// Number of sessions removed.
    pub removed: usize,
    /// Archive files that were deleted, or would be, because the archive exceeds its budget.
    pub dropped_files: Vec<String>,
}

/// Whether to clean up or only report.
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

    /// Archives a session, then removes it if it has not changed.
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

    /// Removes images that are referenced by no session any more.
    pub(crate) async fn remove_unused_images(&self) -> Result<()> {
        let removed = self.db().write(media::remove_unused).await?;
        tracing::debug!(removed, "removed unused images");
        Ok(())
    }

    /// Records the clean-up as an event.
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

/// Runs every hour, first one hour after startup.
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
            Err(error) => tracing::error!(%error, "session clean-up failed; retrying in an hour"),
        }
    }
}

fn archive_error(error: std::io::Error) -> Error {
    Error::Archive(error.to_string())
}
