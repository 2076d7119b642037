//! Asking the model: stream to whoever watches, store what it asked for.

use std::sync::Arc;

use polyclaw_domain::id::MessageId;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::message::MessagePart;
use polyclaw_domain::provider::{
    ErrorClass, ModelRef, ModelReply, Prompt, ProviderError, StreamDelta, TokenUsage,
};
use polyclaw_domain::team::tools::listed_tool_name;
use polyclaw_domain::tool::ToolCall;
use polyclaw_domain::turn::Turn;
use polyclaw_store::Tx;
use tokio::sync::Notify;

use crate::budget::{self, Spent};
use crate::core::Engine;
use crate::draft::Drafting;
use crate::live::Live;
use crate::prompt::Context;
use crate::redact;
use crate::span;
use crate::turn::{
    Driven, EMPTY_REPLY, Halt, Patience, append, check_claim, lost, step_message, unless_stopping,
};
use crate::worker::Running;

/// One model call. A reply with tool calls is stored as a step before this returns; a final one by the end.
pub(super) async fn ask(
    engine: &Engine,
    running: &Arc<Running>,
    context: &mut Context,
    machine: &Turn,
) -> Driven<ModelReply> {
    if context.candidates.is_empty() {
        return Err(Halt::no_model(engine));
    }
    let mut reply = call_in_room(engine, running, context).await?;
    engine.reach(KillPoint::ReplyReceived).await;
    redact::reply(&engine.redactor(), &mut reply);
    machine.assign_call_ids(&mut reply.calls);
    reply.calls.iter_mut().for_each(listed_name);
    context.truncated = reply.truncated;
    if reply.calls.is_empty() {
        return Ok(reply);
    }
    store_step(engine, running, context, &reply).await?;
    engine.reach(KillPoint::StepStored).await;
    Ok(reply)
}

/// One call that the model takes: where it refuses one as too long, it is sent less, until it does; where it has too
/// much to do, it is asked again later.
async fn call_in_room(engine: &Engine, running: &Arc<Running>, context: &mut Context) -> Driven<ModelReply> {
    if context.is_too_long(engine) {
        context.make_room(engine, running).await?;
    }
    let mut patience = Patience::default();
    loop {
        match call(engine, running, context).await? {
            Ok(reply) => {
                context.learn_window(engine, &reply.model);
                context.desk.note_answered();
                return Ok(reply);
            }
            Err(error)
                if error.class == ErrorClass::ContextTooLong && context.give_way(engine, running).await? => {}
            Err(error) => match patience.bear(engine, running, context, error.clone()).await {
                Err(Halt::Failed { code: EMPTY_REPLY, .. }) if context.has_result_for_owner() => {
                    return silent_reply(context, &error).ok_or_else(|| error.into());
                }
                borne => borne?,
            },
        }
    }
}

/// A child that has nothing to say about what it did has done it: its owner is given the last result of a tool.
fn silent_reply(context: &Context, error: &ProviderError) -> Option<ModelReply> {
    let model = ModelRef::parse(&error.model).ok().or_else(|| context.candidates.first().cloned())?;
    Some(ModelReply {
        text: String::new(),
        calls: Vec::new(),
        usage: TokenUsage::ZERO,
        model,
        truncated: false,
    })
}

/// A tool is stored and looked up under the name it is listed by, whichever of its names the model used.
fn listed_name(call: &mut ToolCall) {
    if let Some(name) = listed_tool_name(&call.name) {
        name.clone_into(&mut call.name);
    }
}

/// An answer with neither words nor calls is none.
fn not_empty(reply: ModelReply) -> Result<ModelReply, ProviderError> {
    if !reply.is_empty() {
        return Ok(reply);
    }
    Err(ProviderError {
        class: ErrorClass::Empty,
        model: reply.model.to_string(),
        message: "the model returned an empty answer".to_owned(),
        retry_after_ms: None,
    })
}

/// Stores what a call cost that leaves no step behind.
async fn store_spent(engine: &Engine, running: &Running) -> Driven<()> {
    let (claim, now, spent) = (running.claim.clone(), engine.now(), running.spent());
    let write = move |tx: &mut Tx<'_>| {
        let hold = check_claim(tx, &claim)?;
        let notices = spent.as_ref().map_or(Ok(Vec::new()), |spent| spent.store(tx, &claim, now))?;
        Ok((hold, notices))
    };
    let (hold, notices) = lost(engine.persist(write).await)?;
    running.spend(None);
    budget::tell(engine, &running.claim, notices);
    unless_stopping(hold)
}

/// One call, paid for: reserved before it is made, and noted until a transaction stores what it came to.
async fn call(
    engine: &Engine,
    running: &Arc<Running>,
    context: &mut Context,
) -> Driven<Result<ModelReply, ProviderError>> {
    context.look_at_images(engine).await?;
    let mut prompt = context.prompt();
    engine.redactor().redact_prompt(&mut prompt);
    let reservation = budget::reserve(engine, running, context, &mut prompt).await?;
    running.spend(context.candidates.first().map(|model| Spent::begun(model, reservation.clone())));
    let began = engine.now();
    let reply = stream(engine, running, context, &prompt).await;
    span::chat(engine, running, (context.candidates.first(), began), &reply);
    match &reply {
        Ok(reply) => {
            running.note_shown(false);
            let spent = Spent::replied(engine, reply, reservation);
            context.spend(&spent);
            running.spend(Some(spent));
            if reply.is_empty() {
                store_spent(engine, running).await?;
            }
        }
        Err(_) => {
            running.spend(None);
            budget::release(engine, &running.claim, reservation.as_deref()).await?;
        }
    }
    Ok(reply.and_then(not_empty))
}

async fn stream(
    engine: &Engine,
    running: &Arc<Running>,
    context: &Context,
    prompt: &Prompt,
) -> Result<ModelReply, ProviderError> {
    engine.reach(KillPoint::PromptBuilt).await;
    let begun = Notify::new();
    let drafting = Drafting::start(engine, running, context);
    let live = Live::new(engine, running, context, drafting.as_ref());
    let sink = |delta: StreamDelta| {
        running.pulse();
        begun.notify_one();
        live.show(delta);
    };
    let mut asked = engine.provider().stream_reply(&context.candidates, prompt, &sink);
    let reply = tokio::select! {
        biased;
        reply = &mut asked => reply,
        () = begun.notified() => {
            engine.reach(KillPoint::MidStream).await;
            (&mut asked).await
        }
    };
    drop(asked);
    live.end();
    drop(live);
    if let Some(drafting) = drafting {
        drafting.end().await;
    }
    let reply = reply.map_err(|error| redact::provider_error(&engine.redactor(), error));
    if let Err(error) = &reply {
        tracing::warn!(class = error.class.as_str(), model = %error.model, "no model answered: {}", error.message);
    }
    reply
}

async fn store_step(
    engine: &Engine,
    running: &Running,
    context: &mut Context,
    reply: &ModelReply,
) -> Driven<()> {
    let (claim, now) = (&running.claim, engine.now());
    let mut step = step_message(context, claim, MessageId::new(engine.next_id()), now);
    step.text.clone_from(&reply.text);
    // What is stored is what may be seen; what runs is what the model asked for.
    let redactor = engine.redactor();
    step.parts = reply.calls.iter().map(|call| MessagePart::ToolCall(redactor.redact_call(call))).collect();
    running.say_as(step.id.clone());
    let (owned, stored, spent) = (claim.clone(), step.clone(), running.spent());
    let write = move |tx: &mut Tx<'_>| {
        let ticket = append(tx, &stored)?;
        let hold = check_claim(tx, &owned)?;
        let notices = spent.as_ref().map_or(Ok(Vec::new()), |spent| spent.store(tx, &owned, now))?;
        Ok((ticket, hold, notices))
    };
    let (ticket, hold, notices) = lost(engine.persist(write).await)?;
    running.spend(None);
    budget::tell(engine, claim, notices);
    step.ticket = ticket;
    context.push(step);
    unless_stopping(hold)
}
