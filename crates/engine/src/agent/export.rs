//! Agents of the database as files for Git: `<workspace>/agents/<id>/agent.toml`. Written, never read: the
//! database has them, and an agent that changes its own file changes nothing.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use polyclaw_domain::agent::{AgentSpec, to_toml};
use polyclaw_domain::id::AgentId;

const AGENT_FILE_NAME: &str = "agent.toml";

/// A file that can not be written is said in the log and tried again at the next start: the change itself is kept.
pub(super) async fn write_agent_file(workspace: &Path, spec: &AgentSpec) {
    let (workspace, spec) = (workspace.to_owned(), spec.clone());
    let id = spec.agent_id.clone();
    let text = match to_toml(&spec) {
        Ok(text) => text,
        Err(error) => return tracing::error!(agent.id = %id, %error, "an agent can not be written as a file"),
    };
    let folder = agent_folder(&workspace, &id);
    let written = tokio::task::spawn_blocking(move || replace_agent_file(&folder, &text)).await;
    if let Err(error) = written.unwrap_or_else(|_| Err(io::Error::other("the writer panicked"))) {
        tracing::error!(agent.id = %id, %error, "the file of an agent was not written; it is tried again at the next start");
    }
}

/// Takes the file away, and its folder if nothing else is there.
pub(super) async fn remove_agent_file(workspace: &Path, id: &AgentId) {
    let folder = agent_folder(workspace, id);
    let removed = tokio::task::spawn_blocking(move || {
        reject_symlinks(&folder)?;
        std::fs::remove_file(folder.join(AGENT_FILE_NAME))?;
        // What else is there is the person's own.
        let _ = std::fs::remove_dir(&folder);
        Ok(())
    });
    match removed.await.unwrap_or_else(|_| Err(io::Error::other("the writer panicked"))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::error!(agent.id = %id, %error, "the file of an agent was not removed");
        }
        _ => {}
    }
}

pub(super) fn agent_folder(workspace: &Path, id: &AgentId) -> PathBuf {
    workspace.join("agents").join(id.as_str())
}

/// Agents write in the workspace too: nothing is written through a link they may have put there.
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

/// Writes beside the file and puts it in its place, so that a reader never sees half of it.
pub(super) fn write_atomically(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let partial = folder.join(format!(".{name}.partial"));
    let _ = std::fs::remove_file(&partial);
    // Made anew: what lies there under that name is not followed.
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
