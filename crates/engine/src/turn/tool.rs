//! Running one tool: consent, intent, run, result. A row says so before anything happens.

use std::sync::Arc;

use polyclaw_domain::event::EventKind;
use polyclaw_domain::fault::KillPoint;
use polyclaw_domain::id::MessageId;
use polyclaw_domain::sandbox::Facts;
use polyclaw_domain::tool::{Consent, Effect, ToolCall, ToolOutcome};
use polyclaw_store::intents::{self, Begun};
use polyclaw_store::jobs::Hold;
use polyclaw_store::{Tx, jobs};
use serde_json::json;

use crate::approval;
use crate::core::Engine;
use crate::hub::FrameKind;
use crate::prompt::Context;
use crate::turn::{
    Driven, Halt, append, check_claim, event, lost, result_message, step_message, unless_stopping,
};
use crate::worker::Running;

pub(super) const OUTCOME_UNKNOWN: &str = "This call was cut off while it ran. Whether it took effect is unknown; it was \
not run again. Check before repeating it.";

/// Runs a call and stores its result. Says whether a newer message of a person waits.
pub(super) async fn run(
    engine: &Engine,
    running: &Arc<Running>,
    context: &mut Context,
    call: &ToolCall,
) -> Driven<(ToolOutcome, bool)> {
    let claim = &running.claim;
    let (effect, refused) = match context.tools.iter().find(|tool| tool.name == call.name) {
        None => (Effect::Pure, Some(ToolOutcome::error(format!("There is no tool '{}' here.", call.name)))),
        Some(tool) if tool.consent == Consent::AskPerson => {
            (tool.effect, approval::ask(engine, running, call).await?)
        }
        Some(tool) => (tool.effect, None),
    };
    let (outcome, begun) = match refused {
        Some(outcome) => (outcome, None),
        None => {
            let begun = begin(engine, running, call, effect).await?;
            (perform(engine, running, context, call, begun).await, Some(begun))
        }
    };
    engine.hub.publish(
        &claim.session,
        FrameKind::ToolEnded {
            turn_id: claim.turn.clone(),
            call_id: call.id.clone(),
            name: call.name.clone(),
            is_error: outcome.is_error,
            text: outcome.content.chars().take(4_000).collect(),
            sandbox: outcome.facts.as_ref().map(shown),
        },
    );
    let steered = store_result(engine, running, context, call, (&outcome, begun)).await?;
    engine.reach(KillPoint::ResultStored).await;
    Ok((outcome, steered))
}

/// Facts as people get them: all of them, and a line.
fn shown(facts: &Facts) -> serde_json::Value {
    json!({ "line": facts.line(), "facts": facts })
}

async fn begin(engine: &Engine, running: &Running, call: &ToolCall, effect: Effect) -> Driven<Begun> {
    let (claim, call, now) = (running.claim.clone(), call.clone(), engine.now());
    let write = move |tx: &mut Tx<'_>| match check_claim(tx, &claim)? {
        Hold::Kept => intents::begin(tx, &claim.turn, &call, effect, now).map(Some),
        _ => Ok(None),
    };
    let begun = lost(engine.persist(write).await)?.ok_or(Halt::Cancelled)?;
    engine.reach(KillPoint::IntentStored).await;
    Ok(begun)
}

async fn perform(
    engine: &Engine,
    running: &Running,
    context: &Context,
    call: &ToolCall,
    begun: Begun,
) -> ToolOutcome {
    let claim = &running.claim;
    if begun == Begun::Unknown {
        engine.record(event(claim, EventKind::TurnTakenOver, json!({ "unknown_outcome": call.name }))).await;
        return ToolOutcome::error(OUTCOME_UNKNOWN);
    }
    engine.hub.publish(
        &claim.session,
        FrameKind::ToolStarted {
            turn_id: claim.turn.clone(),
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        },
    );
    let progress = |text: &str| {
        running.pulse();
        let (turn_id, call_id) = (claim.turn.clone(), call.id.clone());
        engine.hub.publish(&claim.session, FrameKind::ToolOutput { turn_id, call_id, text: text.to_owned() });
    };
    let outcome = engine.tools().run(&context.scope, &claim.turn, call, &progress).await;
    if let Some(crashes @ 1..) = outcome.facts.as_ref().map(|facts| facts.crashes) {
        let data = json!({ "code": "worker_crash", "tool": call.name, "crashes": crashes });
        engine.record(event(claim, EventKind::WorkerCrashed, data)).await;
    }
    engine.reach(KillPoint::ToolRan).await;
    outcome
}

async fn store_result(
    engine: &Engine,
    running: &Running,
    context: &mut Context,
    call: &ToolCall,
    (outcome, begun): (&ToolOutcome, Option<Begun>),
) -> Driven<bool> {
    let now = engine.now();
    let id = MessageId::new(engine.next_id());
    let mut step = result_message(step_message(context, &running.claim, id, now), call, outcome);
    let (claim, call_id, stored) = (running.claim.clone(), call.id.clone(), step.clone());
    let write = move |tx: &mut Tx<'_>| {
        let ticket = append(tx, &stored)?;
        let hold = check_claim(tx, &claim)?;
        if let Some(begun) = begun {
            intents::close(tx, &claim.turn, &call_id, begun, now)?;
        }
        Ok((ticket, jobs::is_steered(tx, &claim.session)?, hold))
    };
    let (ticket, steered, hold) = lost(engine.persist(write).await)?;
    step.ticket = ticket;
    context.push(step);
    unless_stopping(hold)?;
    Ok(steered)
}
