//! The end of a turn: one transaction stores the final text, the usage, the outbox and the next turn.

mod commit;
mod mirror;
mod reply;
mod store;

use std::sync::Arc;

use polyclaw_domain::backlog::ResumeToken;
use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::{SessionId, TurnId};
use polyclaw_domain::job::JobState;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::TeamRole;
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::ToolCall;
use polyclaw_domain::turn::StopReason;
use polyclaw_store::jobs;
use polyclaw_store::jobs::{TurnClaim, TurnJobEnd, TurnJobKind};
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::outbox::OutboxMessage;
use serde_json::json;

use crate::budget::UnstoredModelCall;
use crate::core::Engine;
use crate::draft::TurnDrafts;
use crate::error::{Error, Result};
use crate::hub::FrameKind;
use crate::ingress::NewIds;
use crate::prompt::TurnContext;
use crate::reply_text;
use crate::reply_text::turn::TurnFailure;
use crate::settings::EngineSettings;
use crate::span::TurnSpanContext;
use crate::subagents::{self, ChildTurnEnd};
use crate::turn::{TurnAbort, TurnResult, or_lost, stop_code, turn_event};
use crate::worker::{RunningTurn, StreamedText};

pub(super) use commit::publish_stored_end;
use commit::{TurnCommitOutcome, commit_turn};
pub(super) use mirror::release_drafts;
use reply::{add_reply, finalize_leftover_drafts, pass_gate};

const STORE_UNREADABLE_CODE: &str = "store_unreadable";

/// Everything the last transaction of a turn stores. Built before it runs, so that the transaction can be repeated.
#[derive(Clone)]
struct FinalCommit {
    claim: TurnClaim,
    session_id: SessionId,
    /// Result text for calls without a result.
    unanswered: Option<&'static str>,
    /// Tools whose calls the client answers.
    for_client: Vec<String>,
    steps: Vec<SessionMessage>,
    end: TurnJobEnd,
    outbox_messages: Vec<OutboxMessage>,
    events: Vec<polyclaw_domain::event::NewEvent>,
    tokens: Vec<ResumeToken>,
    /// A model call that no step has recorded.
    final_call: Option<UnstoredModelCall>,
    next_turn: TurnId,
    drafts: Arc<TurnDrafts>,
    /// The session whose delivery order its messages keep: the mirrored conversation's, if there is one.
    queue: SessionKey,
    /// Sessions from which people addressed this child with a command. They are shown its reply.
    shown_in: Vec<SessionKey>,
    /// The end as published to a mirrored conversation.
    mirror_frame: Option<FrameKind>,
    /// Streamed text that is not stored yet.
    streamed_text: StreamedText,
    /// Context of the turn's span.
    cause: Option<TurnSpanContext>,
    /// It may have waited for runs.
    waited: bool,
    /// How the turn ended, for the owner of its session, if there is one.
    child_end: Option<ChildTurnEnd>,
    /// Set if the session is in a team: ids of a turn that would continue with its messages.
    in_team: Option<NewIds>,
    /// The next turn of a member starts immediately, because its work is unfinished.
    continues_next_turn: bool,
    settings: Arc<EngineSettings>,
    now: Millis,
}

/// Ends a completed turn and returns the stored reply.
pub(super) async fn finish_turn(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
    text: String,
) -> TurnResult<Option<SessionMessage>> {
    let mut last = final_commit(engine, running, context, JobState::Done);
    if running.claim.kind == TurnJobKind::Turn {
        add_reply(engine, context, &mut last, text, None);
    }
    last.final_call = running.model_call();
    engine.hit_kill_point(KillPoint::FinishBefore).await;
    let reply = last.steps.first().cloned();
    let ticket = or_lost(commit_turn(engine, running, last).await)?;
    Ok(reply.map(|reply| SessionMessage { position: ticket, ..reply }))
}

/// Ends the turn with calls that its client runs. Their results start the next turn.
pub(super) async fn hand_calls_to_client(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
) -> TurnResult<()> {
    let mut last = final_commit(engine, running, context, JobState::Done);
    last.unanswered =
        Some("Not run: the caller's own tools run first. Call this tool again if you still need it.");
    last.for_client = context.client_tools.iter().map(|tool| tool.name.clone()).collect();
    last.end.reply = context.last_step().map(|message| message.id.clone());
    or_lost(commit_turn(engine, running, last).await).map(drop)
}

/// Ends the turn for a newer message. The task stays in the backlog and continues from its stored results.
pub(super) async fn yield_to_newer_message(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
    skipped: &[ToolCall],
) -> TurnResult<()> {
    let mut last = final_commit(engine, running, context, JobState::Steered);
    last.unanswered = Some("Skipped: a newer message of the user takes precedence.");
    last.tokens = context.resume_tokens(&running.claim.turn);
    let data = json!({ "skipped_calls": skipped.len(), "tasks": last.tokens.len() });
    last.events.push(turn_event(&running.claim, EventKind::TurnSteered, data));
    let remark = reply_text::notice::interrupted_suffix(engine.settings().locale_for(&context.session));
    finalize_leftover_drafts(engine, &mut last, &remark);
    or_lost(commit_turn(engine, running, last).await)?;
    engine.hit_kill_point(KillPoint::Steered).await;
    Ok(())
}

/// Ends a turn that waits for announces of other sessions.
pub(super) async fn end_yielded_turn(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
) -> TurnResult<()> {
    let mut last = final_commit(engine, running, context, JobState::Done);
    last.unanswered = Some("Skipped: the turn ended with sessions_yield.");
    add_reply(engine, context, &mut last, String::new(), None);
    or_lost(commit_turn(engine, running, last).await).map(drop)
}

/// Ends a turn that the machine stopped because of a loop or the round limit.
pub(super) async fn stop_looping_turn(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
    reason: &StopReason,
) -> TurnResult<()> {
    let is_member = context.session.team_role == Some(TeamRole::Member);
    if is_member && matches!(reason, StopReason::TooManyRounds(_)) {
        return end_at_round_limit(engine, running, context).await;
    }
    let mut last = final_commit(engine, running, context, JobState::Failed);
    last.unanswered = Some("Skipped: the turn was stopped.");
    let failure = TurnFailure::StoppedByRule(reason.clone());
    add_failure_reply(engine, context, &mut last, (stop_code(reason), &failure));
    or_lost(commit_turn(engine, running, last).await).map(drop)
}

/// Ends a member's turn that reached the round limit. The member continues in its next turn, bounded by the team's turn
/// budget.
async fn end_at_round_limit(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
) -> TurnResult<()> {
    let mut last = final_commit(engine, running, context, JobState::Done);
    last.unanswered = Some("Not run: this turn has reached its round limit. Continue in the next turn.");
    last.continues_next_turn = true;
    add_reply(engine, context, &mut last, String::new(), None);
    or_lost(commit_turn(engine, running, last).await).map(drop)
}

/// Ends a turn early.
pub(super) async fn abort_turn(engine: &Engine, running: &Arc<RunningTurn>, halt: TurnAbort) -> Result<()> {
    let (state, code, failure) = match halt {
        TurnAbort::Lost(Error::Store(polyclaw_store::Error::Unreadable(what))) => {
            return abort_unreadable_turn(engine, running, &TurnFailure::Unreadable(what)).await;
        }
        TurnAbort::Lost(error) => return Err(error),
        // A steered turn that cannot yield here yields as soon as it is claimed again.
        TurnAbort::HandedBack | TurnAbort::Steered => {
            let claim = running.claim.clone();
            return Ok(engine.db().write(move |tx| jobs::release_claim(tx, &claim)).await?);
        }
        TurnAbort::Cancelled => (JobState::Cancelled, "stopped", TurnFailure::Stopped),
        TurnAbort::Failed { code, reason } => (JobState::Failed, code, reason),
    };
    if state == JobState::Cancelled && running.has_waited() {
        engine.wait_for_stopped_runs(&running.claim.turn).await?;
    }
    running.drafts.wait_until_idle().await;
    let (context, final_call) = match load_stored_state(engine, running).await {
        Ok(found) => found,
        Err(TurnAbort::Lost(Error::Store(polyclaw_store::Error::Unreadable(_)))) => {
            return abort_unreadable_turn(engine, running, &failure).await;
        }
        Err(TurnAbort::Lost(error)) => return Err(error),
        Err(_) => return Err(Error::UnknownSession(running.claim.session.to_string())),
    };
    let mut last = final_commit(engine, running, &context, state);
    last.final_call = final_call;
    last.unanswered = Some("Not run: the turn ended first.");
    add_failure_reply(engine, &context, &mut last, (code, &failure));
    commit_turn(engine, running, last).await.map(drop)
}

/// Fails a turn whose stored rows cannot be decoded. It stores no reply, only the failure, so that waiters return and
/// the session's next turn can start.
async fn abort_unreadable_turn(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    failure: &TurnFailure,
) -> Result<()> {
    let sentence = failure.text(engine.session_locale(&running.claim.session).await);
    let mut last = empty_final_commit(engine, running, JobState::Failed);
    last.in_team = Some(NewIds::new(engine, Some(running.claim.trace.clone())));
    last.events.push(turn_event(
        &last.claim,
        EventKind::TurnFailed,
        json!({ "code": STORE_UNREADABLE_CODE }),
    ));
    (last.end.error_code, last.end.error) = (Some(STORE_UNREADABLE_CODE), Some(sentence));
    commit_turn(engine, running, last).await.map(drop)
}

/// Loads the stored state of an aborted turn: its steps, and the model call it was aborted in.
async fn load_stored_state(
    engine: &Engine,
    running: &Arc<RunningTurn>,
) -> TurnResult<(TurnContext, Option<UnstoredModelCall>)> {
    let mut context = TurnContext::load(engine, &running.claim).await?;
    context.load_spent_usage(engine, &running.claim).await?;
    let cut_off = running.model_call();
    cut_off.iter().for_each(|spent| context.add_usage(spent));
    Ok((context, cut_off))
}

fn final_commit(
    engine: &Engine,
    running: &RunningTurn,
    context: &TurnContext,
    state: JobState,
) -> FinalCommit {
    let mut last = empty_final_commit(engine, running, state);
    last.session_id.clone_from(&context.session_id);
    if let Some(listeners) = &context.mirror {
        last.queue = listeners.session().clone();
    }
    last.cause = TurnSpanContext::for_turn(engine, context, &running.claim);
    last.end.model.clone_from(&context.model_used);
    last.end.usage = context.usage;
    last.waited = running.has_waited() || running.claim.attempt > 1 || context.last_step().is_some();
    last.in_team = context.session.team_role.map(|_| NewIds::new(engine, Some(running.claim.trace.clone())));
    last.child_end = context.session.owner.is_some().then(|| ChildTurnEnd {
        turn: running.claim.turn.clone(),
        state,
        text: String::new(),
        streamed_text: running.streamed_text(),
        error_code: None,
        commit: context.run.as_ref().and_then(|_| subagents::read_head_commit(&context.scope.workspace)),
        fresh: NewIds::new(engine, Some(running.claim.trace.clone())),
    });
    last
}

fn empty_final_commit(engine: &Engine, running: &RunningTurn, state: JobState) -> FinalCommit {
    FinalCommit {
        claim: running.claim.clone(),
        session_id: SessionId::new(String::new()),
        unanswered: None,
        for_client: Vec::new(),
        steps: Vec::new(),
        end: TurnJobEnd {
            state,
            model: None,
            usage: TokenUsage::default(),
            reply: None,
            error_code: None,
            error: None,
        },
        outbox_messages: Vec::new(),
        events: Vec::new(),
        tokens: Vec::new(),
        final_call: None,
        next_turn: TurnId::new(engine.next_id()),
        drafts: Arc::clone(&running.drafts),
        queue: running.claim.session.clone(),
        shown_in: Vec::new(),
        mirror_frame: None,
        cause: None,
        streamed_text: running.streamed_text(),
        child_end: None,
        in_team: None,
        continues_next_turn: false,
        waited: false,
        settings: engine.settings(),
        now: engine.now(),
    }
}

fn add_failure_reply(
    engine: &Engine,
    context: &TurnContext,
    last: &mut FinalCommit,
    (code, failure): (&'static str, &TurnFailure),
) {
    let mut sentence = failure.text(engine.settings().locale_for(&context.session));
    engine.redactor().redact_in_place(&mut sentence);
    let kind =
        if last.end.state == JobState::Cancelled { EventKind::TurnCancelled } else { EventKind::TurnFailed };
    last.events.push(turn_event(&last.claim, kind, json!({ "code": code })));
    last.end.error_code = Some(code);
    last.end.error = Some(sentence.clone());
    if last.claim.kind == TurnJobKind::Turn {
        add_reply(engine, context, last, sentence, Some(code));
    }
}
