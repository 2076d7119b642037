//! Ends a run with the turn that ends it, and announces it to its owner.

use std::sync::Arc;

use polyclaw_domain::budget::nanos_to_usd;
use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::job::JobState;
use polyclaw_domain::message::{MessageOrigin, MessageRole};
use polyclaw_domain::run::{RunKind, RunOutcome, RunStatus, SubagentRun};
use polyclaw_domain::sandbox::WorkerFault;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{Tx, agents, backlog, events, jobs, messages, runs, usage};
use serde_json::json;

use super::artifacts::collect_artifacts;
use super::delegation_stats::DelegationEnd;
use super::replies::join_earlier_replies;
use super::{RunCompletion, held_announces};
use crate::ingress::{self, AcceptedMessage, InternalMessage, NewIds, NodeContext, RelayInfo, RelayKind};
use crate::prompt::is_meaningful_result;
use crate::settings::EngineSettings;
use crate::worker::StreamedText;

/// Code of an announce that is held because its owner was deleted.
const OWNER_GONE_CODE: &str = "owner_gone";

/// How a turn of a child ended.
#[derive(Clone)]
pub(crate) struct ChildTurnEnd {
    pub turn: TurnId,
    pub state: JobState,
    pub text: String,
    /// Streamed text that is not stored yet.
    pub streamed_text: StreamedText,
    pub error_code: Option<String>,
    /// The workspace's current commit.
    pub commit: Option<String>,
    pub fresh: NewIds,
}

impl ChildTurnEnd {
    /// Rewrites the end of a turn that its run's deadline stopped: it timed out and was not stopped by a user.
    fn timed_out(&self) -> Self {
        let was_stopped = self.error_code.as_deref() == Some("stopped");
        let text = if was_stopped { "The run reached its time limit.".to_owned() } else { self.text.clone() };
        Self { text, error_code: Some("timeout".to_owned()), ..self.clone() }
    }
}

/// Ends the session's run if this turn's end is the run's end, and announces it to the owner.
pub(crate) fn complete_run(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    closing: &ChildTurnEnd,
    settings: &Arc<EngineSettings>,
) -> polyclaw_store::Result<Option<RunCompletion>> {
    if !closing.state.is_terminal() || closing.state == JobState::Steered {
        return Ok(None);
    }
    let Some(run) = runs::find_running_by_child(tx, session)? else { return Ok(None) };
    // A stopped turn ends its run, whatever is queued in the session.
    if closing.state != JobState::Cancelled && has_unfinished_work(tx, session, closing.state)? {
        return Ok(None);
    }
    let now = closing.fresh.now;
    let timed_out = run_status(closing.state, &run, now) == RunStatus::Timeout;
    let closing = &if timed_out { closing.timed_out() } else { closing.clone() };
    let (mut status, mut outcome) = (run_status(closing.state, &run, now), run_outcome(tx, &run, closing)?);
    if status == RunStatus::Ok
        && run.kind == RunKind::Delegate
        && let Some(fault) = worker_fault(tx, &closing.turn)?
    {
        (status, outcome.error_code) = (RunStatus::Error, Some(fault.as_str().to_owned()));
    }
    end_run(tx, run, (status, outcome), &closing.fresh, settings, now).map(Some)
}

/// Whether the child has more work to do for its owner. Messages that people wrote to it meanwhile do not count: they
/// are answered to those people, and the owner is notified first.
fn has_unfinished_work(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    state: JobState,
) -> polyclaw_store::Result<bool> {
    if state == JobState::Done && !runs::list_running_by_owner(tx, session)?.is_empty() {
        return Ok(true);
    }
    let Some(turn) = jobs::session_load(tx, session)?.queued else { return Ok(false) };
    Ok(backlog::has_waiting(tx, session)? || !jobs::is_from_people(tx, &turn)?)
}

fn run_status(state: JobState, run: &SubagentRun, now: Millis) -> RunStatus {
    match state {
        JobState::Done => RunStatus::Ok,
        _ if run.deadline.is_some_and(|deadline| deadline <= now) => RunStatus::Timeout,
        JobState::Cancelled => RunStatus::Cancelled,
        _ => RunStatus::Error,
    }
}

fn run_outcome(
    tx: &mut Tx<'_>,
    run: &SubagentRun,
    closing: &ChildTurnEnd,
) -> polyclaw_store::Result<RunOutcome> {
    let mut text = match closing.error_code {
        Some(_) => cut_off_text(tx, run, closing)?,
        None => closing.text.clone(),
    };
    if text.trim().is_empty() && !is_stopped_delegate(run, closing) {
        let stored = messages::list_by_turn(tx, &closing.turn)?;
        let results = || stored.iter().rev().filter(|message| message.role == MessageRole::Tool);
        let last = results().find(|message| is_meaningful_result(message)).or_else(|| results().next());
        text = last
            .map(|message| format!("(no final answer; last tool result) {}", message.text))
            .unwrap_or_default();
    }
    let text = join_earlier_replies(tx, run, &closing.turn, text)?;
    let spent = usage::sum_by_session(tx, &run.child)?;
    let usage = spent.as_ref().filter(|spent| spent.unknown_calls == 0);
    let priced = spent.as_ref().filter(|spent| spent.unpriced_calls == 0);
    let tokens = usage.map(|spent| spent.input_tokens.unwrap_or(0) + spent.output_tokens.unwrap_or(0));
    Ok(RunOutcome {
        text,
        error_code: closing.error_code.clone(),
        tokens: tokens.map(i64::unsigned_abs),
        cost_usd: priced.and_then(|spent| spent.cost_nanos).map(nanos_to_usd),
        artifacts: collect_artifacts(tx, run, closing.commit.as_deref())?,
    })
}

/// Returns the worker fault that made the turn's last tool call fail. The turn's reply is then not a result of the
/// delegated work.
fn worker_fault(tx: &mut Tx<'_>, turn: &TurnId) -> polyclaw_store::Result<Option<WorkerFault>> {
    let stored = messages::list_by_turn(tx, turn)?;
    let last = stored.into_iter().rev().find(|message| message.role == MessageRole::Tool);
    let fault = last.and_then(|message| message.meta?.pointer("/sandbox/facts/fault").cloned());
    Ok(fault.and_then(|fault| serde_json::from_value(fault).ok()))
}

/// Returns the partial text of a child that was cut off, so that the owner gets it along with the failure.
fn cut_off_text(
    tx: &mut Tx<'_>,
    run: &SubagentRun,
    closing: &ChildTurnEnd,
) -> polyclaw_store::Result<String> {
    let text = closing.streamed_text.full_text(&messages::list_by_turn(tx, &closing.turn)?);
    Ok(match run.kind {
        _ if text.is_empty() && is_stopped_delegate(run, closing) => text,
        _ if text.is_empty() => closing.text.clone(),
        // A delegation's answer carries an error code; an announce has only its text to give the reason.
        RunKind::Subagent if closing.state == JobState::Failed => format!("{text}\n\n({})", closing.text),
        _ => text,
    })
}

/// Whether this is a stopped delegation. Its answer states the stop separately, so an empty text stays empty.
fn is_stopped_delegate(run: &SubagentRun, closing: &ChildTurnEnd) -> bool {
    run.kind == RunKind::Delegate && closing.state == JobState::Cancelled
}

fn end_run(
    tx: &mut Tx<'_>,
    run: SubagentRun,
    (status, outcome): (RunStatus, RunOutcome),
    fresh: &NewIds,
    settings: &Arc<EngineSettings>,
    now: Millis,
) -> polyclaw_store::Result<RunCompletion> {
    runs::end_run(tx, &run.id, status, &outcome, now)?;
    let run = SubagentRun { status, result: Some(outcome), ..run };
    let mut closed = RunCompletion {
        owner: run.owner.clone(),
        ready: None,
        notice: None,
        ended: DelegationEnd::from_run(&run, now),
    };
    tx.notify_nodes(&format!("session {}", run.owner))?;
    // A running turn that waits for it is given the result, and stores the announce when it ends.
    let awaited = match &run.awaited_by {
        Some(turn) => jobs::get(tx, turn)?.is_some_and(|job| job.state == JobState::Running),
        None => false,
    };
    if awaited {
        return Ok(closed);
    }
    let name = name(tx, &run)?;
    let line = run.transcript_line(&name);
    let message = (&run.owner, line.as_str());
    let notice = announce_message(&run, &name, runs::is_stopped(tx, &run.id)?, now);
    runs::mark_announced(tx, &run.id)?;
    if let Some(turn) = &run.owner_turn
        && is_owner_chain_over(tx, &run)?
    {
        // The requesters of the owner get the result of its own run, so nothing is left to do with this one.
        ingress::inject_transcript_line(tx, message, notice, fresh, turn)?;
        record_announce_delivered(tx, &run, now)?;
        return Ok(closed);
    }
    let (verdict, _) = ingress::inject_in_tx(tx, message, notice, fresh, &NodeContext::queue_only(settings))?;
    // An announce is rejected only if its owner was deleted.
    let accepted = verdict.ok().map(|(accepted, _)| accepted);
    closed.ready = accepted.as_ref().and_then(AcceptedMessage::ready_lane);
    let held = accepted.as_ref().map_or(Some(OWNER_GONE_CODE), |accepted| accepted.held);
    let Some(code) = held else {
        record_announce_delivered(tx, &run, now)?;
        return Ok(closed);
    };
    runs::hold_announce(tx, &run.id, code)?;
    if let Some(accepted) = &accepted {
        closed.notice =
            held_announces::held_notice(tx, (&run, &name), (&accepted.turn_id, code), settings, now)?;
    }
    let data = json!({ "run_id": run.id, "code": code });
    events::record(tx, &held_announces::announce_event(EventKind::AnnounceHeld, &run, data), now)?;
    Ok(closed)
}

fn record_announce_delivered(tx: &mut Tx<'_>, run: &SubagentRun, now: Millis) -> polyclaw_store::Result<()> {
    let data = json!({ "run_id": run.id, "status": run.status, "from": run.child });
    events::record(tx, &held_announces::announce_event(EventKind::AnnounceDelivered, run, data), now)
}

/// Whether the owner worked for another session itself and that work is over: it ended, or it was stopped together with
/// everything it started.
fn is_owner_chain_over(tx: &mut Tx<'_>, run: &SubagentRun) -> polyclaw_store::Result<bool> {
    if runs::has_outlived_owner(tx, run)? {
        return Ok(true);
    }
    let Some(own) = runs::find_running_by_child(tx, &run.owner)? else { return Ok(false) };
    if !runs::is_stopped(tx, &run.id)? {
        return Ok(false);
    }
    let running = match jobs::session_load(tx, &run.owner)?.running {
        Some(turn) => jobs::get(tx, &turn)?,
        None => None,
    };
    Ok(runs::is_stopped(tx, &own.id)? || running.is_some_and(|job| job.cancel))
}

fn name(tx: &mut Tx<'_>, run: &SubagentRun) -> polyclaw_store::Result<String> {
    let found = agents::get(tx, &run.agent)?;
    Ok(found.map_or_else(|| run.agent.to_string(), |stored| stored.spec.name))
}

fn announce_message(run: &SubagentRun, name: &str, is_stopped: bool, now: Millis) -> InternalMessage {
    let hop = run.hop;
    let way = if is_stopped { RelayKind::Stopped } else { RelayKind::Announce };
    let relayed = RelayInfo { from: run.child.clone(), hop, trace: run.trace.clone(), kind: way };
    // The announce is an internal message too. Its payload counts the hop, but the hop limit does not; otherwise an
    // owner that spawns one child after another would be cut off midway.
    let meta = Some(run.announce_payload(name, hop + 1, now));
    InternalMessage { meta, ..InternalMessage::from_session(run.agent.clone(), relayed, run.announce_key()) }
}

/// Returns the announces of runs that a turn waited for, as lines of that turn, which was given their results.
pub(crate) fn late_announce_lines(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    line: &SessionMessage,
    now: Millis,
) -> polyclaw_store::Result<Vec<SessionMessage>> {
    let mut lines = Vec::new();
    for run in runs::list_awaited_results(tx, turn)? {
        let name = name(tx, &run)?;
        lines.push(SessionMessage {
            id: polyclaw_domain::id::MessageId::new(run.announce_key()),
            role: MessageRole::User,
            text: run.transcript_line(&name),
            origin: MessageOrigin::Agent(run.agent.clone()),
            meta: Some(run.announce_payload(&name, run.hop + 1, now)),
            idempotency_key: Some(run.announce_key()),
            ..line.clone()
        });
        runs::mark_announced(tx, &run.id)?;
        record_announce_delivered(tx, &run, now)?;
    }
    runs::stop_awaiting(tx, turn)?;
    Ok(lines)
}

/// Ends a run whose child has no turn that could end it.
pub(super) fn complete_idle_run(
    tx: &mut Tx<'_>,
    run: &SubagentRun,
    fresh: &NewIds,
    settings: &Arc<EngineSettings>,
) -> polyclaw_store::Result<Option<RunCompletion>> {
    let Some(open) = runs::find_running_by_child(tx, &run.child)?.filter(|open| open.id == run.id) else {
        return Ok(None);
    };
    let status = run_status(JobState::Cancelled, &open, fresh.now);
    let outcome = RunOutcome { error_code: Some("stopped".to_owned()), ..RunOutcome::default() };
    end_run(tx, open, (status, outcome), fresh, settings, fresh.now).map(Some)
}
