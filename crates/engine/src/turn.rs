//! Drives one turn: performs the machine's effects and stores a step between them. The steps hold everything a restart
//! needs, so continuing after a crash is this same function.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use polyclaw_domain::backlog::{self, MAX_ANNOUNCES};
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::{MessageId, TurnId};
use polyclaw_domain::message::{MessageAttachment, MessageOrigin, MessagePart, MessageRole, tool_calls};
use polyclaw_domain::provider::{ErrorClass, ProviderError};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::TeamRole;
use polyclaw_domain::team::tools::TEAM_CREATE;
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::{ToolCall, ToolOutcome};
use polyclaw_domain::turn::{StopReason, Turn, TurnEffect, TurnEvent as Step};
use polyclaw_store::jobs::{ClaimStatus, TurnClaim};
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{Tx, backlog as rows, events, jobs, messages, sessions};
use serde_json::json;

use crate::approval;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::hub::FrameKind;
use crate::prompt::TurnContext;
use crate::reply_text::turn::{ModelAdvice, ModelFailure, TurnFailure};
use crate::toolbox::subagents;
use crate::worker::RunningTurn;

mod announces;
mod end;
mod invalid_arguments;
mod model;
mod retry;
mod tool;

use announces::merge_announces;
pub(crate) use invalid_arguments::has_invalid_arguments;
use invalid_arguments::invalid_arguments_message;
pub(crate) use retry::ModelRetryPolicy;

const EMPTY_REPLY_CODE: &str = "empty_reply";

/// Why a turn ended early.
pub(crate) enum TurnAbort {
    /// The claim was lost or the database failed. The next holder of the claim continues.
    Lost(Error),
    /// The user is shown the reason.
    Failed {
        code: &'static str,
        reason: TurnFailure,
    },
    Cancelled,
    /// The engine drains: the claim is released.
    HandedBack,
    /// A newer message of a person goes first.
    Steered,
}

impl TurnAbort {
    pub fn no_model(engine: &Engine) -> Self {
        let hint = engine.settings().no_model_hint.clone();
        Self::Failed { code: "no_model", reason: ModelFailure::NotConfigured { hint }.into() }
    }

    fn no_agent(claim: &TurnClaim) -> Self {
        Self::Failed { code: "unknown_agent", reason: TurnFailure::UnknownAgent(claim.agent.clone()) }
    }
}

/// Neither tools nor files of an agent whose workspace others can replace are used.
async fn resolve_workspace(engine: &Engine, context: &TurnContext) -> TurnResult<PathBuf> {
    engine.resolve_workspace(&context.spec).await.map_err(|error| match error {
        Error::UnsafeWorkspace(reason) => {
            TurnAbort::Failed { code: "unsafe_workspace", reason: TurnFailure::UnsafeWorkspace(reason) }
        }
        error => TurnAbort::Lost(error),
    })
}

impl From<Error> for TurnAbort {
    fn from(error: Error) -> Self {
        Self::Lost(error)
    }
}

impl From<ProviderError> for TurnAbort {
    fn from(error: ProviderError) -> Self {
        let advice = match (error.class, error.retry_after_ms) {
            (ErrorClass::ContextTooLong, _) => Some(ModelAdvice::StartNewConversation),
            (ErrorClass::RateLimit, Some(ms @ 60_001..)) => {
                Some(ModelAdvice::WaitMinutes(ms.div_ceil(60_000)))
            }
            _ => None,
        };
        let failed = |error: &ProviderError| ModelFailure::Failed { error: error.to_string(), advice };
        let (code, failure) = match error.class {
            ErrorClass::NotConfigured => ("no_model", failed(&error)),
            ErrorClass::Empty => (EMPTY_REPLY_CODE, ModelFailure::EmptyAnswer { model: error.model }),
            ErrorClass::OutOfDescriptors => ("too_many_open_files", ModelFailure::OutOfDescriptors),
            _ => ("provider_failed", failed(&error)),
        };
        Self::Failed { code, reason: failure.into() }
    }
}

pub(crate) type TurnResult<T> = std::result::Result<T, TurnAbort>;

/// Starts a turn in the transaction that claims it: moves its inputs behind messages stored while it was held, and
/// resumes interrupted tasks unless a person's message goes first.
pub(crate) fn open_turn(tx: &mut Tx<'_>, claim: &TurnClaim, now: Millis) -> polyclaw_store::Result<()> {
    if claim.inputs > MAX_ANNOUNCES {
        merge_announces(tx, claim)?;
    }
    if claim.was_held && claim.inputs > 0 {
        messages::move_to_end(tx, &claim.session, &claim.turn, now)?;
    }
    if claim.has_person {
        return Ok(());
    }
    let waiting = rows::list_waiting(tx, &claim.session)?;
    if waiting.is_empty() {
        return Ok(());
    }
    let tasks: Vec<_> = waiting.iter().map(|row| row.task.clone()).collect();
    insert_backlog(tx, claim, &backlog::render_backlog(&tasks), now)?;
    for row in &waiting {
        rows::assign_to_turn(tx, row, &claim.turn)?;
    }
    events::record(tx, &turn_event(claim, EventKind::BacklogDrained, json!({ "tasks": tasks.len() })), now)
}

fn insert_backlog(tx: &mut Tx<'_>, claim: &TurnClaim, text: &str, now: Millis) -> polyclaw_store::Result<()> {
    let ticket = sessions::allocate_positions(tx, &claim.session, 1, now)?.unwrap_or_default();
    let Some(session) = sessions::get(tx, &claim.session)? else { return Ok(()) };
    // Derived, so that a repeated transaction writes the same row.
    let id = MessageId::new(format!("{}-backlog", claim.turn));
    let line = SessionMessage {
        role: MessageRole::User,
        text: text.to_owned(),
        origin: MessageOrigin::System,
        ..SessionMessage::new_internal(id, claim, session.id, now)
    };
    messages::insert_at(tx, &line, ticket)
}

pub(crate) fn turn_event(claim: &TurnClaim, kind: EventKind, data: serde_json::Value) -> NewEvent {
    NewEvent {
        kind,
        session: Some(claim.session.clone()),
        turn: Some(claim.turn.clone()),
        agent: Some(claim.agent.clone()),
        trace: Some(claim.trace.clone()),
        data,
    }
}

/// Runs a claimed turn to its end, with any outcome.
#[tracing::instrument(name = "turn", skip_all, fields(
    turn.id = %running.claim.turn, session.key = %running.claim.session,
    agent.id = %running.claim.agent, trace.id = %running.claim.trace))]
pub(crate) async fn drive_turn(engine: &Engine, running: &Arc<RunningTurn>) {
    loop {
        let lost = match run_with_watchdogs(engine, running).await {
            Ok(()) => return,
            Err(TurnAbort::Lost(error)) => error,
            Err(halt) => match end::abort_turn(engine, running, halt).await {
                Ok(()) => return,
                Err(error) => error,
            },
        };
        if !matches!(&lost, Error::Store(error) if error.is_transient()) || engine.is_draining() {
            return end::publish_stored_end(engine, running, &lost).await;
        }
        // The stored steps remain, so the turn continues from them when the database is available.
        tracing::error!(error = %lost, "database unavailable; retrying the turn in 1 s");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Ends a turn whose task panicked. The panic itself is already logged.
pub(crate) async fn fail_panicked_turn(engine: &Engine, running: &Arc<RunningTurn>) {
    let halt = TurnAbort::Failed { code: "internal", reason: TurnFailure::Internal };
    if let Err(error) = end::abort_turn(engine, running, halt).await {
        tracing::error!(%error, "cannot store end of a turn that panicked; retrying after its lease ends");
    }
}

/// Runs the turn under its watchdogs: a person's stop, the stall timer and the time limit.
async fn run_with_watchdogs(engine: &Engine, running: &Arc<RunningTurn>) -> TurnResult<()> {
    let settings = engine.settings();
    let deaths = running.claim.blamed_deaths;
    // A turn that was cut off while it waited for a person did not cause the crashes.
    if deaths >= settings.attempts && !approval::has_open_approval(engine, &running.claim.turn).await? {
        return Err(TurnAbort::Failed {
            code: "too_many_attempts",
            reason: TurnFailure::TooManyAttempts(deaths),
        });
    }
    let mut run = std::pin::pin!(run_turn(engine, running));
    let halt = tokio::select! {
        biased;
        () = wait_for_cancel(running) => TurnAbort::Cancelled,
        done = &mut run => return done,
        () = wait_for_stall(running, settings.stall_ms) => TurnAbort::Failed {
            code: "stalled",
            reason: TurnFailure::Stalled { seconds: settings.stall_ms / 1000 },
        },
        () = wait_for_turn_limit(running, Duration::from_millis(settings.turn_ms)) => TurnAbort::Failed {
            code: "turn_timeout",
            reason: TurnFailure::TimedOut { minutes: settings.turn_ms / 60_000 },
        },
    };
    // The transaction that ends the turn and claims the next one is running: let it finish.
    if running.is_ending() { run.await } else { Err(halt) }
}

/// Waits for tools that are still being listed. Returns whether there were any.
async fn gather_tools(engine: &Engine, context: &TurnContext) -> bool {
    let Some(gathering) = engine.tools().wait_until_ready(&context.scope) else { return false };
    gathering.await;
    true
}

async fn wait_for_cancel(running: &RunningTurn) {
    while !running.cancelled.load(Ordering::Relaxed) {
        running.cancel.notified().await;
    }
}

async fn wait_for_stall(running: &RunningTurn, stall_ms: u64) {
    while let left @ 1.. = stall_ms.saturating_sub(running.silent_ms()) {
        tokio::time::sleep(Duration::from_millis(left)).await;
    }
}

/// Returns when the turn has worked for this long.
async fn wait_for_turn_limit(running: &RunningTurn, limit: Duration) {
    while let Some(left) = limit.checked_sub(running.worked_time()).filter(|left| !left.is_zero()) {
        tokio::time::sleep(left).await;
    }
}

/// Loads the turn's context, and the drafts of an earlier attempt.
async fn prepare_turn(engine: &Engine, running: &Arc<RunningTurn>) -> TurnResult<TurnContext> {
    let claim = &running.claim;
    let mut context = match running.take_rows() {
        Some(rows) => TurnContext::from_rows(engine, claim, rows)?,
        None => TurnContext::load(engine, claim).await?,
    };
    if gather_tools(engine, &context).await {
        context.refresh_tools(engine);
    }
    // A turn that was released at a step was attempted before, too.
    if claim.attempt > 1 || context.last_step().is_some() {
        running.drafts.load_stored(engine, &claim.turn).await?;
        running.drafts.resend_uncertain(engine, &claim.turn).await;
    }
    if context.agent_is_gone {
        return Err(TurnAbort::no_agent(claim));
    }
    context.scope.workspace = resolve_workspace(engine, &context).await?;
    engine.hub.publish(
        &claim.session,
        FrameKind::Started {
            turn_id: claim.turn.clone(),
            agent_id: claim.agent.to_string(),
            resumes: context.resumed_turns(),
        },
    );
    Ok(context)
}

async fn run_turn(engine: &Engine, running: &Arc<RunningTurn>) -> TurnResult<()> {
    let claim = &running.claim;
    let mut context = prepare_turn(engine, running).await?;
    if claim.kind == jobs::TurnJobKind::Compact {
        context.compact_history(engine, running).await?;
        return end::finish_turn(engine, running, &context, String::new()).await.map(drop);
    }
    context.recall_memories(engine, claim).await;
    context.load_earlier_replies(engine).await?;
    let steps = context.steps();
    if !steps.is_empty() {
        context.load_spent_usage(engine, claim).await?;
    }
    let mut machine = Turn::restore_from_steps(engine.settings().limits, steps);
    let mut effect = machine.apply_event(Step::Started { steered: context.steered });
    loop {
        running.note_progress();
        effect = match effect {
            TurnEffect::CallModel => {
                context.load_team_context(engine, claim).await?;
                let reply = match model::ask_model(engine, running, &mut context, &machine).await {
                    Err(TurnAbort::Steered) => {
                        effect = machine.apply_event(Step::Started { steered: true });
                        continue;
                    }
                    asked => asked?,
                };
                if reply.calls.iter().any(|call| context.is_for_client(call)) {
                    return end::hand_calls_to_client(engine, running, &context).await;
                }
                machine.apply_event(Step::Replied { text: reply.text, calls: reply.calls })
            }
            // A crash came after storing the step and before ending the turn for the client.
            TurnEffect::RunTool(call) if context.is_for_client(&call) => {
                return end::hand_calls_to_client(engine, running, &context).await;
            }
            TurnEffect::RunTool(call) => {
                let (outcome, steered) = tool::run_tool_call(engine, running, &mut context, &call).await?;
                if engine.is_draining() {
                    return Err(TurnAbort::HandedBack);
                }
                if call.name == subagents::YIELD_TOOL && !outcome.is_error {
                    return end::end_yielded_turn(engine, running, &context).await;
                }
                if call.name == TEAM_CREATE && !outcome.is_error {
                    context.set_team_role(engine, TeamRole::Lead);
                }
                machine.apply_event(Step::Resulted { call_id: call.id, outcome, steered })
            }
            TurnEffect::Yield { skipped } => {
                return end::yield_to_newer_message(engine, running, &context, &skipped).await;
            }
            TurnEffect::Finish { text } => {
                let reply = end::finish_turn(engine, running, &context, text).await?;
                context.mark_bootstrap_shown(engine);
                context.cache_history(engine, &claim.session, reply);
                return Ok(());
            }
            TurnEffect::Stop { reason, .. } => {
                return end::stop_looping_turn(engine, running, &context, &reason).await;
            }
        };
    }
}

/// Builds an empty step message of this turn.
pub(crate) fn step_message(
    context: &TurnContext,
    claim: &TurnClaim,
    id: MessageId,
    now: Millis,
) -> SessionMessage {
    SessionMessage::new_internal(id, claim, context.session_id.clone(), now)
}

/// Builds the one result of a call. Every call gets exactly one, which may be synthetic.
pub(crate) fn result_message(step: SessionMessage, call: &ToolCall, outcome: &ToolOutcome) -> SessionMessage {
    let part = MessagePart::ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        is_error: outcome.is_error,
    };
    let meta = outcome
        .facts
        .as_ref()
        .map(|facts| json!({ "sandbox": { "line": facts.summary_line(), "facts": facts } }));
    let shown = outcome.images.iter().cloned();
    let shown =
        shown.map(|(name, image)| MessagePart::Attachment(MessageAttachment::from_image(name, image)));
    let parts = [part].into_iter().chain(shown).collect();
    SessionMessage { role: MessageRole::Tool, text: outcome.content.clone(), parts, meta, ..step }
}

/// Stores a step and returns its position.
pub(crate) fn append_step(tx: &mut Tx<'_>, step: &SessionMessage) -> polyclaw_store::Result<i64> {
    let ticket = sessions::allocate_positions(tx, &step.session, 1, step.created_at)?.unwrap_or_default();
    messages::insert_at(tx, step, ticket)?;
    Ok(ticket)
}

/// Returns the calls of the last stored step that have no result yet.
pub(crate) fn unanswered_calls(stored: &[SessionMessage]) -> Vec<ToolCall> {
    let Some(at) = stored
        .iter()
        .rposition(|m| m.role == MessageRole::Assistant && tool_calls(&m.parts).next().is_some())
    else {
        return Vec::new();
    };
    let answered: Vec<&str> = stored[at..]
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            MessagePart::ToolResult { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        })
        .collect();
    tool_calls(&stored[at].parts).filter(|call| !answered.contains(&call.id.as_str())).cloned().collect()
}

impl Engine {
    /// Stores an event and logs it.
    pub(crate) async fn record_event(&self, mut event: NewEvent) {
        self.redactor().redact_json(&mut event.data);
        tracing::info!(
            kind = event.kind.as_str(),
            session.key = event.session.as_ref().map(SessionKey::as_str),
            turn.id = event.turn.as_ref().map(TurnId::as_str),
            data = %event.data,
            "event"
        );
        let now = self.now();
        if let Err(error) = self.db().write(move |tx| events::record(tx, &event, now)).await {
            tracing::warn!(%error, "cannot store event");
        }
    }
}

/// Returns the error code of a turn that the machine stopped.
pub(crate) fn stop_code(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::TooManyRounds(_) => "too_many_rounds",
        StopReason::Loop { .. } => "loop_detected",
    }
}

pub(crate) fn or_lost<T>(result: Result<T>) -> TurnResult<T> {
    result.map_err(TurnAbort::Lost)
}

/// Fails if this node has lost its claim, so that it writes nothing more to the transcript. Otherwise returns whether
/// the turn should stop. If a step is stored too, store it first: the session's row is locked before the job's,
/// everywhere.
pub(crate) fn check_claim(tx: &mut Tx<'_>, claim: &TurnClaim) -> polyclaw_store::Result<ClaimStatus> {
    match jobs::verify_claim(tx, claim)? {
        ClaimStatus::Lost => {
            Err(polyclaw_store::Error::Conflict(format!("turn {} was taken over", claim.turn)))
        }
        hold => Ok(hold),
    }
}

/// Aborts a turn that a person stopped, after a step was stored.
pub(crate) fn abort_if_stopping(hold: ClaimStatus) -> TurnResult<()> {
    if hold == ClaimStatus::Stopping { Err(TurnAbort::Cancelled) } else { Ok(()) }
}
