//! The end of a turn: one transaction with the final text, the usage, the outbox and what comes next.

mod audience;
mod commit;
mod say;
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

use crate::budget::Spent;
use crate::core::Engine;
use crate::draft::{self, Drafts};
use crate::error::{Error, Result};
use crate::family::{self, Closing};
use crate::hub::FrameKind;
use crate::ingress::Fresh;
use crate::prompt::Context;
use crate::settings::Settings;
use crate::span::Cause;
use crate::turn::{Driven, Halt, event, lost, stop_code};
use crate::worker::{Running, Said};

pub(super) use audience::release_drafts;
pub(super) use commit::look;
use commit::{Stored, commit};
use say::{leave_drafts, pass_gate, say};

const UNREADABLE: &str = "store_unreadable";

/// What the last transaction of a turn stores. Made before it runs, so that it can be run again.
#[derive(Clone)]
struct Last {
    claim: TurnClaim,
    session_id: SessionId,
    /// Why calls without a result have none: each gets one that says so.
    unanswered: Option<&'static str>,
    /// Tools whose calls the caller answers.
    for_client: Vec<String>,
    steps: Vec<SessionMessage>,
    end: TurnJobEnd,
    parcels: Vec<OutboxMessage>,
    events: Vec<polyclaw_domain::event::NewEvent>,
    tokens: Vec<ResumeToken>,
    /// A model call that no step has recorded.
    final_call: Option<Spent>,
    next_turn: TurnId,
    drafts: Arc<Drafts>,
    /// Whose order its parcels keep: another conversation's, where it speaks in that.
    queue: SessionKey,
    /// Sessions of people who asked this child by a command: its reply is shown there.
    shown_in: Vec<SessionKey>,
    /// What an audience elsewhere is told of the end.
    told: Option<FrameKind>,
    /// What it has said that is not stored yet.
    said: Said,
    /// What it is to whoever watches from outside.
    cause: Option<Cause>,
    /// It may have waited for runs.
    waited: bool,
    /// What the end of this turn is to the owner of its session, if it has one.
    closing: Option<Closing>,
    /// Its session is in a team: what a turn would be made of that goes on with its mail.
    in_team: Option<Fresh>,
    /// A member is in the middle of its work: its next turn begins at once.
    goes_on: bool,
    settings: Arc<Settings>,
    now: Millis,
}

/// Returns the reply as it is stored.
pub(super) async fn finish(
    engine: &Engine,
    running: &Arc<Running>,
    context: &Context,
    text: String,
) -> Driven<Option<SessionMessage>> {
    let mut last = last(engine, running, context, JobState::Done);
    if running.claim.kind == TurnJobKind::Turn {
        say(engine, context, &mut last, text, None);
    }
    last.final_call = running.spent();
    engine.reach(KillPoint::FinishBefore).await;
    let reply = last.steps.first().cloned();
    let ticket = lost(commit(engine, running, last).await)?;
    Ok(reply.map(|reply| SessionMessage { ticket, ..reply }))
}

/// Ends the turn with calls its caller runs itself; their results start the next turn.
pub(super) async fn hand_to_client(engine: &Engine, running: &Arc<Running>, context: &Context) -> Driven<()> {
    let mut last = last(engine, running, context, JobState::Done);
    last.unanswered = Some("Not run: the caller's own tools go first. Ask again if still needed.");
    last.for_client = context.client_tools.iter().map(|tool| tool.name.clone()).collect();
    last.end.reply = context.last_step().map(|message| message.id.clone());
    lost(commit(engine, running, last).await).map(drop)
}

/// Ends the turn for a newer message. The task stays in the backlog and goes on from its stored results.
pub(super) async fn give_way(
    engine: &Engine,
    running: &Arc<Running>,
    context: &Context,
    skipped: &[ToolCall],
) -> Driven<()> {
    let mut last = last(engine, running, context, JobState::Steered);
    last.unanswered = Some("Skipped: a newer message of the user goes first.");
    last.tokens = context.tokens(&running.claim.turn);
    let data = json!({ "skipped_calls": skipped.len(), "tasks": last.tokens.len() });
    last.events.push(event(&running.claim, EventKind::TurnSteered, data));
    leave_drafts(engine, &mut last, draft::INTERRUPTED);
    lost(commit(engine, running, last).await)?;
    engine.reach(KillPoint::Steered).await;
    Ok(())
}

/// Ends a turn that waits for others to tell it that they are done.
pub(super) async fn rest(engine: &Engine, running: &Arc<Running>, context: &Context) -> Driven<()> {
    let mut last = last(engine, running, context, JobState::Done);
    last.unanswered = Some("Skipped: the turn ended with sessions_yield.");
    say(engine, context, &mut last, String::new(), None);
    lost(commit(engine, running, last).await).map(drop)
}

/// Ends a turn that went round in circles.
pub(super) async fn stop(
    engine: &Engine,
    running: &Arc<Running>,
    context: &Context,
    reason: &StopReason,
) -> Driven<()> {
    let is_member = context.session.team_role == Some(TeamRole::Member);
    if is_member && matches!(reason, StopReason::TooManyRounds(_)) {
        return pause(engine, running, context).await;
    }
    let mut last = last(engine, running, context, JobState::Failed);
    last.unanswered = Some("Skipped: the turn was stopped.");
    fail(engine, context, &mut last, stop_code(reason), reason.user_message());
    lost(commit(engine, running, last).await).map(drop)
}

/// Ends a turn of a member that has worked for as many rounds as one turn may have. It goes on in its next turn: what
/// bounds it is the team's budget of turns.
async fn pause(engine: &Engine, running: &Arc<Running>, context: &Context) -> Driven<()> {
    let mut last = last(engine, running, context, JobState::Done);
    last.unanswered = Some("Not run: this turn has reached its limit of rounds. Go on in the next turn.");
    last.goes_on = true;
    say(engine, context, &mut last, String::new(), None);
    lost(commit(engine, running, last).await).map(drop)
}

/// Ends a turn that could not go on.
pub(super) async fn halt(engine: &Engine, running: &Arc<Running>, halt: Halt) -> Result<()> {
    let (state, code, sentence) = match halt {
        Halt::Lost(Error::Store(polyclaw_store::Error::Unreadable(what))) => {
            return bury(
                engine,
                running,
                format!("What is stored of this conversation can not be read: {what}"),
            )
            .await;
        }
        Halt::Lost(error) => return Err(error),
        // One that is steered where it can not give way does so as soon as it is claimed again.
        Halt::HandedBack | Halt::Steered => {
            let claim = running.claim.clone();
            return Ok(engine.db().write(move |tx| jobs::release_claim(tx, &claim)).await?);
        }
        Halt::Cancelled => (JobState::Cancelled, "stopped", "Stopped.".to_owned()),
        Halt::Failed { code, sentence } => (JobState::Failed, code, sentence),
    };
    if state == JobState::Cancelled && running.has_waited() {
        engine.let_runs_end(&running.claim.turn).await?;
    }
    running.drafts.settled().await;
    let (context, final_call) = match as_stored(engine, running).await {
        Ok(found) => found,
        Err(Halt::Lost(Error::Store(polyclaw_store::Error::Unreadable(_)))) => {
            return bury(engine, running, sentence).await;
        }
        Err(Halt::Lost(error)) => return Err(error),
        Err(_) => return Err(Error::UnknownSession(running.claim.session.to_string())),
    };
    let mut last = last(engine, running, &context, state);
    last.final_call = final_call;
    last.unanswered = Some("Not run: the turn ended before.");
    fail(engine, &context, &mut last, code, sentence);
    commit(engine, running, last).await.map(drop)
}

/// Ends a turn of which nothing can be read: no line, but an end that whoever waits is told, so that what comes
/// after it has its turn.
async fn bury(engine: &Engine, running: &Arc<Running>, sentence: String) -> Result<()> {
    let mut last = ending(engine, running, JobState::Failed);
    last.in_team = Some(Fresh::new(engine, Some(running.claim.trace.clone())));
    last.events.push(event(&last.claim, EventKind::TurnFailed, json!({ "code": UNREADABLE })));
    (last.end.error_code, last.end.error) = (Some(UNREADABLE), Some(sentence));
    commit(engine, running, last).await.map(drop)
}

/// What is known of a turn that stops where it stands: its stored steps, and the call it was stopped in.
async fn as_stored(engine: &Engine, running: &Arc<Running>) -> Driven<(Context, Option<Spent>)> {
    let mut context = Context::load(engine, &running.claim).await?;
    context.recall_spent(engine, &running.claim).await?;
    let cut_off = running.spent();
    cut_off.iter().for_each(|spent| context.spend(spent));
    Ok((context, cut_off))
}

fn last(engine: &Engine, running: &Running, context: &Context, state: JobState) -> Last {
    let mut last = ending(engine, running, state);
    last.session_id.clone_from(&context.session_id);
    if let Some(listeners) = &context.listeners {
        last.queue = listeners.session().clone();
    }
    last.cause = Cause::of(engine, context, &running.claim);
    last.end.model.clone_from(&context.model_used);
    last.end.usage = context.usage;
    last.waited = running.has_waited() || running.claim.attempt > 1 || context.last_step().is_some();
    last.in_team = context.session.team_role.map(|_| Fresh::new(engine, Some(running.claim.trace.clone())));
    last.closing = context.session.owner.is_some().then(|| Closing {
        turn: running.claim.turn.clone(),
        state,
        text: String::new(),
        said: running.said(),
        error_code: None,
        commit: context.run.as_ref().and_then(|_| family::head(&context.scope.workspace)),
        fresh: Fresh::new(engine, Some(running.claim.trace.clone())),
    });
    last
}

fn ending(engine: &Engine, running: &Running, state: JobState) -> Last {
    Last {
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
        parcels: Vec::new(),
        events: Vec::new(),
        tokens: Vec::new(),
        final_call: None,
        next_turn: TurnId::new(engine.next_id()),
        drafts: Arc::clone(&running.drafts),
        queue: running.claim.session.clone(),
        shown_in: Vec::new(),
        told: None,
        cause: None,
        said: running.said(),
        closing: None,
        in_team: None,
        goes_on: false,
        waited: false,
        settings: engine.settings(),
        now: engine.now(),
    }
}

fn fail(engine: &Engine, context: &Context, last: &mut Last, code: &'static str, mut sentence: String) {
    engine.redactor().redact_in_place(&mut sentence);
    let kind =
        if last.end.state == JobState::Cancelled { EventKind::TurnCancelled } else { EventKind::TurnFailed };
    last.events.push(event(&last.claim, kind, json!({ "code": code })));
    last.end.error_code = Some(code);
    last.end.error = Some(sentence.clone());
    if last.claim.kind == TurnJobKind::Turn {
        say(engine, context, last, sentence, Some(code));
    }
}
