//! The outbox loop. A row is marked `sending` before its message is sent. After a crash it becomes `unknown`, and it is
//! sent again only if the channel deduplicates by key.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::approval::approval_buttons;
use polyclaw_domain::channel::{ChannelAdapter, ChatAddress, SendOutcome};
use polyclaw_domain::delivery::{OutboxState, OutgoingMessage, retry_delay_ms};
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::{OutboxId, TurnId};
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::events;
use polyclaw_store::outbox::{self, DeliveryOutcome, OutboxMessage};
use serde_json::json;
use tokio::task::JoinSet;

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::redact;
use crate::worker::{pause_after_error, shared_node_name};

/// Maximum concurrent sends. Parts of one session are always sent one after the other.
const MAX_CONCURRENT_SENDS: usize = 16;
/// A send without an answer after this time has an unknown result.
const SEND_TIMEOUT_MS: u64 = 30_000;

/// Never returns an error while sends are in flight; leaving the loop would drop them mid-request.
pub(crate) async fn run_delivery_loop(engine: &Engine) -> Result<()> {
    let mut sends = InFlightSends::default();
    while pause_after_error(engine, recover_orphans(engine, &sends, true).await).await {}
    loop {
        if engine.is_draining() {
            while sends.join_next_send().await {}
            return Ok(());
        }
        let result = start_due_sends(engine, &mut sends).await;
        pause_after_error(engine, result).await;
        let pause = time_until_due(engine).await.unwrap_or(Duration::from_secs(1));
        tokio::select! {
            () = engine.outbox_wake.notified() => {}
            true = sends.join_next_send(), if !sends.messages.is_empty() => {}
            () = tokio::time::sleep(pause) => {
                pause_after_error(engine, recover_orphans(engine, &sends, false).await).await;
            }
        }
    }
}

/// Sends in progress in this process.
#[derive(Default)]
struct InFlightSends {
    tasks: JoinSet<()>,
    messages: HashMap<tokio::task::Id, OutboxId>,
}

impl InFlightSends {
    fn spawn_send(&mut self, engine: &Engine, message: OutboxMessage) {
        let (engine, id) = (engine.clone(), message.id.clone());
        let task = self.tasks.spawn(async move { send_and_store_outcome(&engine, message).await });
        self.messages.insert(task.id(), id);
    }

    /// Waits for one send to end, in any way. `false`: none is in progress.
    async fn join_next_send(&mut self) -> bool {
        let Some(ended) = self.tasks.join_next_with_id().await else { return false };
        let task = ended.map_or_else(|error| error.id(), |(task, ())| task);
        self.messages.remove(&task);
        true
    }
}

/// Identifies what outbox rows belong to.
pub(crate) struct OutboxKey<'a> {
    pub session: &'a SessionKey,
    pub turn: &'a TurnId,
    /// Together with the part number, identifies the part permanently.
    pub key: &'a str,
    /// Number of the first part.
    pub first: usize,
    pub now: Millis,
}

/// Splits text that passed the gate into outbox rows that fit the channel's limit.
pub(crate) fn build_outbox_messages(
    engine: &Engine,
    outgoing: OutgoingMessage,
    label: &OutboxKey<'_>,
) -> Vec<OutboxMessage> {
    let channel = engine.ports.channels.get(&outgoing.address().channel);
    let max_chars = channel.map_or(usize::MAX, |c| c.capabilities(&outgoing.address().account).max_chars);
    let expires_at = label.now.plus(engine.settings().delivery_ttl_ms);
    let outbox_message_with = |(n, part): (usize, OutgoingMessage)| OutboxMessage {
        id: OutboxId::new(engine.next_id()),
        part_key: format!("{}-{n}", label.key),
        session: label.session.clone(),
        turn: label.turn.clone(),
        part: n,
        address: part.address().clone(),
        text: part.text().to_owned(),
        state: OutboxState::Pending,
        attempts: 0,
        expires_at,
        platform_id: None,
        error: None,
        created_at: label.now,
        updated_at: label.now,
    };
    (label.first..).zip(outgoing.split_by_limit(max_chars)).map(outbox_message_with).collect()
}

async fn start_due_sends(engine: &Engine, sends: &mut InFlightSends) -> Result<()> {
    for message in claim_due_messages(engine, MAX_CONCURRENT_SENDS - sends.tasks.len()).await? {
        sends.spawn_send(engine, message);
    }
    Ok(())
}

async fn claim_due_messages(engine: &Engine, room: usize) -> Result<Vec<OutboxMessage>> {
    if room == 0 {
        return Ok(Vec::new());
    }
    let (node, now) = (engine.node.clone(), engine.now());
    let write = move |tx: &mut polyclaw_store::Tx<'_>| {
        let mut sending = Vec::new();
        for message in outbox::list_due(tx, &node, now, room)? {
            let lease_ms = i64::try_from(SEND_TIMEOUT_MS).unwrap_or(i64::MAX) * 2;
            if outbox::mark_sending(tx, &message.id, &node, now, lease_ms)? {
                sending.push(message);
            }
        }
        Ok(sending)
    };
    // Nothing is due: do not take the write lock.
    if next_due_at(engine).await?.is_none_or(|at| at > now) {
        return Ok(Vec::new());
    }
    Ok(engine.db().write(write).await?)
}

async fn next_due_at(engine: &Engine) -> Result<Option<Millis>> {
    let (node, now) = (engine.node.clone(), engine.now());
    Ok(engine.db().read(move |tx| outbox::next_due_at(tx, &node, now)).await?)
}

async fn time_until_due(engine: &Engine) -> Result<Duration> {
    const MAX_DUE_WAIT_MS: i64 = 10_000;
    let (now, next) = (engine.now(), next_due_at(engine).await?);
    let millis = next.map_or(MAX_DUE_WAIT_MS, |at| at.since(now)).clamp(50, MAX_DUE_WAIT_MS);
    Ok(Duration::from_millis(millis.unsigned_abs()))
}

async fn send_and_store_outcome(engine: &Engine, mut message: OutboxMessage) {
    engine.hit_kill_point(KillPoint::OutboxSending).await;
    let sent = redact::redact_sent(&engine.redactor(), attempt_send(engine, &mut message).await);
    engine.hit_kill_point(KillPoint::OutboxAccepted).await;
    let (outcome, event) = outcome_of_send(engine, &message, sent);
    let (id, now) = (message.id.clone(), engine.now());
    let stored = engine.write_with_retry(move |tx| outbox::record_outcome(tx, &id, &outcome, now)).await;
    if let Err(error) = stored {
        tracing::error!(%error, outbox.id = %message.id, "could not store the result of a send; it will count as unknown");
    }
    engine.hit_kill_point(KillPoint::OutboxRecorded).await;
    if let Some(event) = event {
        engine.record_event(event).await;
    }
    engine.outbox_wake.notify_one();
}

async fn attempt_send(engine: &Engine, message: &mut OutboxMessage) -> SendOutcome {
    let Some(channel) = find_channel(engine, message) else {
        return SendOutcome::Rejected {
            reason: format!("channel '{}' is not configured", message.address.channel),
        };
    };
    let outgoing = match OutgoingMessage::from_stored(message.address.clone(), message.text.clone()) {
        Ok(outgoing) => outgoing.with_buttons(approval_buttons(&message.part_key, &message.text)),
        Err(kept) => {
            return SendOutcome::Rejected { reason: format!("the gate keeps it: {}", kept.as_str()) };
        }
    };
    let sending = async {
        match message.platform_id.clone() {
            Some(draft) => replace_draft(&*channel, draft, message, &outgoing).await,
            None => channel.send(&message.part_key, &outgoing).await,
        }
    };
    match tokio::time::timeout(Duration::from_millis(SEND_TIMEOUT_MS), sending).await {
        Ok(sent) => sent,
        Err(_) => SendOutcome::Unknown { reason: "no answer from the platform".to_owned() },
    }
}

/// Replaces a draft with the final answer. If the draft is gone, for example deleted by a person, that is stored and
/// the answer is sent as a new message.
async fn replace_draft(
    channel: &dyn ChannelAdapter,
    draft: String,
    message: &mut OutboxMessage,
    outgoing: &OutgoingMessage,
) -> SendOutcome {
    match channel.edit_message(&draft, outgoing).await {
        SendOutcome::Accepted { .. } => SendOutcome::Accepted { platform_id: Some(draft) },
        SendOutcome::Rejected { reason } => {
            message.platform_id = None;
            SendOutcome::Retry { reason, after_ms: None }
        }
        // Editing with the same text again is harmless.
        SendOutcome::Unknown { reason } => SendOutcome::Retry { reason, after_ms: None },
        later => later,
    }
}

fn find_channel(engine: &Engine, message: &OutboxMessage) -> Option<Arc<dyn ChannelAdapter>> {
    engine.ports.channels.get(&message.address.channel).cloned()
}

/// Whether sending the message again cannot show it twice. No attempt is older than the row, so its creation time
/// bounds the platform's idempotency window.
fn can_resend_safely(engine: &Engine, message: &OutboxMessage) -> bool {
    if message.platform_id.is_some() {
        // It edits a draft, which is idempotent.
        return true;
    }
    recognizes_key(engine, &message.address, message.created_at)
}

/// Whether the platform still deduplicates a key that was first used at this time.
pub(crate) fn recognizes_key(engine: &Engine, address: &ChatAddress, first: Millis) -> bool {
    let (account, age_ms) = (&address.account, engine.now().since(first));
    engine.ports.channels.get(&address.channel).is_some_and(|channel| {
        channel.capabilities(account).idempotent_send
            && channel.idempotency_window_ms(account).is_none_or(|window| (0..=window).contains(&age_ms))
    })
}

/// Maps the result of a send to the row's new state and an event.
fn outcome_of_send(
    engine: &Engine,
    message: &OutboxMessage,
    sent: SendOutcome,
) -> (DeliveryOutcome, Option<NewEvent>) {
    let now = engine.now();
    let draft = message.platform_id.clone();
    let outcome = |state, error: Option<String>| DeliveryOutcome {
        state,
        platform_id: draft.clone(),
        error,
        next_at: now,
    };
    match sent {
        SendOutcome::Accepted { platform_id } => {
            (DeliveryOutcome { platform_id, ..outcome(OutboxState::Sent, None) }, None)
        }
        SendOutcome::Rejected { reason } => {
            failed_outcome(message, outcome(OutboxState::Failed, Some(reason)))
        }
        SendOutcome::Unknown { reason } if !can_resend_safely(engine, message) => {
            unknown_outcome(message, outcome(OutboxState::Unknown, Some(reason)))
        }
        SendOutcome::Unknown { reason } => {
            retry_outcome(message, outcome(OutboxState::Pending, Some(reason)), None)
        }
        SendOutcome::Retry { reason, after_ms } => {
            retry_outcome(message, outcome(OutboxState::Pending, Some(reason)), after_ms)
        }
    }
}

fn retry_outcome(
    message: &OutboxMessage,
    outcome: DeliveryOutcome,
    after_ms: Option<u64>,
) -> (DeliveryOutcome, Option<NewEvent>) {
    let Some(pause) = retry_delay_ms(message.attempts + 1) else {
        return failed_outcome(message, DeliveryOutcome { state: OutboxState::Failed, ..outcome });
    };
    let asked = after_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0);
    let wait = pause.max(asked);
    // Compares the pause with the lifetime, not the row's age: the clock may have been changed, and few attempts with
    // short pauses keep a row young.
    if wait > message.expires_at.since(message.created_at) {
        return failed_outcome(message, DeliveryOutcome { state: OutboxState::Failed, ..outcome });
    }
    (DeliveryOutcome { next_at: outcome.next_at.plus(wait), ..outcome }, None)
}

fn failed_outcome(message: &OutboxMessage, outcome: DeliveryOutcome) -> (DeliveryOutcome, Option<NewEvent>) {
    let event = delivery_event(message, EventKind::DeliveryFailed, outcome.error.as_deref());
    (outcome, Some(event))
}

fn unknown_outcome(message: &OutboxMessage, outcome: DeliveryOutcome) -> (DeliveryOutcome, Option<NewEvent>) {
    let event = delivery_event(message, EventKind::DeliveryUnknown, outcome.error.as_deref());
    (outcome, Some(event))
}

fn delivery_event(message: &OutboxMessage, kind: EventKind, reason: Option<&str>) -> NewEvent {
    NewEvent {
        kind,
        session: Some(message.session.clone()),
        turn: Some(message.turn.clone()),
        agent: None,
        trace: None,
        data: json!({ "outbox_id": message.id.as_str(), "channel": message.address.channel, "reason": reason }),
    }
}

/// Recovers rows after a crash. Interrupted sends become unknown, or are retried if the channel deduplicates by key.
/// At startup, expired messages fail instead of being sent. Sends of this process are never orphans, even if their
/// lease looks expired.
async fn recover_orphans(engine: &Engine, sends: &InFlightSends, starting: bool) -> Result<()> {
    let (owned, node_name, now) = (engine.clone(), shared_node_name(engine), engine.now());
    let under_way: HashSet<OutboxId> = sends.messages.values().cloned().collect();
    let write = move |tx: &mut polyclaw_store::Tx<'_>| {
        outbox::reset_future_due_times(tx, now)?;
        let orphans = outbox::lock_orphans(tx, &owned.node, node_name.as_deref(), now)?;
        for message in orphans.into_iter().filter(|message| !under_way.contains(&message.id)) {
            let reason = "the process ended while sending".to_owned();
            let settled = match now > message.expires_at {
                true => unknown_outcome(&message, held_outcome(OutboxState::Unknown, reason, now)),
                false => outcome_of_send(&owned, &message, SendOutcome::Unknown { reason }),
            };
            store_recovery(tx, &message.id, settled, now)?;
        }
        let pending = if starting { outbox::list_expired(tx, now)? } else { Vec::new() };
        for message in pending {
            let reason = "too old to be sent by itself after a restart".to_owned();
            store_recovery(
                tx,
                &message.id,
                failed_outcome(&message, held_outcome(OutboxState::Failed, reason, now)),
                now,
            )?;
        }
        Ok(())
    };
    Ok(engine.db().write(write).await?)
}

fn held_outcome(state: OutboxState, reason: String, now: Millis) -> DeliveryOutcome {
    DeliveryOutcome { state, platform_id: None, error: Some(reason), next_at: now }
}

fn store_recovery(
    tx: &mut polyclaw_store::Tx<'_>,
    id: &OutboxId,
    (outcome, event): (DeliveryOutcome, Option<NewEvent>),
    now: Millis,
) -> polyclaw_store::Result<()> {
    outbox::record_outcome(tx, id, &outcome, now)?;
    event.map_or(Ok(()), |event| events::record(tx, &event, now))
}

impl Engine {
    /// Sends a held message again at a person's request. It may arrive twice.
    pub async fn resend_message(&self, id: &OutboxId) -> Result<OutboxMessage> {
        self.reopen_message(id, OutboxState::Pending, "resent by a person").await
    }

    /// Dismisses a held message at a person's request.
    pub async fn dismiss_message(&self, id: &OutboxId) -> Result<OutboxMessage> {
        self.reopen_message(id, OutboxState::Failed, "dismissed by a person").await
    }

    async fn reopen_message(&self, id: &OutboxId, state: OutboxState, why: &str) -> Result<OutboxMessage> {
        let (wanted, now, why) = (id.clone(), self.now(), why.to_owned());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            let Some(message) = outbox::get(tx, &wanted)? else { return Ok(None) };
            let held = matches!(message.state, OutboxState::Unknown | OutboxState::Failed);
            if held {
                let outcome =
                    DeliveryOutcome { state, platform_id: None, error: Some(why.clone()), next_at: now };
                outbox::record_outcome(tx, &wanted, &outcome, now)?;
            }
            Ok(Some((held, message)))
        };
        let found = self.db().write(write).await?.ok_or_else(|| Error::UnknownOutbox(id.to_string()))?;
        if !found.0 {
            let state = found.1.state.as_str();
            return Err(Error::InvalidState(format!(
                "it is {state}: only unknown and failed messages are held"
            )));
        }
        self.outbox_wake.notify_one();
        Ok(OutboxMessage { state, ..found.1 })
    }
}
