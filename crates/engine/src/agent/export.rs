//! Exports agents from the database to `<workspace>/agents/<id>/agent.toml` for Git. The files are never read, so an
//! agent that edits its own file changes nothing.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use polyclaw_domain::agent::{AgentSpec, to_toml};
use polyclaw_domain::id::AgentId;

const AGENT_FILE_NAME: &str = "agent.toml";

/// Writes an agent's file. A failure is logged and retried at the next start; the change itself is stored.
pub(super) async fn write_agent_file(workspace: &Path, spec: &AgentSpec) {
    let (workspace, spec) = (workspace.to_owned(), spec.clone());
    let id = spec.agent_id.clone();
    let text = match to_toml(&spec) {
        Ok(text) => text,
        Err(error) => return tracing::error!(agent.id = %id, %error, "could not serialize an agent file"),
    };
    let folder = agent_folder(&workspace, &id);
    let written = tokio::task::spawn_blocking(move || replace_agent_file(&folder, &text)).await;
    if let Err(error) = written.unwrap_or_else(|_| Err(io::Error::other("the writer panicked"))) {
        tracing::error!(agent.id = %id, %error, "could not write the agent's file; retrying at the next start");
    }
}

/// Removes the file, and its folder if that is empty.
pub(super) async fn remove_agent_file(workspace: &Path, id: &AgentId) {
    let folder = agent_folder(workspace, id);
    let removed = tokio::task::spawn_blocking(move || {
        reject_symlinks(&folder)?;
        std::fs::remove_file(folder.join(AGENT_FILE_NAME))?;
        // Other files in the folder belong to the user.
        let _ = std::fs::remove_dir(&folder);
        Ok(())
    });
    match removed.await.unwrap_or_else(|_| Err(io::Error::other("the writer panicked"))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::error!(agent.id = %id, %error, "could not remove the agent's file");
        }
        _ => {}
    }
}

pub(super) fn agent_folder(workspace: &Path, id: &AgentId) -> PathBuf {
    workspace.join("agents").join(id.as_str())
}

/// Fails if a folder is a link, because agents can create links in the workspace.
pub(super) fn reject_symlinks(folder: &Path) -> io::Result<()> {
    for place in folder.parent().into_iter().chain([folder]) {
        match std::fs::symlink_metadata(place) {
            Ok(found) if !found.is_dir() => {
                return Err(io::Error::other(format!("{} is not a folder", place.display())));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn replace_agent_file(folder: &Path, text: &str) -> io::Result<()> {
    reject_symlinks(folder)?;
    std::fs::create_dir_all(folder)?;
    if std::fs::read_to_string(folder.join(AGENT_FILE_NAME)).is_ok_and(|known| known == text) {
        return Ok(());
    }
    write_atomically(folder, AGENT_FILE_NAME, text)
}

/// Writes to a temporary file and renames it, so that readers never see half a file.
pub(super) fn write_atomically(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let partial = folder.join(format!(".{name}.partial"));
    let _ = std::fs::remove_file(&partial);
    // `create_new` does not follow an existing file or link of that name.
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&partial)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&partial, folder.join(name))?;
    std::fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

    use polyclaw_domain::agent::from_toml;

    use super::*;

    #[tokio::test]
    async fn a_file_is_the_spec_and_goes_with_it() {
        let workspace = tempfile::tempdir().unwrap();
        let mut spec = AgentSpec::with_id(AgentId::parse("ops").unwrap());
        let file = workspace.path().join("agents/ops/agent.toml");
        for description in ["one", "two"] {
            spec.description = description.to_owned();
            write_agent_file(workspace.path(), &spec).await;
            assert_eq!(from_toml(&std::fs::read_to_string(&file).unwrap()).unwrap(), spec);
        }
        assert_eq!(
            std::fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
        let own = file.with_file_name("SOUL.md");
        std::fs::write(&own, "mine").unwrap();
        remove_agent_file(workspace.path(), &spec.agent_id).await;
        assert!(!file.exists() && own.exists());
        remove_agent_file(workspace.path(), &spec.agent_id).await;
    }

    #[tokio::test]
    async fn nothing_is_written_or_removed_through_a_link() {
        let (workspace, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join(AGENT_FILE_NAME), "theirs").unwrap();
        std::fs::create_dir(workspace.path().join("agents")).unwrap();
        std::os::unix::fs::symlink(outside.path(), workspace.path().join("agents/ops")).unwrap();
        let spec = AgentSpec::with_id(AgentId::parse("ops").unwrap());
        write_agent_file(workspace.path(), &spec).await;
        remove_agent_file(workspace.path(), &spec.agent_id).await;
        assert_eq!(std::fs::read_to_string(outside.path().join(AGENT_FILE_NAME)).unwrap(), "theirs");
    }
}
