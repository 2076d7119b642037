//! The end of a turn: one transaction with the final text, the usage, the outbox and what comes next.

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
use crate::draft::{self, TurnDrafts};
use crate::error::{Error, Result};
use crate::hub::FrameKind;
use crate::ingress::NewIds;
use crate::prompt::TurnContext;
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

/// What the last transaction of a turn stores. Made before it runs, so that it can be run again.
#[derive(Clone)]
struct FinalCommit {
    claim: TurnClaim,
    session_id: SessionId,
    /// Why calls without a result have none: each gets one that says so.
    unanswered: Option<&'static str>,
    /// Tools whose calls the caller answers.
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
    /// Whose order its parcels keep: another conversation's, where it speaks in that.
    queue: SessionKey,
    /// Sessions of people who asked this child by a command: its reply is shown there.
    shown_in: Vec<SessionKey>,
    /// What an audience elsewhere is told of the end.
    mirror_frame: Option<FrameKind>,
    /// What it has said that is not stored yet.
    streamed_text: StreamedText,
    /// What it is to whoever watches from outside.
    cause: Option<TurnSpanContext>,
    /// It may have waited for runs.
    waited: bool,
    /// What the end of this turn is to the owner of its session, if it has one.
    child_end: Option<ChildTurnEnd>,
    /// Its session is in a team: what a turn would be made of that goes on with its mail.
    in_team: Option<NewIds>,
    /// A member is in the middle of its work: its next turn begins at once.
    continues_next_turn: bool,
    settings: Arc<EngineSettings>,
    now: Millis,
}

/// Returns the reply as it is stored.
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

/// Ends the turn with calls its caller runs itself; their results start the next turn.
pub(super) async fn hand_calls_to_client(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
) -> TurnResult<()> {
    let mut last = final_commit(engine, running, context, JobState::Done);
    last.unanswered = Some("Not run: the caller's own tools go first. Ask again if still needed.");
    last.for_client = context.client_tools.iter().map(|tool| tool.name.clone()).collect();
    last.end.reply = context.last_step().map(|message| message.id.clone());
    or_lost(commit_turn(engine, running, last).await).map(drop)
}

/// Ends the turn for a newer message. The task stays in the backlog and goes on from its stored results.
pub(super) async fn yield_to_newer_message(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
    skipped: &[ToolCall],
) -> TurnResult<()> {
    let mut last = final_commit(engine, running, context, JobState::Steered);
    last.unanswered = Some("Skipped: a newer message of the user goes first.");
    last.tokens = context.resume_tokens(&running.claim.turn);
    let data = json!({ "skipped_calls": skipped.len(), "tasks": last.tokens.len() });
    last.events.push(turn_event(&running.claim, EventKind::TurnSteered, data));
    finalize_leftover_drafts(engine, &mut last, draft::INTERRUPTED_SUFFIX);
    or_lost(commit_turn(engine, running, last).await)?;
    engine.hit_kill_point(KillPoint::Steered).await;
    Ok(())
}

/// Ends a turn that waits for others to tell it that they are done.
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

/// Ends a turn that went round in circles.
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
    add_failure_reply(engine, context, &mut last, stop_code(reason), reason.user_message());
    or_lost(commit_turn(engine, running, last).await).map(drop)
}

/// Ends a turn of a member that has worked for as many rounds as one turn may have. It goes on in its next turn: what
/// bounds it is the team's budget of turns.
async fn end_at_round_limit(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
) -> TurnResult<()> {
    let mut last = final_commit(engine, running, context, JobState::Done);
    last.unanswered = Some("Not run: this turn has reached its limit of rounds. Go on in the next turn.");
    last.continues_next_turn = true;
    add_reply(engine, context, &mut last, String::new(), None);
    or_lost(commit_turn(engine, running, last).await).map(drop)
}

/// Ends a turn that could not go on.
pub(super) async fn abort_turn(engine: &Engine, running: &Arc<RunningTurn>, halt: TurnAbort) -> Result<()> {
    let (state, code, sentence) = match halt {
        TurnAbort::Lost(Error::Store(polyclaw_store::Error::Unreadable(what))) => {
            return abort_unreadable_turn(
                engine,
                running,
                format!("What is stored of this conversation can not be read: {what}"),
            )
            .await;
        }
        TurnAbort::Lost(error) => return Err(error),
        // One that is steered where it can not give way does so as soon as it is claimed again.
        TurnAbort::HandedBack | TurnAbort::Steered => {
            let claim = running.claim.clone();
            return Ok(engine.db().write(move |tx| jobs::release_claim(tx, &claim)).await?);
        }
        TurnAbort::Cancelled => (JobState::Cancelled, "stopped", "Stopped.".to_owned()),
        TurnAbort::Failed { code, sentence } => (JobState::Failed, code, sentence),
    };
    if state == JobState::Cancelled && running.has_waited() {
        engine.wait_for_stopped_runs(&running.claim.turn).await?;
    }
    running.drafts.wait_until_idle().await;
    let (context, final_call) = match load_stored_state(engine, running).await {
        Ok(found) => found,
        Err(TurnAbort::Lost(Error::Store(polyclaw_store::Error::Unreadable(_)))) => {
            return abort_unreadable_turn(engine, running, sentence).await;
        }
        Err(TurnAbort::Lost(error)) => return Err(error),
        Err(_) => return Err(Error::UnknownSession(running.claim.session.to_string())),
    };
    let mut last = final_commit(engine, running, &context, state);
    last.final_call = final_call;
    last.unanswered = Some("Not run: the turn ended before.");
    add_failure_reply(engine, &context, &mut last, code, sentence);
    commit_turn(engine, running, last).await.map(drop)
}

/// Ends a turn of which nothing can be read: no line, but an end that whoever waits is told, so that what comes
/// after it has its turn.
async fn abort_unreadable_turn(engine: &Engine, running: &Arc<RunningTurn>, sentence: String) -> Result<()> {
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

/// What is known of a turn that stops where it stands: its stored steps, and the call it was stopped in.
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
    code: &'static str,
    mut sentence: String,
) {
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
