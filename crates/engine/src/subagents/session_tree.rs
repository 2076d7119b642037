//! The current state of a session and all its descendants.

use polyclaw_domain::id::TraceId;
use polyclaw_domain::run::SubagentRun;
use polyclaw_domain::session::{Session, SessionActivity, SessionStatus};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::sessions::SessionFilter;
use polyclaw_store::{Tx, jobs, runs, sessions, usage};

use crate::core::Engine;
use crate::error::{Error, Result};

/// Larger trees are truncated.
const MAX_TREE_SESSIONS: usize = 1_000;

#[derive(Clone, Debug)]
pub struct SessionNode {
    pub session: Session,
    pub activity: SessionActivity,
    /// The run that its owner requested.
    pub run: Option<SubagentRun>,
    /// Trace of the run, else of the newest turn.
    pub trace: Option<TraceId>,
    /// Null if a provider did not report usage.
    pub tokens: Option<i64>,
    /// In order of creation.
    pub children: Vec<SessionNode>,
}

impl Engine {
    pub async fn session_tree(&self, key: &SessionKey) -> Result<SessionNode> {
        let wanted = key.clone();
        let read = move |tx: &mut Tx<'_>| match sessions::get(tx, &wanted)? {
            Some(session) => {
                let mut left = MAX_TREE_SESSIONS;
                build_session_node(tx, session, &mut left).map(Some)
            }
            None => Ok(None),
        };
        self.db().read(read).await?.ok_or_else(|| Error::UnknownSession(key.to_string()))
    }
}

fn build_session_node(
    tx: &mut Tx<'_>,
    session: Session,
    left: &mut usize,
) -> polyclaw_store::Result<SessionNode> {
    let key = session.key.clone();
    let load = jobs::session_load(tx, &key)?;
    let doing = match (load.running, load.queued) {
        (Some(_), _) => SessionActivity::Running,
        (None, Some(_)) => SessionActivity::Queued,
        (None, None) => SessionActivity::Idle,
    };
    let run = runs::find_last_by_child(tx, &key)?;
    let trace = match &run {
        Some(run) => Some(run.trace.clone()),
        None => jobs::list(tx, Some(&key), None, 1)?.pop().map(|job| job.trace),
    };
    let spent = usage::sum_by_session(tx, &key)?.filter(|spent| spent.unknown_calls == 0);
    let tokens = spent.map(|spent| spent.input_tokens.unwrap_or(0) + spent.output_tokens.unwrap_or(0));
    let filter = SessionFilter {
        owner: Some(key),
        status: Some(SessionStatus::Active),
        limit: *left,
        ..SessionFilter::default()
    };
    let mut below = sessions::list(tx, &filter)?;
    *left = left.saturating_sub(below.len());
    below.sort_by(|a, b| (a.created_at, a.key.as_str()).cmp(&(b.created_at, b.key.as_str())));
    let children = below
        .into_iter()
        .map(|child| build_session_node(tx, child, left))
        .collect::<polyclaw_store::Result<_>>()?;
    Ok(SessionNode { session, activity: doing, run, trace, tokens, children })
}
