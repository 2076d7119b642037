//! Approvals: a turn asks a person and waits. The question is a row: it survives a restart and runs once.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use polyclaw_domain::approval::{ApprovalState, Decision, EXPIRY_MS};
use polyclaw_domain::event::{Event, EventKind};
use polyclaw_domain::id::{ApprovalId, TurnId};
use polyclaw_domain::tool::{ToolCall, ToolOutcome};
use polyclaw_store::approvals::{self, Approval};
use polyclaw_store::jobs;
use serde_json::json;
use tokio::time::Instant;

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::hub::FrameKind;
use crate::turn::{Driven, Halt, lost};
use crate::worker::Running;

/// Asks about one call. `None`: go ahead. Otherwise the result the model gets instead.
pub(crate) async fn ask(
    engine: &Engine,
    running: &Arc<Running>,
    call: &ToolCall,
) -> Driven<Option<ToolOutcome>> {
    let claim = &running.claim;
    let question = Approval {
        id: ApprovalId::new(engine.next_id()),
        session: claim.session.clone(),
        turn: claim.turn.clone(),
        call_id: call.id.clone(),
        tool: call.name.clone(),
        arguments: call.arguments.clone(),
        state: ApprovalState::Pending,
        reason: None,
        expires_at: engine.now().plus(EXPIRY_MS),
        created_at: engine.now(),
    };
    let asked = lost(engine.persist(move |tx| approvals::ask(tx, &question)).await)?;
    // From here on measured, not read from the clock: setting it neither shortens nor stretches the time to answer.
    let left = asked.expires_at.since(engine.now()).clamp(0, EXPIRY_MS).unsigned_abs();
    let deadline = Instant::now() + Duration::from_millis(left);
    let mut watch = engine.hub.watch(&claim.session);
    if asked.state == ApprovalState::Pending {
        engine.hub.publish(
            &claim.session,
            FrameKind::ApprovalAsked {
                approval_id: asked.id.clone(),
                turn_id: claim.turn.clone(),
                tool: asked.tool.clone(),
                arguments: asked.arguments.clone(),
            },
        );
    }
    loop {
        running.pulse();
        if let Some(answer) = look(engine, running, &asked, deadline).await? {
            return Ok(answer);
        }
        // Woken by the decision or by another message; the second bounds a wake-up that never comes.
        tokio::select! {
            frame = watch.recv() => {
                if frame.is_none() {
                    watch = engine.hub.watch(&claim.session);
                }
            }
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}

type Verdict = Option<Option<ToolOutcome>>;

async fn look(engine: &Engine, running: &Running, asked: &Approval, deadline: Instant) -> Driven<Verdict> {
    let (id, session) = (asked.id.clone(), running.claim.session.clone());
    let read = move |tx: &mut polyclaw_store::Tx<'_>| {
        Ok((approvals::get(tx, &id)?, jobs::is_steered(tx, &session)?))
    };
    let (found, steered) = engine.db().read(read).await.map_err(|e| Halt::Lost(e.into()))?;
    let state = found.as_ref().map_or(ApprovalState::Denied, |approval| approval.state);
    let reason = found.and_then(|approval| approval.reason).unwrap_or_default();
    Ok(match state {
        ApprovalState::Approved => Some(None),
        ApprovalState::Denied => {
            Some(Some(ToolOutcome::error(format!("The user did not allow this. {reason}"))))
        }
        ApprovalState::Expired => Some(Some(ToolOutcome::error("Nobody answered in time; it was not run."))),
        ApprovalState::Pending if steered => {
            expire(engine, asked).await?;
            Some(Some(ToolOutcome::error(
                "The user wrote something else instead of answering; it was not run.",
            )))
        }
        ApprovalState::Pending if deadline <= Instant::now() => {
            expire(engine, asked).await?;
            None
        }
        ApprovalState::Pending => None,
    })
}

async fn expire(engine: &Engine, asked: &Approval) -> Driven<()> {
    let (id, now) = (asked.id.clone(), engine.now());
    let write =
        move |tx: &mut polyclaw_store::Tx<'_>| approvals::decide(tx, &id, ApprovalState::Expired, None, now);
    if lost(engine.persist(write).await)? {
        announce(engine, asked, ApprovalState::Expired);
    }
    Ok(())
}

/// Whoever shows the question takes it away.
fn announce(engine: &Engine, asked: &Approval, state: ApprovalState) {
    let kind = FrameKind::ApprovalDecided { approval_id: asked.id.clone(), state: state.as_str() };
    engine.hub.publish(&asked.session, kind);
}

/// A person's answer. Answered once: a second one, or one that comes too late, is refused.
pub async fn decide(
    engine: &Engine,
    id: &ApprovalId,
    decision: Decision,
    reason: Option<String>,
) -> Result<Approval> {
    let state = match decision {
        Decision::Approve => ApprovalState::Approved,
        Decision::Deny => ApprovalState::Denied,
    };
    let reason = reason.map(|reason| engine.redactor().text(&reason).into_owned());
    let (wanted, now) = (id.clone(), engine.now());
    let driven: HashSet<TurnId> =
        engine.running.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
    let write = move |tx: &mut polyclaw_store::Tx<'_>| {
        // A turn that waits in this process ends the question itself; the clock may have been set since.
        let asked = approvals::get(tx, &wanted)?.filter(|asked| driven.contains(&asked.turn));
        let at = asked.map_or(now, |asked| now.min(asked.expires_at.minus(1)));
        let decided = approvals::decide(tx, &wanted, state, reason.as_deref(), at)?;
        Ok((decided, approvals::get(tx, &wanted)?))
    };
    let (decided, found) = engine.db().write(write).await?;
    let approval = found.ok_or_else(|| Error::UnknownApproval(id.to_string()))?;
    if !decided {
        // One that still says it is pending came too late.
        let known =
            if approval.state == ApprovalState::Pending { ApprovalState::Expired } else { approval.state };
        return Err(Error::NotNow(format!("this question is already {}", known.as_str())));
    }
    engine.record(decided_event(&approval)).await;
    announce(engine, &approval, state);
    Ok(approval)
}

fn decided_event(approval: &Approval) -> Event {
    Event {
        kind: EventKind::ApprovalDecided,
        session: Some(approval.session.clone()),
        turn: Some(approval.turn.clone()),
        agent: None,
        trace: None,
        data: json!({ "tool": approval.tool, "state": approval.state.as_str() }),
    }
}
