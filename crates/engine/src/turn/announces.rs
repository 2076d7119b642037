//! Merges the oldest announces into one message if a turn starts with more than it can read.

use polyclaw_domain::backlog::MAX_ANNOUNCES;
use polyclaw_domain::id::MessageId;
use polyclaw_domain::run::{self, ANNOUNCE_KIND};
use polyclaw_store::jobs::TurnClaim;
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{Tx, messages};
use serde_json::Value;

/// Merges the oldest announces in the transaction that claims the turn. Repeated announces are recognized by other
/// records, so the original rows are not needed.
pub(super) fn merge_announces(tx: &mut Tx<'_>, claim: &TurnClaim) -> polyclaw_store::Result<()> {
    let stored = messages::list_by_turn(tx, &claim.turn)?;
    let mut announces: Vec<&SessionMessage> = stored.iter().filter(|message| is_announce(message)).collect();
    let surplus = announces.len().saturating_sub(MAX_ANNOUNCES);
    announces.truncate(surplus);
    let Some(first) = announces.first() else { return Ok(()) };
    let metas: Vec<Value> = announces.iter().filter_map(|message| message.meta.clone()).collect();
    announces.iter().try_for_each(|message| messages::remove(tx, &message.id))?;
    let merged = SessionMessage {
        // Derived, so that a repeated transaction writes the same row.
        id: MessageId::new(format!("{}-announces", claim.turn)),
        text: run::merged_line(announces.len()),
        meta: Some(run::merge_announces(&metas)),
        idempotency_key: None,
        ..(*first).clone()
    };
    messages::insert(tx, &merged)
}

fn is_announce(message: &SessionMessage) -> bool {
    message.meta.as_ref().is_some_and(|meta| meta["kind"] == ANNOUNCE_KIND && meta["dismissed"] != true)
}
