//! Finds children of a session by the names people use: number, label, run id or session key.

use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::run::{RunStatus, SubagentRun};
use polyclaw_domain::session::SessionStatus;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Tx, runs, sessions};

use crate::core::Engine;
use crate::error::{Error, Result, StateConflict};

/// Maximum number of runs listed below a session.
const MAX_CHILD_RUNS: usize = 500;
/// Greater than any allowed spawn depth.
const MAX_SPAWN_DEPTH: usize = 8;

/// A run below a session, at any depth.
#[derive(Clone, Debug)]
pub(crate) struct ChildRun {
    /// Its position among all runs ever started below the session. It never changes.
    pub number: usize,
    pub run: SubagentRun,
    /// Its depth below the session.
    pub depth: usize,
    /// Its session exists and is not archived.
    pub is_listed: bool,
}

impl Engine {
    /// Returns all runs below a session, oldest first.
    pub(crate) async fn child_runs(&self, owner: &SessionKey) -> Result<Vec<ChildRun>> {
        let owner = owner.clone();
        Ok(self.db().read(move |tx| load_child_runs(tx, &owner)).await?)
    }

    pub(crate) async fn find_child_run(&self, owner: &SessionKey, which: &str) -> Result<ChildRun> {
        pick_child_run(self.child_runs(owner).await?, which)
    }
}

fn load_child_runs(tx: &mut Tx<'_>, owner: &SessionKey) -> polyclaw_store::Result<Vec<ChildRun>> {
    let mut found: Vec<ChildRun> = Vec::new();
    let mut level = vec![owner.clone()];
    for depth in 1..=MAX_SPAWN_DEPTH {
        let mut below = Vec::new();
        for key in &level {
            for run in runs::list_by_owner(tx, key, MAX_CHILD_RUNS.saturating_sub(found.len()))? {
                let session = sessions::get(tx, &run.child)?;
                let is_listed = session.is_some_and(|session| session.status == SessionStatus::Active);
                below.push(run.child.clone());
                found.push(ChildRun { number: 0, run, depth, is_listed });
            }
        }
        level = below;
    }
    found.sort_by(|a, b| (a.run.created_at, &a.run.id).cmp(&(b.run.created_at, &b.run.id)));
    found.iter_mut().zip(1..).for_each(|(child, number)| child.number = number);
    Ok(found)
}

/// Picks a child by name. If several share a label, a running one is preferred.
fn pick_child_run(children: Vec<ChildRun>, which: &str) -> Result<ChildRun> {
    let unknown = || Error::UnknownRun(quote_safely(which));
    let number = which.trim_start_matches('#').parse::<usize>().ok();
    let is_exact = |child: &ChildRun| {
        Some(child.number) == number || child.run.id.as_str() == which || child.run.child.as_str() == which
    };
    if let Some(child) = children.iter().find(|child| is_exact(child)) {
        return Ok(child.clone());
    }
    let named = |child: &&ChildRun| child.run.task.label.eq_ignore_ascii_case(which);
    let mut named: Vec<&ChildRun> = children.iter().filter(named).collect();
    if named.len() > 1 && named.iter().any(|child| child.run.status == RunStatus::Running) {
        named.retain(|child| child.run.status == RunStatus::Running);
    }
    match named[..] {
        [] => Err(unknown()),
        [child] => Ok(child.clone()),
        _ => Err(StateConflict::AmbiguousLabel(which.to_owned()).into()),
    }
}

/// Whether a session is a descendant of another.
pub(crate) fn is_descendant(
    tx: &mut Tx<'_>,
    own: &SessionKey,
    wanted: &SessionKey,
) -> polyclaw_store::Result<bool> {
    let mut at = wanted.clone();
    for _ in 0..MAX_SPAWN_DEPTH {
        match sessions::get(tx, &at)?.and_then(|session| session.owner) {
            Some(owner) if owner == *own => return Ok(true),
            Some(owner) => at = owner,
            None => return Ok(false),
        }
    }
    Ok(false)
}
