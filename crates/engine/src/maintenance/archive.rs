//! The session archive: one JSON-lines file per agent, rotated when it is large.

use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use polyclaw_domain::id::AgentId;
use polyclaw_store::messages::{self, SessionMessage};
use polyclaw_store::sessions::UnusedSession;
use serde_json::json;

use super::{CleanupMode, RetentionConfig, archive_error};
use crate::core::Engine;
use crate::error::Result;

const BYTES_PER_MB: u64 = 1024 * 1024;
/// Messages read per query.
const MESSAGES_PAGE_SIZE: usize = 500;

pub(super) struct SessionArchive {
    folder: PathBuf,
    rotate_bytes: u64,
    budget_bytes: Option<u64>,
}

impl SessionArchive {
    pub fn from_config(upkeep: &RetentionConfig) -> Self {
        Self {
            folder: upkeep.folder.clone(),
            rotate_bytes: u64::from(upkeep.rules.rotate_mb) * BYTES_PER_MB,
            budget_bytes: upkeep.rules.archive_budget_mb.map(|budget| u64::from(budget) * BYTES_PER_MB),
        }
    }

    /// Archives all messages of a session and syncs them to disk. If a crash comes before the session is removed, it is
    /// archived twice.
    pub async fn write_session(&self, engine: &Engine, unused: &UnusedSession) -> Result<()> {
        let mut after = 0;
        loop {
            let (key, from) = (unused.key.clone(), after);
            let page =
                engine.db().read(move |tx| messages::list_all(tx, &key, from, MESSAGES_PAGE_SIZE)).await?;
            let Some(last) = page.last().map(|message| message.position) else { return Ok(()) };
            after = last;
            let text: String = page.iter().map(message_line).collect();
            let (folder, agent, rotate) = (self.folder.clone(), unused.agent.clone(), self.rotate_bytes);
            run_blocking_io(move || append_to_file(&folder, &agent, &text, rotate))
                .await
                .map_err(archive_error)?;
        }
    }

    /// Deletes the oldest files until the rest fits the budget. Files changed since `began` are kept, so that sessions
    /// reported as archived are there.
    pub async fn enforce_budget(&self, run: CleanupMode, began: SystemTime) -> io::Result<Vec<String>> {
        let Some(budget) = self.budget_bytes else { return Ok(Vec::new()) };
        let folder = self.folder.clone();
        run_blocking_io(move || drop_oldest_files(&folder, (budget, began), run)).await
    }
}

async fn run_blocking_io<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
}

fn message_line(message: &SessionMessage) -> String {
    let value = json!({
        "session_key": message.session.as_str(),
        "session_id": message.session_id.as_str(),
        "position": message.position,
        "role": message.role,
        "origin": message.origin,
        "text": message.text,
        "parts": message.parts,
        "created_at": message.created_at,
    });
    format!("{value}\n")
}

/// Appends to an archive file that only this user can read.
fn append_to_file(folder: &Path, agent: &AgentId, text: &str, rotate_bytes: u64) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = current_file(folder, agent, rotate_bytes)?;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The newest file of an agent, or the next number if that one is full.
fn current_file(folder: &Path, agent: &AgentId, rotate_bytes: u64) -> io::Result<PathBuf> {
    let numbered = |n: u32| folder.join(format!("{agent}.{n:06}.jsonl"));
    let newest = list_archive_files(folder)?
        .into_iter()
        .filter_map(|file| file_number(&file.path, agent))
        .max()
        .unwrap_or(1);
    let is_full = std::fs::metadata(numbered(newest)).is_ok_and(|found| found.len() >= rotate_bytes);
    Ok(numbered(if is_full { newest + 1 } else { newest }))
}

fn file_number(path: &Path, agent: &AgentId) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix(agent.as_str())?.strip_prefix('.')?.strip_suffix(".jsonl")?.parse().ok()
}

struct ArchiveFile {
    path: PathBuf,
    bytes: u64,
    changed: SystemTime,
}

/// Files of the archive; empty if the folder does not exist.
fn list_archive_files(folder: &Path) -> io::Result<Vec<ArchiveFile>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let (path, about) = (entry.path(), entry.metadata()?);
        if about.is_file() && path.extension().is_some_and(|kind| kind == "jsonl") {
            found.push(ArchiveFile { path, bytes: about.len(), changed: about.modified()? });
        }
    }
    Ok(found)
}

fn drop_oldest_files(
    folder: &Path,
    (budget, began): (u64, SystemTime),
    run: CleanupMode,
) -> io::Result<Vec<String>> {
    let mut found = list_archive_files(folder)?;
    found.sort_by(|a, b| (a.changed, &a.path).cmp(&(b.changed, &b.path)));
    let mut total: u64 = found.iter().map(|file| file.bytes).sum();
    let mut dropped = Vec::new();
    for file in found.into_iter().filter(|file| file.changed < began) {
        if total <= budget {
            break;
        }
        if run == CleanupMode::Real {
            std::fs::remove_file(&file.path)?;
        }
        total -= file.bytes;
        dropped.extend(file.path.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    Ok(dropped)
}
