//! An agent's briefing files as people edit them: its own overlay, and the shared file used without one.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use polyclaw_domain::id::AgentId;

use super::export::{agent_folder, reject_symlinks, write_atomically};
use crate::core::Engine;
use crate::error::{Error, Result};

/// Maximum file size; far more than the prompt shows of one file.
pub const MAX_OVERLAY_BYTES: u64 = 256 * 1024;

/// Versions of one file for an agent.
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
        let (own, workspace) = (agent_folder(&root, id), self.agent_workspace(&spec));
        let in_use = spec.workspace.overlay;
        run_blocking_io(move || {
            let shared = match read_without_symlinks(&root, &workspace, file)? {
                None => read_without_symlinks(&root, &root, file)?,
                found => found,
            };
            Ok(AgentFileOverlay { own: read_without_symlinks(&root, &own, file)?, shared, in_use })
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
        let (root, own) = (self.settings().workspace.clone(), agent_folder(&self.settings().workspace, id));
        run_blocking_io(move || {
            reject_symlinks(&own)?;
            std::fs::create_dir_all(&own)?;
            // Serializes concurrent writers: the second sees what the first wrote.
            let held = std::fs::File::open(&own)?;
            held.lock()?;
            if !is_expected(read_without_symlinks(&root, &own, file)?.as_deref()) {
                return Ok(false);
            }
            match text {
                Some(text) => write_atomically(&own, file, &text)?,
                None => remove_if_exists(&own.join(file))?,
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

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads a file without following links, because agents can create links in the workspace.
fn read_without_symlinks(root: &Path, folder: &Path, file: &str) -> io::Result<Option<String>> {
    let path = folder.join(file);
    let below = path.strip_prefix(root).unwrap_or(Path::new(file)).to_owned();
    let mut place: PathBuf = if path.starts_with(root) { root.to_owned() } else { folder.to_owned() };
    for part in below.components() {
        place.push(part);
        match std::fs::symlink_metadata(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
            Ok(found) if place == path && found.is_file() => {}
            Ok(found) if place != path && found.is_dir() => {}
            Ok(_) => return Err(io::Error::other(format!("{file} is not a plain file here"))),
        }
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&path)?.take(MAX_OVERLAY_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_OVERLAY_BYTES {
        return Err(io::Error::other(format!("{file} is larger than {MAX_OVERLAY_BYTES} bytes")));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
