//! Spans of messages, turns, model calls and tool calls, following the OpenTelemetry conventions for generative AI.
//! Each span is a child of its cause, across sessions: a child's turn is below the call that spawned it.

use polyclaw_domain::id::RunId;
use polyclaw_domain::provider::{ModelRef, ModelReply, ProviderError, TokenUsage};
use polyclaw_domain::run;
use polyclaw_domain::span::{OtelSpanId, OtelTraceId, Span, SpanAttribute, SpanKind};
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::ToolCall;
use polyclaw_store::jobs::{TurnClaim, TurnJobEnd};

use crate::core::Engine;
use crate::prompt::TurnContext;
use crate::worker::RunningTurn;

/// What a turn's span needs to know about its cause and its agent.
#[derive(Clone)]
pub(crate) struct TurnSpanContext {
    parent: OtelSpanId,
    links: Vec<(OtelTraceId, OtelSpanId)>,
    /// The message that started the trace, if this turn is its first effect.
    message: Option<(String, Millis)>,
    agent: (String, String),
    conversation: String,
    depth: u32,
}

impl TurnSpanContext {
    /// Returns `None` if telemetry is disabled.
    pub fn for_turn(engine: &Engine, context: &TurnContext, claim: &TurnClaim) -> Option<Self> {
        if !engine.settings().telemetry.is_enabled() {
            return None;
        }
        let notice = context.announced_runs();
        let links: Vec<_> = notice
            .iter()
            .map(|(trace, run)| (OtelTraceId::for_trace(trace), OtelSpanId::for_run(run)))
            .collect();
        let first = context.stored.iter().find(|message| message.address.is_some());
        let message = || first.map(|message| (message.channel.clone(), message.created_at));
        let (parent, message) = match (&context.run, notice.first(), context.resumed_turns().first()) {
            (Some(run), _, _) => (OtelSpanId::for_run(run), None),
            (None, Some((_, run)), _) if !claim.has_person => (OtelSpanId::for_run(run), None),
            (None, _, Some(turn)) if !claim.has_person => (OtelSpanId::for_turn(turn), None),
            _ => (OtelSpanId::for_message(&claim.trace), message()),
        };
        Some(Self {
            parent,
            links: links.into_iter().filter(|(_, mark)| *mark != parent).collect(),
            message,
            agent: (context.spec.agent_id.to_string(), context.spec.name.clone()),
            conversation: context.session_id.to_string(),
            depth: context.session.spawn_depth,
        })
    }
}

/// Records the span of an ended turn, and the span of the message if the turn is its first effect.
pub(crate) fn record_turn_span(
    engine: &Engine,
    running: &RunningTurn,
    cause: &TurnSpanContext,
    end: &TurnJobEnd,
) {
    let (telemetry, now) = (&engine.settings().telemetry, engine.now());
    let began = running.started_at(now);
    telemetry.record_span(|| agent_span(running, cause, end, (began, now)));
    let Some((channel, sent)) = &cause.message else { return };
    telemetry.record_span(|| Span {
        id: OtelSpanId::for_message(&running.claim.trace),
        parent: None,
        name: "receive".to_owned(),
        kind: SpanKind::Consumer,
        attributes: vec![("polyclaw.channel", SpanAttribute::Text(channel.clone()))],
        ..turn_child_span(&running.claim, ((*sent).min(began), now))
    });
}

fn agent_span(
    running: &RunningTurn,
    cause: &TurnSpanContext,
    end: &TurnJobEnd,
    times: (Millis, Millis),
) -> Span {
    let (id, name) = &cause.agent;
    let mut facts = vec![
        ("gen_ai.operation.name", SpanAttribute::from("invoke_agent")),
        ("gen_ai.agent.id", SpanAttribute::Text(id.clone())),
        ("gen_ai.agent.name", SpanAttribute::Text(name.clone())),
        ("gen_ai.conversation.id", SpanAttribute::Text(cause.conversation.clone())),
        ("polyclaw.turn.id", SpanAttribute::from(running.claim.turn.as_str())),
        ("polyclaw.turn.state", SpanAttribute::from(end.state.as_str())),
        ("polyclaw.turn.attempt", SpanAttribute::Count(running.claim.attempt.into())),
        ("polyclaw.depth", SpanAttribute::Count(cause.depth.into())),
    ];
    facts.extend(token_attributes(end.usage));
    Span {
        id: OtelSpanId::for_turn(&running.claim.turn),
        parent: Some(cause.parent),
        links: cause.links.clone(),
        name: format!("invoke_agent {name}"),
        attributes: facts,
        error: end.error_code.map(str::to_owned),
        ..turn_child_span(&running.claim, times)
    }
}

/// Records the span of a model call.
pub(crate) fn record_chat_span(
    engine: &Engine,
    running: &RunningTurn,
    (model, began): (Option<&ModelRef>, Millis),
    reply: &Result<ModelReply, ProviderError>,
) {
    engine.settings().telemetry.record_span(|| {
        let asked = model.map(|model| model.model.clone()).unwrap_or_default();
        let mut facts = vec![
            ("gen_ai.operation.name", SpanAttribute::from("chat")),
            ("gen_ai.request.model", SpanAttribute::Text(asked.clone())),
        ];
        facts
            .extend(model.map(|model| ("gen_ai.provider.name", SpanAttribute::Text(model.provider.clone()))));
        if let Ok(reply) = reply {
            facts.push(("gen_ai.response.model", SpanAttribute::Text(reply.model.model.clone())));
            facts.push((
                "gen_ai.response.finish_reasons",
                SpanAttribute::Texts(vec![finish_reason(reply).to_owned()]),
            ));
            facts.extend(token_attributes(reply.usage));
        }
        Span {
            id: OtelSpanId::for_model_call(&engine.next_id()),
            name: format!("chat {asked}"),
            kind: SpanKind::Client,
            attributes: facts,
            error: reply.as_ref().err().map(|error| error.class.as_str().to_owned()),
            ..turn_child_span(&running.claim, (began, engine.now()))
        }
    });
}

/// Records the span of a tool call.
pub(crate) fn record_tool_span(
    engine: &Engine,
    running: &RunningTurn,
    call: &ToolCall,
    (began, is_error): (Millis, bool),
) {
    engine.settings().telemetry.record_span(|| Span {
        id: OtelSpanId::for_tool_call(&running.claim.turn, &call.id),
        name: format!("execute_tool {}", call.name),
        attributes: vec![
            ("gen_ai.operation.name", SpanAttribute::from("execute_tool")),
            ("gen_ai.tool.name", SpanAttribute::from(call.name.as_str())),
            ("gen_ai.tool.call.id", SpanAttribute::from(call.id.as_str())),
            ("gen_ai.tool.type", SpanAttribute::from("function")),
        ],
        error: is_error.then(|| "tool_error".to_owned()),
        ..turn_child_span(&running.claim, (began, engine.now()))
    });
}

/// Template for spans inside a turn.
fn turn_child_span(claim: &TurnClaim, (began, ended): (Millis, Millis)) -> Span {
    Span {
        trace: OtelTraceId::for_trace(&claim.trace),
        id: OtelSpanId::for_turn(&claim.turn),
        parent: Some(OtelSpanId::for_turn(&claim.turn)),
        links: Vec::new(),
        name: String::new(),
        kind: SpanKind::Internal,
        began,
        ended,
        attributes: Vec::new(),
        error: None,
    }
}

fn finish_reason(reply: &ModelReply) -> &'static str {
    match (reply.truncated, reply.calls.is_empty()) {
        (true, _) => "length",
        (false, false) => "tool_calls",
        (false, true) => "stop",
    }
}

/// Returns the known token counts as attributes.
fn token_attributes(usage: TokenUsage) -> impl Iterator<Item = (&'static str, SpanAttribute)> {
    let known = [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
    ];
    let count = |tokens: u64| SpanAttribute::Count(i64::try_from(tokens).unwrap_or(i64::MAX));
    known.into_iter().filter_map(move |(name, tokens)| Some((name, count(tokens?))))
}

impl TurnContext {
    /// Returns the runs whose announces this turn receives, each with its trace.
    fn announced_runs(&self) -> Vec<(polyclaw_domain::id::TraceId, RunId)> {
        self.stored.iter().filter_map(|message| run::announced_run(message.meta.as_ref()?)).collect()
    }
}
