//! Asking the model: stream to whoever watches, store what it asked for.

use std::sync::Arc;

use polyclaw_domain::fault::KillPoint;
use polyclaw_domain::id::MessageId;
use polyclaw_domain::message::Part;
use polyclaw_domain::provider::{Delta, ErrorClass, ProviderError, Reply};
use polyclaw_domain::turn::Turn;
use polyclaw_store::jobs::Claim;
use polyclaw_store::{Tx, usage};
use tokio::sync::Notify;

use crate::core::Engine;
use crate::live::Live;
use crate::prompt::Context;
use crate::redact;
use crate::turn::{Driven, Halt, append, check_claim, lost, step_message, unless_stopping};
use crate::worker::Running;

/// One model call. A reply with tool calls is stored as a step before this returns; a final one by the end.
pub(super) async fn ask(
    engine: &Engine,
    running: &Arc<Running>,
    context: &mut Context,
    machine: &Turn,
) -> Driven<Reply> {
    if context.candidates.is_empty() {
        return Err(Halt::Failed { code: "no_model", sentence: engine.settings().no_model_hint.clone() });
    }
    if context.is_too_long(engine) {
        context.compact(engine, running).await?;
    }
    let mut reply = match stream(engine, running, context).await {
        Err(error)
            if error.class == ErrorClass::ContextTooLong && context.compact(engine, running).await? =>
        {
            stream(engine, running, context).await?
        }
        answer => answer?,
    };
    engine.reach(KillPoint::ReplyReceived).await;
    redact::reply(&engine.redactor(), &mut reply);
    machine.name_calls(&mut reply.calls);
    context.spend(&reply);
    if reply.calls.is_empty() {
        return accept_final(reply);
    }
    store_step(engine, &running.claim, context, &reply).await?;
    engine.reach(KillPoint::StepStored).await;
    Ok(reply)
}

fn accept_final(reply: Reply) -> Driven<Reply> {
    if reply.text.trim().is_empty() {
        let sentence = format!("The model {} returned an empty answer.", reply.model);
        return Err(Halt::Failed { code: "empty_reply", sentence });
    }
    Ok(reply)
}

async fn stream(engine: &Engine, running: &Arc<Running>, context: &Context) -> Result<Reply, ProviderError> {
    let mut prompt = context.prompt();
    let redactor = engine.redactor();
    redactor.prompt(&mut prompt);
    engine.reach(KillPoint::PromptBuilt).await;
    let begun = Notify::new();
    let live = Live::new(engine, &running.claim, redactor);
    let sink = |delta: Delta| {
        running.pulse();
        begun.notify_one();
        live.show(delta);
    };
    let mut asked = engine.provider().stream(&context.candidates, &prompt, &sink);
    let reply = tokio::select! {
        biased;
        reply = &mut asked => reply,
        () = begun.notified() => {
            engine.reach(KillPoint::MidStream).await;
            asked.await
        }
    };
    live.end();
    let reply = reply.map_err(|error| redact::provider_error(&engine.redactor(), error));
    if let Err(error) = &reply {
        tracing::warn!(class = error.class.as_str(), model = %error.model, "no model answered: {}", error.message);
    }
    reply
}

async fn store_step(engine: &Engine, claim: &Claim, context: &mut Context, reply: &Reply) -> Driven<()> {
    let now = engine.now();
    let mut step = step_message(context, claim, MessageId::new(engine.next_id()), now);
    step.text.clone_from(&reply.text);
    // What is stored is what may be seen; what runs is what the model asked for.
    let redactor = engine.redactor();
    step.parts = reply.calls.iter().map(|call| Part::ToolCall(redactor.call(call))).collect();
    let (owned, stored, model, spent) = (claim.clone(), step.clone(), reply.model.to_string(), reply.usage);
    let write = move |tx: &mut Tx<'_>| {
        let ticket = append(tx, &stored)?;
        let hold = check_claim(tx, &owned)?;
        let call = usage::Call {
            session: &owned.session,
            turn: &owned.turn,
            agent: &owned.agent,
            model: &model,
            usage: spent,
        };
        usage::record(tx, &call, now)?;
        Ok((ticket, hold))
    };
    let (ticket, hold) = lost(engine.persist(write).await)?;
    step.ticket = ticket;
    context.push(step);
    unless_stopping(hold)
}
