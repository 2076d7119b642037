//! The transaction that stores an inbound message: its session, its position in the queue and its transcript lines.

use polyclaw_domain::backlog::{BacklogAdmission, MAX_WAITING_ITEMS, SessionLoad, admit_message};
use polyclaw_domain::delivery::apply_gate;
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::{MessageId, TurnId};
use polyclaw_domain::job::JobLane;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::message::{MessageOrigin, MessagePart, MessageRole};
use polyclaw_domain::relay::{self, RelayRequest};
use polyclaw_domain::session::{Session, SessionStatus};
use polyclaw_domain::time::Millis;
use polyclaw_store::jobs::{JoiningInput, NewTurnJob, TurnClaim, TurnJobKind};
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::outbox::OutboxMessage;
use polyclaw_store::sessions::SessionSnapshot;
use polyclaw_store::{Tx, agents, events, ingress, jobs, messages, outbox, runs, sessions};
use serde_json::json;

use super::{
    AcceptedMessage, ClaimedTurn, IngressMessage, IngressRefusal, IngressResult, NewIds, NodeContext,
    RelayKind, session_expiry,
};
use crate::history_import::title_from_text;
use crate::lanes::LaneSlot;
use crate::reply_text;
use crate::subagents::release_held_below;
use crate::{prompt, turn};

/// Code of an announce that is held because it joins a held turn.
const BEHIND_HELD_CODE: &str = "behind_held";

pub(crate) fn store_message(
    tx: &mut Tx<'_>,
    inbound: &IngressMessage,
    fresh: &NewIds,
    here: &NodeContext,
) -> polyclaw_store::Result<IngressResult> {
    if let Some(earlier) = find_duplicate(tx, inbound)? {
        return Ok(earlier);
    }
    let held = match check_relay(tx, inbound, here)? {
        Ok(held) => held,
        Err(refused) => return Ok(Err(refused)),
    };
    let Some(mut snapshot) = enter_session(tx, inbound, fresh)? else {
        return Ok(Err(IngressRefusal::UnknownAgent));
    };
    detect_language(tx, inbound, &mut snapshot.session)?;
    let session = &snapshot.session;
    if session.lane == JobLane::Teammate && session.status == SessionStatus::Archived && !is_announce(inbound)
    {
        return Ok(Err(IngressRefusal::MemberClosed));
    }
    let load = jobs::session_load(tx, &session.key)?;
    // A person who wrote during this turn before was notified when their first message had to wait.
    let is_notified = here.busy_notice.is_some() && jobs::is_steered(tx, &session.key)?;
    let Some(placed) = place_in_turn(tx, (inbound, session), (&load, held), fresh, here)? else {
        return Ok(Err(IngressRefusal::Full));
    };
    let TurnPlacement { turn, waiting, held, claimed } = placed;
    count_automatic_turn(tx, inbound, (turn == fresh.turn && held.is_none()).then_some(fresh.now))?;
    let released = inbound.origin.is_person() && release_held_below(tx, &session.key, fresh.now)?;
    let stored = insert_messages(tx, inbound, &snapshot, fresh, &turn)?;
    if let Some(platform_id) = &inbound.platform_id {
        ingress::record_platform_id(tx, &inbound.address, platform_id, &fresh.message, fresh.now)?;
    }
    if waiting {
        events::record(tx, &waiting_event(inbound, &turn, load.waiting + 1), fresh.now)?;
        if !is_notified {
            push_busy_notice(tx, (session, &turn), fresh.now, here)?;
        }
    } else if claimed.is_none() {
        tx.notify_nodes("jobs")?;
    }
    let accepted = AcceptedMessage {
        message_id: fresh.message.clone(),
        session_key: session.key.clone(),
        turn_id: turn,
        duplicate: false,
        waiting,
        lane: lane_for(inbound, session),
        held,
        released,
    };
    let claimed_turn = match claimed {
        Some((claim, slot)) => {
            turn::open_turn(tx, &claim, fresh.now)?;
            let rows = prompt::read_first_rows(tx, &claim, snapshot, stored)?;
            Some(ClaimedTurn { claim, rows, slot })
        }
        None => None,
    };
    Ok(Ok((accepted, claimed_turn)))
}

/// Stores the language of a person's message, if the message decides it.
fn detect_language(
    tx: &mut Tx<'_>,
    inbound: &IngressMessage,
    session: &mut Session,
) -> polyclaw_store::Result<()> {
    if !inbound.origin.is_person() || inbound.relay.is_some() {
        return Ok(());
    }
    let detected = Locale::detect(&inbound.text).filter(|locale| session.language.detected != Some(*locale));
    if let Some(locale) = detected {
        sessions::set_detected_language(tx, &session.key, locale)?;
        session.language.detected = Some(locale);
    }
    Ok(())
}

/// The turn that will process a message.
struct TurnPlacement {
    turn: TurnId,
    /// Other work goes first.
    waiting: bool,
    /// Why the turn is held until a person writes.
    held: Option<&'static str>,
    /// Set if the turn is claimed already.
    claimed: Option<(TurnClaim, LaneSlot)>,
}

/// Finds the turn for a message: one that is waiting, or a new one. `None`: the backlog is full.
fn place_in_turn(
    tx: &mut Tx<'_>,
    (inbound, session): (&IngressMessage, &Session),
    (load, held): (&SessionLoad, Option<&'static str>),
    fresh: &NewIds,
    here: &NodeContext,
) -> polyclaw_store::Result<Option<TurnPlacement>> {
    let is_behind = load.running.is_some();
    let own = |waiting, claimed| TurnPlacement { turn: fresh.turn.clone(), waiting, held, claimed };
    Ok(Some(match admit_message(&bounded_load(tx, inbound, load)?) {
        BacklogAdmission::Full => return Ok(None),
        BacklogAdmission::Join(turn) => {
            join_turn(tx, inbound, session, fresh, &turn)?;
            if inbound.origin.is_person() && jobs::resume_held(tx, &turn, is_behind)? {
                runs::release_all_announces(tx, &session.key)?;
            }
            // The message runs with the turn it joins, whatever its own trace allows; people were notified of that
            // turn.
            let waits = jobs::is_held_for_person(tx, &turn)?;
            let held = (waits && is_announce(inbound)).then_some(BEHIND_HELD_CODE);
            TurnPlacement { turn, waiting: is_behind || waits, held, claimed: None }
        }
        BacklogAdmission::Run if held.is_none() => {
            own(false, claim_or_queue_turn(tx, &build_job(inbound, session, fresh), here)?)
        }
        BacklogAdmission::Run | BacklogAdmission::Hold => {
            jobs::insert(tx, &NewTurnJob { held: true, ..build_job(inbound, session, fresh) })?;
            if held.is_some() {
                jobs::hold_for_person(tx, &fresh.turn)?;
            }
            own(true, None)
        }
    }))
}

/// Checks whether a message between sessions may pass. Messages of people always may. An announce is never refused; if
/// it may not pass, the reason to hold it is returned.
fn check_relay(
    tx: &mut Tx<'_>,
    inbound: &IngressMessage,
    here: &NodeContext,
) -> polyclaw_store::Result<std::result::Result<Option<&'static str>, IngressRefusal>> {
    let Some(relayed) = &inbound.relay else { return Ok(Ok(None)) };
    if relayed.kind != RelayKind::Begin && sessions::get(tx, &inbound.session)?.is_none() {
        return Ok(Err(IngressRefusal::UnknownSession));
    }
    // Spawned sessions are bounded by the sub-agent limits, not by the automatic turn budget.
    let (automatic_turns, budget) = match relayed.kind {
        RelayKind::Begin => (0, u32::MAX),
        // A person stopped both runs: the owner continues when a person writes.
        RelayKind::Stopped => return Ok(Ok(Some("stopped"))),
        RelayKind::Send | RelayKind::Announce => {
            (ingress::get_automatic_turns(tx, &relayed.trace)?, here.settings.automatic_budget)
        }
    };
    let sent = RelayRequest { from: relayed.from.clone(), hop: relayed.hop, automatic_turns };
    match relay::check_relay(&sent, &inbound.session, budget) {
        Ok(()) => Ok(Ok(None)),
        Err(refusal) if relayed.kind == RelayKind::Announce => Ok(Ok(Some(refusal.code()))),
        Err(refusal) => Ok(Err(IngressRefusal::Relay(refusal))),
    }
}

/// Counts an automatic turn. Turns are counted, not messages: a message that joins a waiting turn starts none.
/// `started_at`: when a new turn was created for it.
fn count_automatic_turn(
    tx: &mut Tx<'_>,
    inbound: &IngressMessage,
    started_at: Option<Millis>,
) -> polyclaw_store::Result<()> {
    let caused =
        inbound.relay.as_ref().filter(|one| matches!(one.kind, RelayKind::Send | RelayKind::Announce));
    match (caused, started_at) {
        (Some(relayed), Some(now)) => ingress::increment_automatic_turns(tx, &relayed.trace, now),
        _ => Ok(()),
    }
}

/// Returns the load as this sender's limit counts it. People are never blocked by what agents, cron jobs and webhooks
/// have sent, nor the other way round. Announces have no limit here; they are merged when their turn starts.
fn bounded_load(
    tx: &mut Tx<'_>,
    inbound: &IngressMessage,
    load: &SessionLoad,
) -> polyclaw_store::Result<SessionLoad> {
    let waiting = match load.waiting {
        _ if is_announce(inbound) => 0,
        few if few < MAX_WAITING_ITEMS => few,
        _ if inbound.origin.is_person() => jobs::count_waiting(tx, &inbound.session)?.people,
        _ => jobs::count_waiting(tx, &inbound.session)?.internal,
    };
    Ok(SessionLoad { waiting, ..load.clone() })
}

fn is_announce(inbound: &IngressMessage) -> bool {
    inbound
        .relay
        .as_ref()
        .is_some_and(|relayed| matches!(relayed.kind, RelayKind::Announce | RelayKind::Stopped))
}

fn join_turn(
    tx: &mut Tx<'_>,
    inbound: &IngressMessage,
    session: &Session,
    fresh: &NewIds,
    turn: &TurnId,
) -> polyclaw_store::Result<()> {
    if let Some(by) = &inbound.by {
        // Waiting messages share one turn; the agent named last answers it.
        jobs::assign_queued(tx, &session.key, by)?;
    }
    let joining = JoiningInput {
        is_steering: inbound.origin.is_person(),
        lane: session.lane,
        priority: inbound.priority,
        hop: inbound.relay.as_ref().map_or(0, |relayed| relayed.hop),
        trace: fresh.trace.clone(),
    };
    jobs::add_input(tx, turn, &joining)
}

/// Stores a message as a line of an existing turn. No turn processes it.
pub(crate) fn store_line(
    tx: &mut Tx<'_>,
    inbound: &IngressMessage,
    fresh: &NewIds,
    turn: &TurnId,
) -> polyclaw_store::Result<()> {
    if find_duplicate(tx, inbound)?.is_some() || sessions::get(tx, &inbound.session)?.is_none() {
        return Ok(());
    }
    let Some(snapshot) = enter_session(tx, inbound, fresh)? else { return Ok(()) };
    insert_messages(tx, inbound, &snapshot, fresh, turn).map(drop)
}

/// Claims the turn immediately if its lane is empty, else queues it.
fn claim_or_queue_turn(
    tx: &mut Tx<'_>,
    job: &NewTurnJob,
    here: &NodeContext,
) -> polyclaw_store::Result<Option<(TurnClaim, LaneSlot)>> {
    let entered = here.claim_now.as_ref().and_then(|(claimer, lanes)| {
        lanes.try_enter(job.lane, here.settings.lane_slots(job.lane)).map(|slot| (claimer, slot))
    });
    match entered {
        Some((claimer, slot)) => Ok(Some((jobs::insert_claimed(tx, job, claimer)?, slot))),
        None => jobs::insert(tx, job).map(|()| None),
    }
}

fn has_message(inbound: &IngressMessage) -> bool {
    inbound.tool_results.is_empty() || !inbound.text.trim().is_empty() || !inbound.parts.is_empty()
}

fn find_duplicate(
    tx: &mut Tx<'_>,
    inbound: &IngressMessage,
) -> polyclaw_store::Result<Option<IngressResult>> {
    let by_platform = match &inbound.platform_id {
        Some(id) => ingress::find_duplicate(tx, &inbound.address, id)?,
        None => None,
    };
    let by_key = match &inbound.idempotency_key {
        Some(key) => messages::find_by_key(tx, &inbound.session, key)?.map(|(id, _)| id),
        None => None,
    };
    let Some(id) = by_platform.or(by_key) else { return Ok(None) };
    let Some(message) = messages::get(tx, &id)? else { return Ok(Some(Err(IngressRefusal::Deleted))) };
    let earlier = AcceptedMessage {
        message_id: message.id,
        session_key: message.session,
        turn_id: message.turn,
        duplicate: true,
        waiting: false,
        lane: JobLane::Main,
        held: None,
        released: false,
    };
    Ok(Some(Ok((earlier, None))))
}

/// Locks the session's row and allocates a position for each line. Creates a new session if needed. `None`: the agent
/// does not exist.
fn enter_session(
    tx: &mut Tx<'_>,
    inbound: &IngressMessage,
    fresh: &NewIds,
) -> polyclaw_store::Result<Option<SessionSnapshot>> {
    if let Some(snapshot) =
        sessions::allocate_and_get_snapshot(tx, &inbound.session, count_messages(inbound), fresh.now)?
    {
        return session_expiry::renew_if_expired(tx, snapshot, inbound, fresh).map(Some);
    }
    if agents::get(tx, &inbound.agent)?.is_none() {
        return Ok(None);
    }
    let new_session = Session::new_for_person(
        inbound.session.clone(),
        fresh.session.clone(),
        inbound.agent.clone(),
        fresh.now,
    );
    let session = Session {
        address: Some(inbound.address.clone()),
        title: title_from_text(&inbound.text),
        ..new_session
    };
    sessions::ensure(tx, &session)?;
    sessions::allocate_and_get_snapshot(tx, &inbound.session, count_messages(inbound), fresh.now)
}

/// Number of transcript messages it is stored as.
pub(super) fn count_messages(inbound: &IngressMessage) -> usize {
    inbound.tool_results.len() + usize::from(has_message(inbound))
}

fn lane_for(inbound: &IngressMessage, session: &Session) -> JobLane {
    match inbound.origin {
        // Team members have their own lane, whatever wakes them.
        _ if session.lane == JobLane::Teammate => JobLane::Teammate,
        _ if inbound.relay.as_ref().is_some_and(|relayed| relayed.kind != RelayKind::Begin) => {
            JobLane::InternalAnnounce
        }
        MessageOrigin::Cron => JobLane::Cron,
        _ => session.lane,
    }
}

fn build_job(inbound: &IngressMessage, session: &Session, fresh: &NewIds) -> NewTurnJob {
    NewTurnJob {
        turn: fresh.turn.clone(),
        session: session.key.clone(),
        agent: inbound.by.as_ref().unwrap_or(&session.active_agent).clone(),
        kind: TurnJobKind::Turn,
        lane: lane_for(inbound, session),
        priority: inbound.priority,
        held: false,
        inputs: 1,
        is_steering: inbound.origin.is_person(),
        hop: inbound.relay.as_ref().map_or(0, |relayed| relayed.hop),
        trace: fresh.trace.clone(),
        queued_at: fresh.now,
    }
}

fn insert_messages(
    tx: &mut Tx<'_>,
    inbound: &IngressMessage,
    snapshot: &SessionSnapshot,
    fresh: &NewIds,
    turn: &TurnId,
) -> polyclaw_store::Result<Vec<SessionMessage>> {
    let session = &snapshot.session;
    let mut ticket = snapshot.next_ticket - i64::try_from(count_messages(inbound)).unwrap_or_default();
    let base = SessionMessage {
        id: fresh.message.clone(),
        session: session.key.clone(),
        session_id: session.id.clone(),
        position: ticket,
        role: MessageRole::User,
        text: inbound.text.clone(),
        parts: inbound.parts.clone(),
        origin: inbound.origin.clone(),
        channel: inbound.address.channel.clone(),
        deliver: inbound.deliver,
        address: Some(inbound.address.clone()),
        meta: inbound.meta.clone(),
        idempotency_key: inbound.idempotency_key.clone(),
        turn: turn.clone(),
        created_at: fresh.now,
    };
    let mut stored = Vec::with_capacity(count_messages(inbound));
    for (n, result) in inbound.tool_results.iter().enumerate() {
        let part = MessagePart::ToolResult {
            call_id: result.call_id.clone(),
            name: result.name.clone(),
            is_error: false,
        };
        let first = n == 0 && !has_message(inbound);
        let message = SessionMessage {
            position: ticket,
            id: if first { fresh.message.clone() } else { MessageId::new(format!("{}-{n}", fresh.message)) },
            role: MessageRole::Tool,
            text: result.content.clone(),
            parts: vec![part],
            idempotency_key: base.idempotency_key.clone().filter(|_| first),
            ..base.clone()
        };
        messages::insert(tx, &message)?;
        ticket += 1;
        stored.push(message);
    }
    if has_message(inbound) {
        let message = SessionMessage { position: ticket, ..base };
        messages::insert(tx, &message)?;
        stored.push(message);
    }
    Ok(stored)
}

/// Notifies the sender that the message has to wait, unless the session does not deliver.
fn push_busy_notice(
    tx: &mut Tx<'_>,
    (session, turn): (&Session, &TurnId),
    now: Millis,
    here: &NodeContext,
) -> polyclaw_store::Result<()> {
    let Some((address, policy)) = here.busy_notice.as_ref().filter(|_| session.delivers && session.sends)
    else {
        return Ok(());
    };
    let text = reply_text::inbound::busy_notice(here.settings.locale_for(session));
    let Ok(notice) = apply_gate(Some(address.clone()), *policy, text) else { return Ok(()) };
    let times = (now, here.settings.delivery_ttl_ms);
    outbox::push(tx, &OutboxMessage::new_notice((&session.key, turn), 0, &notice, times))
}

fn waiting_event(inbound: &IngressMessage, turn: &TurnId, waiting: usize) -> NewEvent {
    NewEvent {
        kind: EventKind::MessageWaiting,
        session: Some(inbound.session.clone()),
        turn: Some(turn.clone()),
        agent: Some(inbound.agent.clone()),
        trace: None,
        data: json!({ "waiting": waiting, "is_steering": inbound.origin.is_person() }),
    }
}
