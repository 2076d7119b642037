//! The statements of a turn's last transaction.

use std::borrow::Cow;
use std::collections::HashMap;

use polyclaw_domain::id::{MessageId, RunId, TurnId};
use polyclaw_domain::job::{JobLane, JobPriority, JobState};
use polyclaw_domain::message::MessageOrigin;
use polyclaw_domain::run::{self, RunStatus, shown_reply_meta};
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::{ToolCall, ToolOutcome};
use polyclaw_store::jobs::{ClaimStatus, NewTurnJob, TurnClaim, TurnJobEnd, TurnJobKind};
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{
    Tx, approvals, backlog, drafts, events, intents, jobs, messages, outbox, runs, sessions,
};

use super::{FinalCommit, TurnCommitOutcome};
use crate::subagents::{self, ChildTurnEnd};
use crate::team;
use crate::turn::tool::OUTCOME_UNKNOWN;
use crate::turn::{has_invalid_arguments, invalid_arguments_message, result_message, unanswered_calls};

/// Stores the end of a turn. The session's row is locked first, then the claim is checked, then everything is stored or
/// nothing. Returns the first position, budget notices, and the lane in which the session's next turn is ready, if any.
pub(super) fn store_final_commit(
    tx: &mut Tx<'_>,
    last: &FinalCommit,
) -> polyclaw_store::Result<TurnCommitOutcome> {
    let first = sessions::allocate_positions(tx, &last.claim.session, last.steps.len(), last.now)?;
    let first = first.unwrap_or_default();
    let given_up = !last.tokens.is_empty() && jobs::verify_claim(tx, &last.claim)? == ClaimStatus::Stopping;
    let end = if given_up { cancelled_end(&last.end) } else { last.end.clone() };
    jobs::end_turn(tx, &last.claim, &end, last.now)?;
    let mut lines = close_calls(tx, last)?;
    if last.waited {
        let line =
            SessionMessage::new_internal(MessageId::new(""), &last.claim, last.session_id.clone(), last.now);
        let mut messages = subagents::late_announce_lines(tx, &last.claim.turn, &line, last.now)?;
        if end.state == JobState::Done {
            // The results of its calls contain them already.
            messages.iter_mut().filter_map(|line| line.meta.as_mut()).for_each(run::mark_shown);
        }
        lines.extend(messages);
    }
    // Nothing may stand between a call and the result that the client sends.
    if last.in_team.is_some() && end.state == JobState::Done && last.for_client.is_empty() {
        let line =
            SessionMessage::new_internal(MessageId::new(""), &last.claim, last.session_id.clone(), last.now);
        lines.extend(team::mail_line(tx, &last.claim.turn, line)?);
    }
    if !lines.is_empty() {
        sessions::allocate_positions(tx, &last.claim.session, lines.len(), last.now)?;
    }
    let steps = with_streamed_text(tx, last)?;
    for (ticket, step) in (first..).zip(lines.iter().chain(steps.iter())) {
        messages::insert_at(tx, step, ticket)?;
    }
    let spent = last.final_call.as_ref();
    let notices = spent.map_or(Ok(Vec::new()), |spent| spent.record_usage(tx, &last.claim, last.now))?;
    if last.end.state != JobState::Done {
        approvals::expire_by_turn(tx, &last.claim.turn, last.now)?;
    }
    for message in &last.outbox_messages {
        outbox::push(tx, message)?;
    }
    if !last.drafts.is_empty() {
        drafts::delete_by_turn(tx, &last.claim.turn)?;
    }
    for event in &last.events {
        events::record(tx, event, last.now)?;
    }
    for token in last.tokens.iter().filter(|_| !given_up) {
        backlog::push(tx, &last.claim.session, token, last.now)?;
    }
    if end.state == JobState::Cancelled {
        // Queued turns cancelled together with it: move their messages out from between its lines.
        for turn in jobs::list_cancelled_behind(tx, &last.claim.session, &last.claim.turn)? {
            messages::move_to_end(tx, &last.claim.session, &turn, last.now)?;
        }
    }
    let mut next = match jobs::release_held(tx, &last.claim.session)? {
        Some(lane) => Some(lane),
        None => queue_resume(tx, &last.claim, &last.next_turn, last.now)?,
    };
    if let Some(fresh) = &last.in_team {
        let after = match &next {
            Some(_) => team::TurnFollowUp::NextTurn,
            None if last.continues_next_turn => team::TurnFollowUp::GoesOn,
            None => team::TurnFollowUp::Nothing,
        };
        let woken = team::end_team_turn(tx, (&last.claim, &end), after, (fresh, &last.settings))?;
        next = next.or(woken);
    }
    if next.is_some() {
        tx.notify_nodes("jobs")?;
    }
    let closed = match &last.child_end {
        Some(closing) => {
            let closing = ChildTurnEnd { state: end.state, ..closing.clone() };
            subagents::complete_run(tx, &last.claim.session, &closing, &last.settings)?
        }
        None => None,
    };
    show_reply(tx, last)?;
    tx.notify_nodes(&format!("session {}", last.claim.session))?;
    Ok(TurnCommitOutcome { first, notices, next, completed_run: closed })
}

/// Stores a child's reply as a line of the sessions from which people asked. The line is not part of any prompt.
fn show_reply(tx: &mut Tx<'_>, last: &FinalCommit) -> polyclaw_store::Result<()> {
    let Some(reply) = last.steps.iter().rev().find(|step| Some(&step.id) == last.end.reply.as_ref()) else {
        return Ok(());
    };
    let label = sessions::get(tx, &last.claim.session)?.and_then(|session| session.title);
    let label = label.unwrap_or_else(|| last.claim.agent.to_string());
    for (n, key) in last.shown_in.iter().enumerate() {
        let Some(ticket) = sessions::allocate_positions(tx, key, 1, last.now)? else { continue };
        let Some(session) = sessions::get(tx, key)? else { continue };
        let line = SessionMessage {
            id: MessageId::new(format!("{}-shown-{n}", last.claim.turn)),
            session: key.clone(),
            session_id: session.id,
            text: format!("{label}: {}", reply.text),
            origin: MessageOrigin::Agent(last.claim.agent.clone()),
            meta: Some(shown_reply_meta(&last.claim.session, &last.claim.agent, &reply.id)),
            turn: TurnId::new(format!("{}-shown", last.claim.turn)),
            deliver: false,
            ..reply.clone()
        };
        messages::insert_at(tx, &line, ticket)?;
        tx.notify_nodes(&format!("session {key}"))?;
    }
    Ok(())
}

/// The end of a turn that yielded after a person had cancelled its task: it does not resume.
fn cancelled_end(end: &TurnJobEnd) -> TurnJobEnd {
    TurnJobEnd { state: JobState::Cancelled, error_code: Some("stopped"), ..end.clone() }
}

/// Builds a result for every call that has none. The calls are read here, under the session's row lock: a step whose
/// storing raced with the abort is either visible by now or never will be.
fn close_calls(tx: &mut Tx<'_>, last: &FinalCommit) -> polyclaw_store::Result<Vec<SessionMessage>> {
    let Some(why) = last.unanswered else { return Ok(Vec::new()) };
    let started: HashMap<String, bool> =
        intents::list_unfinished(tx, &last.claim.turn)?.into_iter().collect();
    let open = unanswered_calls(&messages::list_by_turn(tx, &last.claim.turn)?);
    let ours =
        open.iter().filter(|call| !last.for_client.contains(&call.name) || has_invalid_arguments(call));
    let mut closed = Vec::new();
    for (n, call) in ours.enumerate() {
        let why = match (invalid_arguments_message(call), started.get(&call.id)) {
            (Some(wrong), _) => wrong,
            (None, None) => why.to_owned(),
            (None, Some(reads_only)) => cut_off_result(tx, &last.claim.turn, call, *reads_only)?,
        };
        // Derived, so that a repeated transaction writes the same row.
        let id = MessageId::new(format!("{}-closed-{n}", last.claim.turn));
        let step = SessionMessage::new_internal(id, &last.claim, last.session_id.clone(), last.now);
        closed.push(result_message(step, call, &ToolOutcome::error(why)));
    }
    Ok(closed)
}

/// Returns the result of a call that was running when the turn ended, including a delegate's partial answer. A call
/// with side effects is reported as "outcome unknown", never as "stopped", so that the model does not repeat it.
fn cut_off_result(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    call: &ToolCall,
    reads_only: bool,
) -> polyclaw_store::Result<String> {
    const STOPPED_CALL_TEXT: &str = "Stopped: the turn ended while this call was running.";
    let run = runs::get(tx, &RunId::for_call(turn, &call.id))?;
    let is_known = reads_only || run.as_ref().is_some_and(|run| run.status != RunStatus::Running);
    let text = run.and_then(|run| run.result).map(|result| result.short_summary());
    Ok(match text.filter(|text| !text.is_empty()) {
        Some(text) => format!("{STOPPED_CALL_TEXT} Partial output:\n{text}"),
        None if is_known => STOPPED_CALL_TEXT.to_owned(),
        None => OUTCOME_UNKNOWN.to_owned(),
    })
}

/// Attaches streamed text that is not stored yet to the line that says why the turn ended early.
fn with_streamed_text<'a>(
    tx: &mut Tx<'_>,
    last: &'a FinalCommit,
) -> polyclaw_store::Result<Cow<'a, [SessionMessage]>> {
    let is_cut_off = matches!(last.end.state, JobState::Cancelled | JobState::Failed);
    if !is_cut_off || last.steps.is_empty() || last.streamed_text.unstored_text(&[]).is_empty() {
        return Ok(Cow::Borrowed(&last.steps));
    }
    let stored = messages::list_by_turn(tx, &last.claim.turn)?;
    let mut steps = last.steps.clone();
    let words = last.streamed_text.unstored_text(&stored);
    if let Some(line) = steps.last_mut().filter(|_| !words.is_empty()) {
        line.set_partial_text(words);
    }
    Ok(Cow::Owned(steps))
}

/// Queues a turn that resumes an interrupted task, if nothing else is queued.
fn queue_resume(
    tx: &mut Tx<'_>,
    claim: &TurnClaim,
    turn: &TurnId,
    now: Millis,
) -> polyclaw_store::Result<Option<JobLane>> {
    if !backlog::has_waiting(tx, &claim.session)? {
        return Ok(None);
    }
    let Some(session) = sessions::get(tx, &claim.session)? else { return Ok(None) };
    let job = NewTurnJob {
        turn: turn.clone(),
        session: claim.session.clone(),
        agent: session.active_agent,
        kind: TurnJobKind::Turn,
        lane: session.lane,
        priority: JobPriority::Direct,
        held: false,
        inputs: 0,
        is_steering: false,
        hop: claim.hop,
        trace: claim.trace.clone(),
        queued_at: now,
    };
    jobs::insert(tx, &job)?;
    Ok(Some(job.lane))
}
