//! Exports agents from the database to `<workspace>/agents/<id>/agent.toml` for Git. The files are never read, so an
//! agent that edits its own file changes nothing.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use polyclaw_domain::agent::{AgentSpec, to_toml};
use polyclaw_domain::id::AgentId;
use polyclaw_folder::FolderHandle;

const AGENT_FILE_NAME: &str = "agent.toml";
/// Below the instance's workspace.
const AGENTS_FOLDER: &str = "agents";
/// A larger file is not one of ours, and is replaced.
const MAX_AGENT_FILE_BYTES: u64 = 1024 * 1024;

/// Writes an agent's file. A failed write is logged and retried at the next start; the change itself is stored.
pub(super) async fn write_agent_file(workspace: &Path, spec: &AgentSpec) {
    let (workspace, spec) = (workspace.to_owned(), spec.clone());
    let id = spec.agent_id.clone();
    let text = match to_toml(&spec) {
        Ok(text) => text,
        Err(error) => return tracing::error!(agent.id = %id, %error, "could not serialize an agent file"),
    };
    let written =
        tokio::task::spawn_blocking(move || replace_agent_file(&workspace, &spec.agent_id, &text)).await;
    if let Err(error) = written.unwrap_or_else(|_| Err(io::Error::other("the writer panicked"))) {
        tracing::error!(agent.id = %id, %error, "could not write the agent's file; retrying at the next start");
    }
}

/// Removes the file, and its folder if that is empty.
pub(super) async fn remove_agent_file(workspace: &Path, id: &AgentId) {
    let (workspace, wanted) = (workspace.to_owned(), id.clone());
    let removed = tokio::task::spawn_blocking(move || {
        let agents = FolderHandle::open_base(&workspace)?.open_child(OsStr::new(AGENTS_FOLDER))?;
        let name = OsStr::new(wanted.as_str());
        agents.open_child(name)?.remove_file(OsStr::new(AGENT_FILE_NAME))?;
        // Any other files in the folder belong to the user.
        let _ = agents.remove_folder(name);
        Ok(())
    });
    match removed.await.unwrap_or_else(|_| Err(io::Error::other("the writer panicked"))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::error!(agent.id = %id, %error, "could not remove the agent's file");
        }
        _ => {}
    }
}

/// The folder of an agent's own files, from the instance's workspace.
pub(super) fn agent_folder(id: &AgentId) -> PathBuf {
    Path::new(AGENTS_FOLDER).join(id.as_str())
}

/// Opens the folder of an agent's own files, and creates it if it is missing. Agents write in the workspace too: no link
/// they may have put there is followed.
pub(super) fn create_agent_folder(workspace: &Path, id: &AgentId) -> io::Result<FolderHandle> {
    if !workspace.try_exists()? {
        std::fs::create_dir_all(workspace)?;
    }
    let agents = FolderHandle::open_base(workspace)?.open_or_create_child(OsStr::new(AGENTS_FOLDER))?;
    agents.open_or_create_child(OsStr::new(id.as_str()))
}

fn replace_agent_file(workspace: &Path, id: &AgentId, text: &str) -> io::Result<()> {
    let (folder, name) = (create_agent_folder(workspace, id)?, OsStr::new(AGENT_FILE_NAME));
    if folder.read_file(name, MAX_AGENT_FILE_BYTES).is_ok_and(|known| known == text.as_bytes()) {
        return Ok(());
    }
    folder.replace_file(name, text.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

    use polyclaw_domain::agent::from_toml;

    use super::*;

    #[tokio::test]
    async fn agent_file_matches_spec_and_is_removed_with_agent() {
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
    async fn agent_file_is_not_written_or_removed_through_link() {
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
