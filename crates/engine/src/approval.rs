//! Approvals: a turn asks a person and waits. The request is a row, so it survives a restart and the call runs once.

mod answer;
mod notices;
mod pending;

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::approval::{self as rules, APPROVAL_EXPIRY_MS, ApprovalState};
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::{ChatAddress, INTERNAL_CHANNEL};
use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::{ApprovalId, TurnId};
use polyclaw_domain::policy::RequiredApprover;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolCall, ToolOutcome};
use polyclaw_store::approvals::{self, StoredApproval};
use polyclaw_store::{Tx, events, jobs, outbox, teams};
use serde_json::json;
use tokio::time::Instant;

use crate::core::Engine;
use crate::hub::FrameKind;
use crate::prompt::TurnContext;
use crate::turn::{TurnAbort, TurnResult, or_lost, turn_event};
use crate::worker::RunningTurn;

pub use answer::{ApprovalAnswer, decide_approval};

/// The call to approve, the tool's description of it, and who must approve.
pub(crate) type ApprovalRequest<'a> = (&'a ToolCall, Option<&'a str>, RequiredApprover);

/// Requests approval of one call. `None`: run it. Otherwise the result to give to the model instead.
pub(crate) async fn request_approval(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
    asked: ApprovalRequest<'_>,
) -> TurnResult<Option<ToolOutcome>> {
    let wanted = build_approval(engine, running, context, asked);
    let asked = store_approval(engine, running, context, &wanted).await?;
    if asked.fingerprint != wanted.fingerprint || asked.question != wanted.question {
        let changed = "Not run: the action differs from the one in the approval request.";
        expire_approval(engine, &asked).await?;
        return Ok(Some(ToolOutcome::error(changed)));
    }
    publish_approval_request(engine, &asked, &asked.session);
    // People who wait for a delegation, or whose agent leads the asking member, see the request in their own
    // conversation.
    let lead = lead_session_of(engine, &asked).await;
    let elsewhere = context.waiters.as_ref().map(|waiters| &waiters.session).or(lead.as_ref());
    elsewhere.into_iter().for_each(|session| publish_approval_request(engine, &asked, session));
    let waiting = running.begin_wait(&engine.lanes);
    let answer = wait_for_decision(engine, running, &asked).await;
    drop(waiting);
    if let (Some(session), Ok(outcome)) = (elsewhere, &answer) {
        let state = if outcome.is_none() { ApprovalState::Approved } else { ApprovalState::Denied };
        engine.hub.publish(session, decision_frame(&asked, state));
    }
    answer
}

fn build_approval(
    engine: &Engine,
    running: &RunningTurn,
    context: &TurnContext,
    (call, words, approver): ApprovalRequest<'_>,
) -> StoredApproval {
    let claim = &running.claim;
    StoredApproval {
        id: ApprovalId::new(engine.next_id()),
        session: claim.session.clone(),
        turn: claim.turn.clone(),
        call_id: call.id.clone(),
        tool: call.name.clone(),
        fingerprint: rules::call_fingerprint(&call.name, &call.arguments),
        origin: approval_address(context, approver),
        question: engine
            .redactor()
            .redact_text(&rules::describe_call(&call.name, &call.arguments, words))
            .into_owned(),
        requested_by: context.approval_name().to_owned(),
        arguments: call.arguments.clone(),
        state: ApprovalState::Pending,
        reason: None,
        decided_by: None,
        expires_at: engine.now().plus(APPROVAL_EXPIRY_MS),
        created_at: engine.now(),
    }
}

/// The conversation in which the request may be answered. `None` for owner approvals of a turn without an owner's
/// authority: only the owner may answer those, wherever they came from.
fn approval_address(context: &TurnContext, approver: RequiredApprover) -> Option<ChatAddress> {
    match approver {
        RequiredApprover::Requester => requester_address(context),
        RequiredApprover::Owner if context.authority() == Authority::Owner => context.owner_address(),
        RequiredApprover::Owner => None,
    }
}

/// The channel conversation that caused this turn or waits for its result.
fn requester_address(context: &TurnContext) -> Option<ChatAddress> {
    let mut asked = context
        .waiting_addresses()
        .into_iter()
        .filter(|(_, wanted)| *wanted)
        .map(|(address, _)| address)
        .chain(context.team_people.iter().cloned())
        .chain(context.waiters.iter().flat_map(|waiters| waiters.addresses.clone()));
    asked.find(|address| {
        !address.is_pull_channel() && !address.is_remote() && address.channel != INTERNAL_CHANNEL
    })
}

/// Stores the request and its messages in one transaction, unless it is stored already.
async fn store_approval(
    engine: &Engine,
    running: &RunningTurn,
    context: &TurnContext,
    wanted: &StoredApproval,
) -> TurnResult<StoredApproval> {
    let sent = notices::build_approval_messages(engine, context, wanted).await?;
    let (stored, claim) = (wanted.clone(), running.claim.clone());
    let write = move |tx: &mut Tx<'_>| {
        let (asked, is_new) = approvals::insert_once(tx, &stored)?;
        if is_new {
            sent.iter().try_for_each(|message| outbox::push(tx, message))?;
            let data = json!({ "approval_id": asked.id.as_str(), "tool": asked.tool });
            events::record(tx, &turn_event(&claim, EventKind::ApprovalRequested, data), stored.created_at)?;
        }
        Ok(asked)
    };
    let asked = or_lost(engine.write_with_retry(write).await)?;
    engine.outbox_wake.notify_one();
    Ok(asked)
}

fn publish_approval_request(engine: &Engine, asked: &StoredApproval, session: &SessionKey) {
    if asked.state != ApprovalState::Pending {
        return;
    }
    engine.hub.publish(
        session,
        FrameKind::ApprovalAsked {
            approval_id: asked.id.clone(),
            turn_id: asked.turn.clone(),
            tool: asked.tool.clone(),
            arguments: asked.arguments.clone(),
            question: asked.question.clone(),
            requested_by: asked.requested_by.clone(),
        },
    );
}

/// The lead's session if the asking session is a team member; its people see the request there.
async fn lead_session_of(engine: &Engine, asked: &StoredApproval) -> Option<SessionKey> {
    let session = asked.session.clone();
    let read = move |tx: &mut Tx<'_>| {
        let Some(member) = teams::find_member_by_session(tx, &session)? else { return Ok(None) };
        Ok(teams::get(tx, &member.team)?.map(|team| team.lead))
    };
    engine.db().read(read).await.ok().flatten()
}

async fn wait_for_decision(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    asked: &StoredApproval,
) -> TurnResult<Option<ToolOutcome>> {
    // From here on elapsed time counts, so changing the system clock does not change the time to answer.
    let left = asked.expires_at.since(engine.now()).clamp(0, APPROVAL_EXPIRY_MS).unsigned_abs();
    let deadline = Instant::now() + Duration::from_millis(left);
    let mut watch = engine.hub.subscribe(&asked.session);
    loop {
        if let Some(answer) = poll_decision(engine, running, asked, deadline).await? {
            return Ok(answer);
        }
        if engine.is_draining() {
            return Err(TurnAbort::HandedBack);
        }
        // Woken by the decision or by another message; the one-second timer covers a missed wake-up.
        tokio::select! {
            frame = watch.recv() => {
                if frame.is_none() {
                    watch = engine.hub.subscribe(&asked.session);
                }
            }
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}

type ApprovalPoll = Option<Option<ToolOutcome>>;

async fn poll_decision(
    engine: &Engine,
    running: &RunningTurn,
    asked: &StoredApproval,
    deadline: Instant,
) -> TurnResult<ApprovalPoll> {
    let (id, session) = (asked.id.clone(), running.claim.session.clone());
    let read = move |tx: &mut Tx<'_>| Ok((approvals::get(tx, &id)?, jobs::is_steered(tx, &session)?));
    let (found, steered) = engine.db().read(read).await.map_err(|e| TurnAbort::Lost(e.into()))?;
    let state = found.as_ref().map_or(ApprovalState::Denied, |approval| approval.state);
    let reason = found.and_then(|approval| approval.reason).unwrap_or_default();
    Ok(match state {
        ApprovalState::Approved => Some(None),
        ApprovalState::Denied => {
            Some(Some(ToolOutcome::error(format!("The user did not allow this. {reason}"))))
        }
        ApprovalState::Expired => {
            Some(Some(ToolOutcome::error("Not run: the approval request expired without an answer.")))
        }
        ApprovalState::Pending if steered => {
            expire_approval(engine, asked).await?;
            Some(Some(ToolOutcome::error(
                "Not run: the user wrote something else instead of answering the approval request.",
            )))
        }
        ApprovalState::Pending if deadline <= Instant::now() => {
            expire_approval(engine, asked).await?;
            None
        }
        ApprovalState::Pending => None,
    })
}

async fn expire_approval(engine: &Engine, asked: &StoredApproval) -> TurnResult<()> {
    let (id, now) = (asked.id.clone(), engine.now());
    let write = move |tx: &mut Tx<'_>| {
        approvals::record_decision(tx, &id, ApprovalState::Expired, (None, None), now.into())
    };
    if or_lost(engine.write_with_retry(write).await)? {
        publish_decision(engine, asked, ApprovalState::Expired).await;
    }
    Ok(())
}

/// Publishes the decision, so that clients remove the request.
async fn publish_decision(engine: &Engine, asked: &StoredApproval, state: ApprovalState) {
    if let Some(lead) = lead_session_of(engine, asked).await {
        engine.hub.publish(&lead, decision_frame(asked, state));
    }
    engine.hub.publish(&asked.session, decision_frame(asked, state));
}

fn decision_frame(asked: &StoredApproval, state: ApprovalState) -> FrameKind {
    FrameKind::ApprovalDecided { approval_id: asked.id.clone(), state: state.as_str().to_owned() }
}

/// Whether a turn has an approval request that is open or was just decided.
pub(crate) async fn has_open_approval(engine: &Engine, turn: &TurnId) -> TurnResult<bool> {
    let (turn, now) = (turn.clone(), engine.now());
    let read = engine.db().read(move |tx| approvals::is_turn_waiting(tx, &turn, now));
    read.await.map_err(|error| TurnAbort::Lost(error.into()))
}
