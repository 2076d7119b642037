//! Sessions of ended runs: archived after a while, or deleted if the spawn request asked for it. This happens only
//! after the owner was notified and never while the session is used. The run and its result stay.

use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::run::SubagentRun;
use polyclaw_domain::session::SessionStatus;
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, events, jobs, runs, sessions};
use serde_json::json;

use crate::core::Engine;
use crate::error::Result;
use crate::hub::FrameKind;

/// Maximum number of sessions cleaned up in one pass.
const CLEANUP_BATCH_SIZE: usize = 200;
/// Delay before a session in use is checked again.
const CLEANUP_RETRY_DELAY_MS: i64 = 10 * 60_000;

impl Engine {
    pub(crate) async fn clean_up_finished_runs(&self) -> Result<()> {
        let now = self.now();
        for run in self.db().read(move |tx| runs::list_due_for_cleanup(tx, now, CLEANUP_BATCH_SIZE)).await? {
            let (wanted, is_deleted) = (run.clone(), run.is_deleted_after);
            if !self.db().write(move |tx| clean_up_run(tx, &wanted, now)).await? {
                continue;
            }
            if is_deleted {
                self.clean_up_deleted_session(&run.child).await?;
            }
            self.hub.publish(&run.child, FrameKind::Changed);
        }
        Ok(())
    }
}

/// Returns `false` if the session is in use or already deleted.
fn clean_up_run(tx: &mut Tx<'_>, run: &SubagentRun, now: Millis) -> polyclaw_store::Result<bool> {
    if !sessions::lock(tx, &run.child)? {
        return runs::mark_cleaned_up(tx, &run.id).map(|()| false);
    }
    if !jobs::session_load(tx, &run.child)?.is_idle()
        || !runs::list_running_by_owner(tx, &run.child)?.is_empty()
    {
        return runs::postpone_cleanup(tx, &run.id, now.plus(CLEANUP_RETRY_DELAY_MS)).map(|()| false);
    }
    match run.is_deleted_after {
        true => sessions::delete(tx, &run.child)?,
        false => sessions::set_status(tx, &run.child, SessionStatus::Archived)?,
    };
    runs::mark_cleaned_up(tx, &run.id)?;
    let event = NewEvent {
        kind: EventKind::SessionArchived,
        session: Some(run.child.clone()),
        turn: None,
        agent: Some(run.agent.clone()),
        trace: Some(run.trace.clone()),
        data: json!({ "run_id": run.id, "deleted": run.is_deleted_after }),
    };
    events::record(tx, &event, now)?;
    Ok(true)
}
