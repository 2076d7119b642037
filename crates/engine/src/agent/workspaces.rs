//! Which agents may work in their workspaces. A workspace inside another agent's could be replaced by a link to any
//! folder, by a program of that agent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::agent::{AgentSpec, OVERLAP_HINT, WorkspaceOverlap, find_overlaps};
use polyclaw_domain::id::AgentId;
use polyclaw_folder::resolve_existing;

use crate::core::Engine;
use crate::error::{Error, Result};

/// The workspaces as they were when the agents or the config last changed.
struct AgentWorkspaces {
    /// As they are named, and where that led.
    folders: BTreeMap<AgentId, (PathBuf, PathBuf)>,
    overlaps: Vec<WorkspaceOverlap>,
}

/// Made when it is first needed, and again after a change.
#[derive(Default)]
pub(crate) struct WorkspaceCache(Mutex<CachedWorkspaces>);

#[derive(Default)]
struct CachedWorkspaces {
    /// Counts the changes: what was read before one must not be kept after it.
    changes: u64,
    known: Option<Arc<AgentWorkspaces>>,
}

impl WorkspaceCache {
    pub fn clear(&self) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (cached.changes, cached.known) = (cached.changes + 1, None);
    }

    fn known(&self) -> (u64, Option<Arc<AgentWorkspaces>>) {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (cached.changes, cached.known.clone())
    }

    fn store(&self, changes: u64, known: &Arc<AgentWorkspaces>) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.changes == changes {
            cached.known = Some(Arc::clone(known));
        }
    }
}

impl AgentWorkspaces {
    fn read(folders: BTreeMap<AgentId, PathBuf>) -> Self {
        let resolved = folders.iter().map(|(id, folder)| (id.clone(), resolve_existing(folder))).collect();
        let mut overlaps = find_overlaps(&folders);
        overlaps.extend(find_overlaps(&resolved));
        let folders = folders.into_iter().zip(resolved.into_values());
        Self { folders: folders.map(|((id, folder), real)| (id, (folder, real))).collect(), overlaps }
    }

    fn overlap_of(&self, inner: &AgentId) -> Option<&WorkspaceOverlap> {
        self.overlaps.iter().find(|overlap| overlap.inner == *inner)
    }
}

impl Engine {
    async fn agent_workspaces(&self) -> Result<Arc<AgentWorkspaces>> {
        let (changes, known) = self.workspace_cache.known();
        if let Some(known) = known {
            return Ok(known);
        }
        let listed = self.list_agents().await?;
        let named = |spec: &AgentSpec| (spec.agent_id.clone(), self.agent_workspace(spec));
        let folders = listed.iter().map(|stored| named(&stored.spec)).collect();
        let read = Arc::new(AgentWorkspaces::read(folders));
        self.workspace_cache.store(changes, &read);
        Ok(read)
    }

    /// Where an agent works, without links. Refuses an agent in whose workspace nothing may run: it lies in another agent's,
    /// or leads elsewhere than it did.
    pub(crate) async fn resolve_workspace(&self, spec: &AgentSpec) -> Result<PathBuf> {
        let workspaces = self.agent_workspaces().await?;
        if let Some(overlap) = workspaces.overlap_of(&spec.agent_id) {
            return Err(Error::UnsafeWorkspace(format!("{overlap}; {OVERLAP_HINT}")));
        }
        let folder = self.agent_workspace(spec);
        let now = resolve_existing(&folder);
        match workspaces.folders.get(&spec.agent_id) {
            Some((known, real)) if *known == folder && *real != now => Err(Error::UnsafeWorkspace(format!(
                "the workspace of agent \"{}\" ({}) is now another folder than it was; if that is intended, read \
                     the config again (SIGHUP) or restart the instance",
                spec.agent_id,
                folder.display()
            ))),
            _ => Ok(now),
        }
    }

    /// Refuses a new or changed agent whose workspace would lie in another agent's, or hold one. `before`: what it was;
    /// where its folder stays, only its own place counts.
    pub(super) async fn check_new_workspace(
        &self,
        spec: &AgentSpec,
        before: Option<&AgentSpec>,
    ) -> Result<()> {
        let listed = self.list_agents().await?;
        let folder = self.agent_workspace(spec);
        let stays = before.is_some_and(|before| self.agent_workspace(before) == folder);
        let mut folders: BTreeMap<AgentId, PathBuf> = listed
            .iter()
            .map(|stored| (stored.spec.agent_id.clone(), self.agent_workspace(&stored.spec)))
            .collect();
        folders.insert(spec.agent_id.clone(), folder);
        let concerns = |overlap: &&WorkspaceOverlap| {
            overlap.inner == spec.agent_id || (overlap.outer == spec.agent_id && !stays)
        };
        match AgentWorkspaces::read(folders).overlaps.iter().find(concerns) {
            Some(overlap) => Err(Error::InvalidAgent(format!("workspace: {overlap}; {OVERLAP_HINT}"))),
            None => Ok(()),
        }
    }

    /// Names the agents that cannot run, once at each start.
    pub(super) async fn warn_about_unsafe_workspaces(&self) -> Result<()> {
        for overlap in &self.agent_workspaces().await?.overlaps {
            tracing::error!(agent.id = %overlap.inner, hint = OVERLAP_HINT, "{overlap}; its turns are refused");
        }
        Ok(())
    }
}
