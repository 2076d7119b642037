//! The files an agent is told, as people edit them: its own overlay, and what it has where there is none.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use polyclaw_domain::id::AgentId;

use super::export::{check, folder, put};
use crate::core::Engine;
use crate::error::{Error, Result};

/// Far more than is told of one file; the rest would be cut.
pub const LONGEST: u64 = 256 * 1024;

/// One file as an agent has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay {
    /// In its own folder; this one is told.
    pub own: Option<String>,
    /// Of its workspace, or of all agents.
    pub shared: Option<String>,
    /// Whether its own folder is looked at.
    pub in_use: bool,
}

impl Engine {
    pub async fn overlay(&self, id: &AgentId, file: &'static str) -> Result<Overlay> {
        let spec = self.agent(id).await?.spec;
        let root = self.settings().workspace.clone();
        let (own, workspace) = (folder(&root, id), self.folder_of(&spec));
        let in_use = spec.workspace.overlay;
        blocking(move || {
            let shared = match read(&root, &workspace, file)? {
                None => read(&root, &root, file)?,
                found => found,
            };
            Ok(Overlay { own: read(&root, &own, file)?, shared, in_use })
        })
        .await
    }

    /// Puts a text into its own folder, or takes it away, if what is there is still what `is_expected` says. Told at the
    /// next turn. Whether it was written.
    pub async fn write_overlay(
        &self,
        id: &AgentId,
        file: &'static str,
        text: Option<String>,
        is_expected: impl FnOnce(Option<&str>) -> bool + Send + 'static,
    ) -> Result<bool> {
        self.agent(id).await?;
        let (root, own) = (self.settings().workspace.clone(), folder(&self.settings().workspace, id));
        blocking(move || {
            check(&own)?;
            std::fs::create_dir_all(&own)?;
            // Two that write at once: the second sees what the first wrote.
            let held = std::fs::File::open(&own)?;
            held.lock()?;
            if !is_expected(read(&root, &own, file)?.as_deref()) {
                return Ok(false);
            }
            match text {
                Some(text) => put(&own, file, &text)?,
                None => remove(&own.join(file))?,
            }
            Ok(true)
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(run: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(run).await;
    done.unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
        .map_err(|error| Error::AgentFiles(error.to_string()))
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Agents write in the workspace too: nothing is read through a link they may have put there.
fn read(root: &Path, folder: &Path, file: &str) -> io::Result<Option<String>> {
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
    std::fs::File::open(&path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Err(io::Error::other(format!("{file} is larger than {LONGEST} bytes")));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
