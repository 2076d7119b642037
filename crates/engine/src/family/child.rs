//! The children of a session as people name them: by number, label, run or session key.

use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::run::{RunStatus, SubagentRun};
use polyclaw_domain::session::SessionStatus;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Tx, runs, sessions};

use crate::core::Engine;
use crate::error::{Error, Result};

/// More are not looked at.
const MOST: usize = 500;
/// Deeper than any family may be.
const DEEPEST: usize = 8;

/// A run somewhere below a session.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    /// Its place among all that was ever begun below the session: it never changes.
    pub number: usize,
    pub run: SubagentRun,
    /// How far below.
    pub depth: usize,
    /// Its session is there and not archived.
    pub is_listed: bool,
}

impl Engine {
    /// Everything that was begun below a session, the oldest first.
    pub(crate) async fn children(&self, owner: &SessionKey) -> Result<Vec<Child>> {
        let owner = owner.clone();
        Ok(self.db().read(move |tx| children(tx, &owner)).await?)
    }

    pub(crate) async fn find_child(&self, owner: &SessionKey, which: &str) -> Result<Child> {
        pick(self.children(owner).await?, which)
    }
}

fn children(tx: &mut Tx<'_>, owner: &SessionKey) -> polyclaw_store::Result<Vec<Child>> {
    let mut found: Vec<Child> = Vec::new();
    let mut level = vec![owner.clone()];
    for depth in 1..=DEEPEST {
        let mut below = Vec::new();
        for key in &level {
            for run in runs::list_by_owner(tx, key, MOST.saturating_sub(found.len()))? {
                let session = sessions::get(tx, &run.child)?;
                let is_listed = session.is_some_and(|session| session.status == SessionStatus::Active);
                below.push(run.child.clone());
                found.push(Child { number: 0, run, depth, is_listed });
            }
        }
        level = below;
    }
    found.sort_by(|a, b| (a.run.created_at, &a.run.id).cmp(&(b.run.created_at, &b.run.id)));
    found.iter_mut().zip(1..).for_each(|(child, number)| child.number = number);
    Ok(found)
}

/// Where several have one label, the one at work is meant.
fn pick(children: Vec<Child>, which: &str) -> Result<Child> {
    let unknown = || Error::UnknownRun(quote_safely(which));
    let number = which.trim_start_matches('#').parse::<usize>().ok();
    let is_exact = |child: &Child| {
        Some(child.number) == number || child.run.id.as_str() == which || child.run.child.as_str() == which
    };
    if let Some(child) = children.iter().find(|child| is_exact(child)) {
        return Ok(child.clone());
    }
    let named = |child: &&Child| child.run.task.label.eq_ignore_ascii_case(which);
    let mut named: Vec<&Child> = children.iter().filter(named).collect();
    if named.len() > 1 && named.iter().any(|child| child.run.status == RunStatus::Running) {
        named.retain(|child| child.run.status == RunStatus::Running);
    }
    match named[..] {
        [] => Err(unknown()),
        [child] => Ok(child.clone()),
        _ => Err(Error::NotNow(format!("several are called {which:?}: say which by its number"))),
    }
}

/// Whether a session was begun by another, or by one that it began.
pub(crate) fn is_below(
    tx: &mut Tx<'_>,
    own: &SessionKey,
    wanted: &SessionKey,
) -> polyclaw_store::Result<bool> {
    let mut at = wanted.clone();
    for _ in 0..DEEPEST {
        match sessions::get(tx, &at)?.and_then(|session| session.owner) {
            Some(owner) if owner == *own => return Ok(true),
            Some(owner) => at = owner,
            None => return Ok(false),
        }
    }
    Ok(false)
}
