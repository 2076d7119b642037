//! `/session ttl`: restarts a conversation with the next message after a long silence.

use polyclaw_domain::session::Session;
use polyclaw_store::sessions::{CompactionPoint, SessionSnapshot};
use polyclaw_store::{Tx, events, jobs, messages, sessions, todos};
use serde_json::json;

use super::store::count_messages;
use super::{IngressMessage, NewIds};
use crate::session::renewed_event;

/// Gives a session a new session id if it was silent for longer than its TTL and has no work left.
pub(super) fn renew_if_expired(
    tx: &mut Tx<'_>,
    snapshot: SessionSnapshot,
    inbound: &IngressMessage,
    fresh: &NewIds,
) -> polyclaw_store::Result<SessionSnapshot> {
    let Some(ttl_ms) = snapshot.session.ttl_ms else { return Ok(snapshot) };
    let key = &inbound.session;
    let silent = messages::last_message_at(tx, key)?.is_some_and(|last| fresh.now.since(last) > ttl_ms);
    if !silent || !jobs::session_load(tx, key)?.is_idle() {
        return Ok(snapshot);
    }
    sessions::renew_session_id(tx, key, &fresh.session, fresh.now)?;
    todos::clear(tx, key)?;
    // The positions of this message are already allocated, so the old history ends before them.
    let through = snapshot.next_ticket - 1 - i64::try_from(count_messages(inbound)).unwrap_or_default();
    let compaction = CompactionPoint { summary: None, through };
    sessions::set_compaction(tx, key, &fresh.session, &compaction)?;
    let data = json!({ "session_id": fresh.session.as_str(), "silent_ms": ttl_ms });
    events::record(tx, &renewed_event(key, data), fresh.now)?;
    let session = Session { id: fresh.session.clone(), ..snapshot.session };
    Ok(SessionSnapshot { session, compaction, next_ticket: snapshot.next_ticket })
}
