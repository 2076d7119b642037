//! Calls the model: streams the reply to subscribers and stores the calls it makes.

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

use crate::budget::{self, UnstoredModelCall};
use crate::core::Engine;
use crate::draft::DraftStream;
use crate::live_reply::LiveReply;
use crate::prompt::TurnContext;
use crate::redact;
use crate::span;
use crate::turn::{
    EMPTY_REPLY_CODE, ModelRetryPolicy, TurnAbort, TurnResult, abort_if_stopping, append_step, check_claim,
    or_lost, step_message,
};
use crate::worker::RunningTurn;

/// Makes one model call. A reply with tool calls is stored as a step before this returns; a final reply by the turn's
/// end.
pub(super) async fn ask_model(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &mut TurnContext,
    machine: &Turn,
) -> TurnResult<ModelReply> {
    if context.candidates.is_empty() {
        return Err(TurnAbort::no_model(engine));
    }
    let mut reply = call_with_retries(engine, running, context).await?;
    engine.hit_kill_point(KillPoint::ReplyReceived).await;
    redact::redact_reply(&engine.redactor(), &mut reply);
    machine.assign_call_ids(&mut reply.calls);
    reply.calls.iter_mut().for_each(normalize_tool_name);
    context.truncated = reply.truncated;
    if reply.calls.is_empty() {
        return Ok(reply);
    }
    store_step(engine, running, context, &reply).await?;
    engine.hit_kill_point(KillPoint::StepStored).await;
    Ok(reply)
}

/// Calls the model until it succeeds or fails for good. If a prompt is rejected as too long, it is shortened; if the
/// model is overloaded, the call is retried later.
async fn call_with_retries(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &mut TurnContext,
) -> TurnResult<ModelReply> {
    if context.is_too_long(engine) {
        context.compact_to_fit(engine, running).await?;
    }
    let mut retry = ModelRetryPolicy::default();
    loop {
        match call_model(engine, running, context).await? {
            Ok(reply) => {
                context.learn_window(engine, &reply.model);
                context.team_prompt.mark_answered();
                return Ok(reply);
            }
            Err(error)
                if error.class == ErrorClass::ContextTooLong
                    && context.compact_for_retry(engine, running).await? => {}
            Err(error) => match retry.wait_or_fail(engine, running, context, error.clone()).await {
                Err(TurnAbort::Failed { code: EMPTY_REPLY_CODE, .. }) if context.has_result_for_owner() => {
                    return silent_reply(context, &error).ok_or_else(|| error.into());
                }
                borne => borne?,
            },
        }
    }
}

/// Returns an empty reply for a child that ran tools but has nothing to say. Its owner gets the last tool result.
fn silent_reply(context: &TurnContext, error: &ProviderError) -> Option<ModelReply> {
    let model = ModelRef::parse(&error.model).ok().or_else(|| context.candidates.first().cloned())?;
    Some(ModelReply {
        text: String::new(),
        calls: Vec::new(),
        usage: TokenUsage::ZERO,
        model,
        truncated: false,
    })
}

/// Replaces an alias of a tool by its listed name, under which calls are stored and looked up.
fn normalize_tool_name(call: &mut ToolCall) {
    if let Some(name) = listed_tool_name(&call.name) {
        name.clone_into(&mut call.name);
    }
}

/// Turns a reply without text and calls into an error.
fn reject_empty_reply(reply: ModelReply) -> Result<ModelReply, ProviderError> {
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

/// Stores the cost of a call that stores no step.
async fn store_usage(engine: &Engine, running: &RunningTurn) -> TurnResult<()> {
    let (claim, now, spent) = (running.claim.clone(), engine.now(), running.model_call());
    let write = move |tx: &mut Tx<'_>| {
        let hold = check_claim(tx, &claim)?;
        let notices = spent.as_ref().map_or(Ok(Vec::new()), |spent| spent.record_usage(tx, &claim, now))?;
        Ok((hold, notices))
    };
    let (hold, notices) = or_lost(engine.write_with_retry(write).await)?;
    running.set_model_call(None);
    budget::publish_budget_notices(engine, &running.claim, notices);
    abort_if_stopping(hold)
}

/// Makes one call with a budget reservation. Its cost stays recorded in the running turn until a transaction stores it.
async fn call_model(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &mut TurnContext,
) -> TurnResult<Result<ModelReply, ProviderError>> {
    context.load_images(engine).await?;
    let mut prompt = context.build_prompt();
    engine.redactor().redact_prompt(&mut prompt);
    let reservation = budget::reserve_budget(engine, running, context, &mut prompt).await?;
    running.set_model_call(
        context.candidates.first().map(|model| UnstoredModelCall::in_flight(model, reservation.clone())),
    );
    let began = engine.now();
    let reply = stream_reply(engine, running, context, &prompt).await;
    span::record_chat_span(engine, running, (context.candidates.first(), began), &reply);
    match &reply {
        Ok(reply) => {
            running.swap_shown(false);
            let spent = UnstoredModelCall::from_reply(engine, reply, reservation);
            context.add_usage(&spent);
            running.set_model_call(Some(spent));
            if reply.is_empty() {
                store_usage(engine, running).await?;
            }
        }
        Err(_) => {
            running.set_model_call(None);
            budget::release_reservation(engine, &running.claim, reservation.as_deref()).await?;
        }
    }
    Ok(reply.and_then(reject_empty_reply))
}

async fn stream_reply(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
    prompt: &Prompt,
) -> Result<ModelReply, ProviderError> {
    engine.hit_kill_point(KillPoint::PromptBuilt).await;
    let started_signal = Notify::new();
    let drafting = DraftStream::start(engine, running, context);
    let live = LiveReply::new(engine, running, context, drafting.as_ref());
    let sink = |delta: StreamDelta| {
        running.note_progress();
        started_signal.notify_one();
        live.show_delta(delta);
    };
    let mut asked = engine.provider().stream_reply(&context.candidates, prompt, &sink);
    let reply = tokio::select! {
        biased;
        reply = &mut asked => reply,
        () = started_signal.notified() => {
            engine.hit_kill_point(KillPoint::MidStream).await;
            (&mut asked).await
        }
    };
    drop(asked);
    live.flush();
    drop(live);
    if let Some(drafting) = drafting {
        drafting.finish().await;
    }
    let reply = reply.map_err(|error| redact::redact_provider_error(&engine.redactor(), error));
    if let Err(error) = &reply {
        tracing::warn!(class = error.class.as_str(), model = %error.model, "no model answered: {}", error.message);
    }
    reply
}

async fn store_step(
    engine: &Engine,
    running: &RunningTurn,
    context: &mut TurnContext,
    reply: &ModelReply,
) -> TurnResult<()> {
    let (claim, now) = (&running.claim, engine.now());
    let mut step = step_message(context, claim, MessageId::new(engine.next_id()), now);
    step.text.clone_from(&reply.text);
    // The redacted calls are stored; the original ones run.
    let redactor = engine.redactor();
    step.parts = reply.calls.iter().map(|call| MessagePart::ToolCall(redactor.redact_call(call))).collect();
    running.set_streamed_step(step.id.clone());
    let (owned, stored, spent) = (claim.clone(), step.clone(), running.model_call());
    let write = move |tx: &mut Tx<'_>| {
        let ticket = append_step(tx, &stored)?;
        let hold = check_claim(tx, &owned)?;
        let notices = spent.as_ref().map_or(Ok(Vec::new()), |spent| spent.record_usage(tx, &owned, now))?;
        Ok((ticket, hold, notices))
    };
    let (ticket, hold, notices) = or_lost(engine.write_with_retry(write).await)?;
    running.set_model_call(None);
    budget::publish_budget_notices(engine, claim, notices);
    step.position = ticket;
    context.push_step(step);
    abort_if_stopping(hold)
}
