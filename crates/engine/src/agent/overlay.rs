//! An agent's briefing files as people edit them: its own overlay, and the shared file used without one.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use polyclaw_domain::id::AgentId;
use polyclaw_folder::FolderHandle;

use super::export::{agent_folder, create_agent_folder};
use crate::core::Engine;
use crate::error::{Error, Result};

/// Maximum file size; far more than the prompt shows of one file.
pub const MAX_OVERLAY_BYTES: u64 = 256 * 1024;

/// One writer at a time: the second sees what the first wrote. A lock of the folder would not do, because a program of an
/// agent could hold it for ever.
static OVERLAY_WRITE_LOCK: Mutex<()> = Mutex::new(());

/// One file as an agent has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFileOverlay {
    /// Content in its own folder, which takes precedence.
    pub own: Option<String>,
    /// Content in its workspace or in the shared workspace.
    pub shared: Option<String>,
    /// Whether the overlay folder is used.
    pub in_use: bool,
}

impl Engine {
    pub async fn load_overlay(&self, id: &AgentId, file: &'static str) -> Result<AgentFileOverlay> {
        let spec = self.load_agent(id).await?.spec;
        let root = self.settings().workspace.clone();
        let (own, workspace) = (root.join(agent_folder(id)), self.resolve_workspace(&spec).await?);
        let in_use = spec.workspace.overlay;
        run_blocking_io(move || {
            let shared = match read_agent_file(&root, &workspace, file)? {
                None => read_agent_file(&root, &root, file)?,
                found => found,
            };
            Ok(AgentFileOverlay { own: read_agent_file(&root, &own, file)?, shared, in_use })
        })
        .await
    }

    /// Writes or removes an overlay file if its current content satisfies `is_expected`. Takes effect at the next turn.
    /// Returns whether it was written.
    pub async fn write_overlay(
        &self,
        id: &AgentId,
        file: &'static str,
        text: Option<String>,
        is_expected: impl FnOnce(Option<&str>) -> bool + Send + 'static,
    ) -> Result<bool> {
        self.load_agent(id).await?;
        let (root, id) = (self.settings().workspace.clone(), id.clone());
        run_blocking_io(move || {
            let _writing = OVERLAY_WRITE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            let own = create_agent_folder(&root, &id)?;
            if !is_expected(read_text(&own, file)?.as_deref()) {
                return Ok(false);
            }
            match text {
                Some(text) => own.replace_file(OsStr::new(file), text.as_bytes())?,
                None => own.remove_file(OsStr::new(file)).or_else(ignore_missing)?,
            }
            Ok(true)
        })
        .await
    }
}

async fn run_blocking_io<T: Send + 'static>(
    run: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(run).await;
    done.unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
        .map_err(|error| Error::AgentFiles(error.to_string()))
}

fn ignore_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// A file of the instance's workspace, or of a folder elsewhere.
fn read_agent_file(root: &Path, folder: &Path, file: &str) -> io::Result<Option<String>> {
    let base = if folder.starts_with(root) { root } else { folder };
    match FolderHandle::open_below(base, folder) {
        Ok(folder) => read_text(&folder, file),
        Err(error) => ignore_missing(error).map(|()| None),
    }
}

fn read_text(folder: &FolderHandle, file: &str) -> io::Result<Option<String>> {
    match folder.read_file(OsStr::new(file), MAX_OVERLAY_BYTES) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) => ignore_missing(error)
            .map(|()| None)
            .map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}"))),
    }
}
