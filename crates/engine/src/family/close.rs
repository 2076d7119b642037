//! Ending a run, with the turn that ends it, and telling its owner.

use polyclaw_domain::budget::usd;
use polyclaw_domain::event::{Event, EventKind};
use polyclaw_domain::id::TurnId;
use polyclaw_domain::job::{JobState, Priority};
use polyclaw_domain::message::{Origin, Role};
use polyclaw_domain::run::{Outcome, Run, RunStatus};
use polyclaw_domain::time::Millis;
use polyclaw_store::messages::Message;
use polyclaw_store::{Tx, agents, events, jobs, messages, runs, usage};
use serde_json::json;

use super::Closed;
use super::begin::inside;
use crate::ingress::{self, Fresh, Inbound, Relayed, Way};
use crate::settings::Settings;

/// How a turn of a child ended.
#[derive(Clone)]
pub(crate) struct Closing {
    pub turn: TurnId,
    pub state: JobState,
    pub text: String,
    pub error_code: Option<String>,
    pub fresh: Fresh,
}

/// Ends the run that a turn's end is the end of, if it is one, and announces it to its owner.
pub(crate) fn close(
    tx: &mut Tx<'_>,
    session: &polyclaw_domain::key::SessionKey,
    closing: &Closing,
    settings: &Settings,
) -> polyclaw_store::Result<Option<Closed>> {
    if !closing.state.is_terminal() || closing.state == JobState::Steered {
        return Ok(None);
    }
    let Some(run) = runs::of_child(tx, session)? else { return Ok(None) };
    let load = jobs::load(tx, session)?;
    let waits = closing.state == JobState::Done && !runs::at_work(tx, session)?.is_empty();
    if waits || load.queued.is_some() || load.waiting > 0 {
        return Ok(None);
    }
    let (status, now) = (status(closing.state, &run, closing.fresh.now), closing.fresh.now);
    let outcome = outcome(tx, &run, closing)?;
    end(tx, run, (status, outcome), &closing.fresh, settings, now).map(Some)
}

fn status(state: JobState, run: &Run, now: Millis) -> RunStatus {
    match state {
        JobState::Done => RunStatus::Ok,
        _ if run.deadline.is_some_and(|deadline| deadline <= now) => RunStatus::Timeout,
        JobState::Cancelled => RunStatus::Cancelled,
        _ => RunStatus::Error,
    }
}

fn outcome(tx: &mut Tx<'_>, run: &Run, closing: &Closing) -> polyclaw_store::Result<Outcome> {
    let mut text = closing.text.clone();
    if text.trim().is_empty() {
        let stored = messages::of_turn(tx, &closing.turn)?;
        let last = stored.into_iter().rev().find(|message| message.role == Role::Tool);
        text = last.map(|message| format!("(its last tool result) {}", message.text)).unwrap_or_default();
    }
    let spent = usage::of_session(tx, &run.child)?;
    let told = spent.as_ref().filter(|spent| spent.unknown_calls == 0);
    let priced = spent.as_ref().filter(|spent| spent.unpriced_calls == 0);
    let tokens = told.map(|spent| spent.input_tokens.unwrap_or(0) + spent.output_tokens.unwrap_or(0));
    Ok(Outcome {
        text,
        error_code: closing.error_code.clone(),
        tokens: tokens.map(i64::unsigned_abs),
        cost_usd: priced.and_then(|spent| spent.cost_nanos).map(usd),
        artifacts: Vec::new(),
    })
}

fn end(
    tx: &mut Tx<'_>,
    run: Run,
    (status, outcome): (RunStatus, Outcome),
    fresh: &Fresh,
    settings: &Settings,
    now: Millis,
) -> polyclaw_store::Result<Closed> {
    runs::end(tx, &run.id, status, &outcome, now)?;
    let run = Run { status, result: Some(outcome), ..run };
    let mut closed = Closed { owner: run.owner.clone(), ready: None };
    tx.notify(&format!("session {}", run.owner))?;
    // A turn that waits for it is given the result, and stores the announce when it ends.
    let awaited = match &run.awaited_by {
        Some(turn) => jobs::get(tx, turn)?.is_some_and(|job| job.state == JobState::Running),
        None => false,
    };
    if awaited {
        return Ok(closed);
    }
    let name = name(tx, &run)?;
    let announced = ingress::store_announce(tx, &announce(&run, &name, now), fresh, settings)?;
    runs::announced(tx, &run.id)?;
    closed.ready = announced.ready;
    if let Some(refusal) = announced.held {
        let event = Event {
            kind: EventKind::AnnounceHeld,
            session: Some(run.owner.clone()),
            turn: None,
            agent: Some(run.agent.clone()),
            trace: Some(run.trace.clone()),
            data: json!({ "run_id": run.id, "code": refusal.code() }),
        };
        events::record(tx, &event, now)?;
    }
    Ok(closed)
}

fn name(tx: &mut Tx<'_>, run: &Run) -> polyclaw_store::Result<String> {
    let found = agents::get(tx, &run.agent)?;
    Ok(found.map_or_else(|| run.agent.to_string(), |stored| stored.spec.name))
}

fn announce(run: &Run, name: &str, now: Millis) -> Inbound {
    let hop = run.hop + 1;
    let relayed = Relayed { from: run.child.clone(), hop, trace: run.trace.clone(), way: Way::Announce };
    Inbound {
        origin: Origin::Agent(run.agent.clone()),
        deliver: false,
        priority: Priority::Background,
        idempotency_key: Some(run.announce_key()),
        relayed: Some(relayed),
        meta: Some(run.payload(name, hop, now)),
        ..Inbound::from_person(run.owner.clone(), run.agent.clone(), inside(), run.line(name))
    }
}

/// The announces of runs that a turn waited for, as lines of that turn: it was given their results.
pub(crate) fn told_late(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    line: &Message,
    now: Millis,
) -> polyclaw_store::Result<Vec<Message>> {
    let mut lines = Vec::new();
    for run in runs::due_to(tx, turn)? {
        let name = name(tx, &run)?;
        lines.push(Message {
            id: polyclaw_domain::id::MessageId::new(run.announce_key()),
            role: Role::User,
            text: run.line(&name),
            origin: Origin::Agent(run.agent.clone()),
            meta: Some(run.payload(&name, run.hop + 1, now)),
            idempotency_key: Some(run.announce_key()),
            ..line.clone()
        });
        runs::announced(tx, &run.id)?;
    }
    runs::let_go(tx, turn)?;
    Ok(lines)
}

/// Ends a run whose child has no turn that could end it.
pub(super) fn close_idle(
    tx: &mut Tx<'_>,
    run: &Run,
    fresh: &Fresh,
    settings: &Settings,
) -> polyclaw_store::Result<Option<Closed>> {
    let Some(open) = runs::of_child(tx, &run.child)?.filter(|open| open.id == run.id) else {
        return Ok(None);
    };
    let status = status(JobState::Cancelled, &open, fresh.now);
    let outcome = Outcome { error_code: Some("stopped".to_owned()), ..Outcome::default() };
    end(tx, open, (status, outcome), fresh, settings, fresh.now).map(Some)
}
