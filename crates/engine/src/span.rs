//! Spans of messages, turns, model calls and tool calls, by the conventions of OpenTelemetry for generative AI. Each is
//! below what caused it, across sessions: a child's turn is below the call that began it.

use polyclaw_domain::id::RunId;
use polyclaw_domain::provider::{ModelRef, ProviderError, Reply, Usage};
use polyclaw_domain::run;
use polyclaw_domain::span::{Fact, Span, SpanKind, SpanMark, TraceMark};
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::ToolCall;
use polyclaw_store::jobs::{Claim, End};

use crate::core::Engine;
use crate::prompt::Context;
use crate::worker::Running;

/// What a turn is to whoever watches from outside.
#[derive(Clone)]
pub(crate) struct Cause {
    parent: SpanMark,
    links: Vec<(TraceMark, SpanMark)>,
    /// The message that began the trace, where this turn is the first thing it caused.
    message: Option<(String, Millis)>,
    agent: (String, String),
    conversation: String,
    depth: u32,
}

impl Cause {
    /// `None` where nobody watches.
    pub fn of(engine: &Engine, context: &Context, claim: &Claim) -> Option<Self> {
        if !engine.settings().telemetry.is_on() {
            return None;
        }
        let told = context.told_by();
        let links: Vec<_> =
            told.iter().map(|(trace, run)| (TraceMark::of(trace), SpanMark::run(run))).collect();
        let first = context.stored.iter().find(|message| message.address.is_some());
        let message = || first.map(|message| (message.channel.clone(), message.created_at));
        let (parent, message) = match (&context.run, told.first(), context.resumes().first()) {
            (Some(run), _, _) => (SpanMark::run(run), None),
            (None, Some((_, run)), _) if !claim.has_person => (SpanMark::run(run), None),
            (None, _, Some(turn)) if !claim.has_person => (SpanMark::turn(turn), None),
            _ => (SpanMark::message(&claim.trace), message()),
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

/// A turn has ended, and with it what its message first caused.
pub(crate) fn turn(engine: &Engine, running: &Running, cause: &Cause, end: &End) {
    let (telemetry, now) = (&engine.settings().telemetry, engine.now());
    let began = running.began(now);
    telemetry.record(|| invoked(running, cause, end, (began, now)));
    let Some((channel, sent)) = &cause.message else { return };
    telemetry.record(|| Span {
        mark: SpanMark::message(&running.claim.trace),
        parent: None,
        name: "receive".to_owned(),
        kind: SpanKind::Consumer,
        facts: vec![("polyclaw.channel", Fact::Text(channel.clone()))],
        ..span(&running.claim, ((*sent).min(began), now))
    });
}

fn invoked(running: &Running, cause: &Cause, end: &End, times: (Millis, Millis)) -> Span {
    let (id, name) = &cause.agent;
    let mut facts = vec![
        ("gen_ai.operation.name", Fact::from("invoke_agent")),
        ("gen_ai.agent.id", Fact::Text(id.clone())),
        ("gen_ai.agent.name", Fact::Text(name.clone())),
        ("gen_ai.conversation.id", Fact::Text(cause.conversation.clone())),
        ("polyclaw.turn.id", Fact::from(running.claim.turn.as_str())),
        ("polyclaw.turn.state", Fact::from(end.state.as_str())),
        ("polyclaw.turn.attempt", Fact::Count(running.claim.attempt.into())),
        ("polyclaw.depth", Fact::Count(cause.depth.into())),
    ];
    facts.extend(tokens(end.usage));
    Span {
        mark: SpanMark::turn(&running.claim.turn),
        parent: Some(cause.parent),
        links: cause.links.clone(),
        name: format!("invoke_agent {name}"),
        facts,
        error: end.error_code.map(str::to_owned),
        ..span(&running.claim, times)
    }
}

/// A model was asked.
pub(crate) fn chat(
    engine: &Engine,
    running: &Running,
    (model, began): (Option<&ModelRef>, Millis),
    reply: &Result<Reply, ProviderError>,
) {
    engine.settings().telemetry.record(|| {
        let asked = model.map(|model| model.model.clone()).unwrap_or_default();
        let mut facts = vec![
            ("gen_ai.operation.name", Fact::from("chat")),
            ("gen_ai.request.model", Fact::Text(asked.clone())),
        ];
        facts.extend(model.map(|model| ("gen_ai.provider.name", Fact::Text(model.provider.clone()))));
        if let Ok(reply) = reply {
            facts.push(("gen_ai.response.model", Fact::Text(reply.model.model.clone())));
            facts.push(("gen_ai.response.finish_reasons", Fact::Texts(vec![finish(reply).to_owned()])));
            facts.extend(tokens(reply.usage));
        }
        Span {
            mark: SpanMark::chat(&engine.next_id()),
            name: format!("chat {asked}"),
            kind: SpanKind::Client,
            facts,
            error: reply.as_ref().err().map(|error| error.class.as_str().to_owned()),
            ..span(&running.claim, (began, engine.now()))
        }
    });
}

/// A tool was called.
pub(crate) fn tool(engine: &Engine, running: &Running, call: &ToolCall, (began, is_error): (Millis, bool)) {
    engine.settings().telemetry.record(|| Span {
        mark: SpanMark::tool(&running.claim.turn, &call.id),
        name: format!("execute_tool {}", call.name),
        facts: vec![
            ("gen_ai.operation.name", Fact::from("execute_tool")),
            ("gen_ai.tool.name", Fact::from(call.name.as_str())),
            ("gen_ai.tool.call.id", Fact::from(call.id.as_str())),
            ("gen_ai.tool.type", Fact::from("function")),
        ],
        error: is_error.then(|| "tool_error".to_owned()),
        ..span(&running.claim, (began, engine.now()))
    });
}

/// Something inside a turn.
fn span(claim: &Claim, (began, ended): (Millis, Millis)) -> Span {
    Span {
        trace: TraceMark::of(&claim.trace),
        mark: SpanMark::turn(&claim.turn),
        parent: Some(SpanMark::turn(&claim.turn)),
        links: Vec::new(),
        name: String::new(),
        kind: SpanKind::Internal,
        began,
        ended,
        facts: Vec::new(),
        error: None,
    }
}

fn finish(reply: &Reply) -> &'static str {
    match (reply.truncated, reply.calls.is_empty()) {
        (true, _) => "length",
        (false, false) => "tool_calls",
        (false, true) => "stop",
    }
}

/// What is not known is left out.
fn tokens(usage: Usage) -> impl Iterator<Item = (&'static str, Fact)> {
    let known = [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
    ];
    let count = |tokens: u64| Fact::Count(i64::try_from(tokens).unwrap_or(i64::MAX));
    known.into_iter().filter_map(move |(name, tokens)| Some((name, count(tokens?))))
}

impl Context {
    /// The runs whose ends this turn takes up, each with its trace.
    fn told_by(&self) -> Vec<(polyclaw_domain::id::TraceId, RunId)> {
        self.stored.iter().filter_map(|message| run::source(message.meta.as_ref()?)).collect()
    }
}
