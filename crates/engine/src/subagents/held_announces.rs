//! Announces that wait for a person: they are listed, released when a person writes, or dismissed. None is dropped.

use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate};
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::{RunId, TurnId};
use polyclaw_domain::relay;
use polyclaw_domain::run::{self, SubagentRun};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::outbox::{self, OutboxMessage};
use polyclaw_store::{Tx, backlog, events, ingress, jobs, messages, runs, sessions};
use serde_json::{Value, json};

use crate::core::Engine;
use crate::error::{Result, StateConflict};
use crate::hub::FrameKind;
use crate::reply_text;
use crate::reply_text::notice::HeldReason;
use crate::settings::EngineSettings;

/// Maximum number of sessions above another.
const MAX_OWNER_DEPTH: usize = 16;

/// A notice to the people of a conversation about a held announce.
#[derive(Clone, Debug)]
pub(crate) struct HeldNotice {
    pub session: SessionKey,
    pub turn: TurnId,
    pub text: String,
}

pub(super) fn announce_event(kind: EventKind, run: &SubagentRun, data: Value) -> NewEvent {
    NewEvent {
        kind,
        session: Some(run.owner.clone()),
        turn: None,
        agent: Some(run.agent.clone()),
        trace: Some(run.trace.clone()),
        data,
    }
}

/// Notifies the people who wait for the owner's answer that an announce is held. Nothing is sent if they stopped the
/// run themselves, or if it waits behind one they were already notified of.
pub(super) fn held_notice(
    tx: &mut Tx<'_>,
    (run, name): (&SubagentRun, &str),
    (turn, code): (&TurnId, &str),
    settings: &EngineSettings,
    now: Millis,
) -> polyclaw_store::Result<Option<HeldNotice>> {
    let reason = match code {
        relay::TOO_MANY_HOPS => HeldReason::TooManyHops,
        relay::BUDGET_SPENT => HeldReason::BudgetSpent,
        _ => return Ok(None),
    };
    // The people are where the topmost run was requested: an owner that is a child itself has none.
    let first = find_top_run(tx, run)?;
    let Some(owner) = sessions::get(tx, &first.owner)? else { return Ok(None) };
    let policy =
        DeliveryPolicy { requested: true, session_delivers: owner.delivers, session_sends: owner.sends };
    let text = reply_text::notice::result_held(settings.locale_for(&owner), name, reason);
    for (n, address) in first.reply_to.iter().filter(|address| !address.is_pull_channel()).enumerate() {
        if let Ok(outgoing) = apply_gate(Some(address.clone()), policy, text.clone()) {
            let about = (&first.owner, turn);
            outbox::push(
                tx,
                &OutboxMessage::new_notice(about, n, &outgoing, (now, settings.delivery_ttl_ms)),
            )?;
        }
    }
    Ok(Some(HeldNotice { session: first.owner, turn: turn.clone(), text }))
}

/// Returns the topmost run, which a session of people requested.
fn find_top_run(tx: &mut Tx<'_>, run: &SubagentRun) -> polyclaw_store::Result<SubagentRun> {
    let mut first = run.clone();
    for _ in 0..MAX_OWNER_DEPTH {
        match runs::find_running_by_child(tx, &first.owner)? {
            Some(above) => first = above,
            None => break,
        }
    }
    Ok(first)
}

/// A person wrote in a session: releases whatever is held in the sessions below it and resets their automatic turns, as
/// if the person had just started them. Returns true if a turn is ready now.
pub(crate) fn release_held_below(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    now: Millis,
) -> polyclaw_store::Result<bool> {
    let (mut is_ready, mut owners) = (false, vec![session.clone()]);
    while let Some(owner) = owners.pop() {
        for run in runs::list_running_by_owner(tx, &owner)? {
            ingress::reset_automatic_turns(tx, &run.trace)?;
            let load = jobs::session_load(tx, &run.child)?;
            if let Some(turn) = &load.queued
                && jobs::resume_held(tx, turn, load.running.is_some())?
            {
                runs::release_all_announces(tx, &run.child)?;
                runs::restart_deadline(tx, &run.id, now)?;
                is_ready |= load.running.is_none();
            }
            owners.push(run.child);
        }
    }
    if is_ready {
        tx.notify_nodes("jobs")?;
    }
    Ok(is_ready)
}

impl Engine {
    /// Returns runs whose announce is held for a person, oldest first.
    pub async fn list_held_announces(&self, limit: usize) -> Result<Vec<SubagentRun>> {
        Ok(self.db().read(move |tx| runs::list_held_announces(tx, limit)).await?)
    }

    /// Dismisses a held announce that a person has read. It stays in the transcript and starts no turn.
    pub async fn dismiss_announce(&self, id: &RunId) -> Result<SubagentRun> {
        let run = self.find_run(id).await?;
        let (wanted, now) = (run.clone(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            sessions::allocate_positions(tx, &wanted.owner, 0, now)?;
            if !runs::release_announce(tx, &wanted.id)? {
                return Ok(false);
            }
            if let Some((message, turn)) = messages::find_by_key(tx, &wanted.owner, &wanted.announce_key())? {
                if let Some(mut meta) = messages::get(tx, &message)?.and_then(|message| message.meta) {
                    run::dismiss_announce(&mut meta);
                    messages::set_meta(tx, &message, &meta)?;
                }
                remove_announce_from_turn(tx, &wanted.owner, &turn, now)?;
            }
            let data = json!({ "run_id": wanted.id, "code": wanted.held });
            events::record(tx, &announce_event(EventKind::AnnounceDismissed, &wanted, data), now)?;
            Ok(true)
        };
        if !self.db().write(write).await? {
            return Err(StateConflict::ResultNotHeld.into());
        }
        self.hub.publish(&run.owner, FrameKind::Changed);
        Ok(SubagentRun { held: None, ..run })
    }
}

/// Removes the announce from the queued turn. A turn with no inputs left is cancelled, unless an interrupted task waits
/// for it.
fn remove_announce_from_turn(
    tx: &mut Tx<'_>,
    owner: &SessionKey,
    turn: &TurnId,
    now: Millis,
) -> polyclaw_store::Result<()> {
    if jobs::remove_input(tx, turn)? != Some(0) {
        return Ok(());
    }
    if backlog::has_waiting(tx, owner)? {
        let is_behind = jobs::session_load(tx, owner)?.running.is_some();
        return jobs::resume_held(tx, turn, is_behind).map(drop);
    }
    jobs::cancel_queued(tx, owner, now)?;
    messages::move_to_end(tx, owner, turn, now)
}
