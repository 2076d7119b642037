//! Spans: when a turn, a model call and a tool call began and ended, and what caused them, for those who watch from
//! outside. Never what was said.
//!
//! Ids are made of what is stored anyway. So whoever goes on with a turn after a crash, on whichever node, names the same
//! span, and a child knows the span of the call that began it.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::id::{RunId, TraceId, TurnId};
use crate::time::Millis;

/// All that one message causes, as collectors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OtelTraceId(pub u128);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OtelSpanId(pub u64);

impl OtelTraceId {
    pub fn for_trace(trace: &TraceId) -> Self {
        let digest = hash_key("trace", trace.as_str());
        Self(u128::from_be_bytes(std::array::from_fn(|n| digest[n])))
    }
}

impl OtelSpanId {
    /// The message that began a trace.
    pub fn for_message(trace: &TraceId) -> Self {
        Self::from_key("message", trace.as_str())
    }

    pub fn for_turn(turn: &TurnId) -> Self {
        Self::from_key("turn", turn.as_str())
    }

    /// A call of a tool. One that begins a run has its name.
    pub fn for_tool_call(turn: &TurnId, call_id: &str) -> Self {
        Self::for_run(&RunId::for_call(turn, call_id))
    }

    /// The call that began a run.
    pub fn for_run(run: &RunId) -> Self {
        Self::from_key("tool", run.as_str())
    }

    /// A model call. Nothing is below it, so its name need not be found again.
    pub fn for_model_call(fresh: &str) -> Self {
        Self::from_key("chat", fresh)
    }

    fn from_key(kind: &str, key: &str) -> Self {
        let digest = hash_key(kind, key);
        Self(u64::from_be_bytes(std::array::from_fn(|n| digest[n])))
    }
}

fn hash_key(kind: &str, key: &str) -> [u8; 32] {
    Sha256::new().chain_update(kind).chain_update([0]).chain_update(key).finalize().into()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside the process.
    Internal,
    /// A call to a service outside.
    Client,
    /// A message from outside.
    Consumer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanAttribute {
    Text(String),
    Count(i64),
    Texts(Vec<String>),
}

impl From<&str> for SpanAttribute {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub trace: OtelTraceId,
    pub id: OtelSpanId,
    pub parent: Option<OtelSpanId>,
    /// Others that caused it, which may be of other traces.
    pub links: Vec<(OtelTraceId, OtelSpanId)>,
    pub name: String,
    pub kind: SpanKind,
    pub began: Millis,
    pub ended: Millis,
    pub attributes: Vec<(&'static str, SpanAttribute)>,
    /// The stable code of what went wrong.
    pub error: Option<String>,
}

/// Takes spans. Nobody waits for it: what it has no room for it drops, and counts.
pub trait SpanSink: Send + Sync {
    fn record_span(&self, span: Span);

    fn dropped_spans(&self) -> u64;
}

/// Where spans go, if anywhere.
#[derive(Clone, Default)]
pub struct Telemetry(Option<Arc<dyn SpanSink>>);

impl Telemetry {
    pub fn with_sink(recorder: Arc<dyn SpanSink>) -> Self {
        Self(Some(recorder))
    }

    /// Makes a span only where somebody takes it.
    pub fn record_span(&self, span: impl FnOnce() -> Span) {
        if let Some(recorder) = &self.0 {
            recorder.record_span(span());
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    pub fn dropped_spans(&self) -> u64 {
        self.0.as_ref().map_or(0, |recorder| recorder.dropped_spans())
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_enabled() { "Telemetry(on)" } else { "Telemetry(off)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_below_the_call_that_began_it() {
        let turn = TurnId::new("t1");
        assert_eq!(
            OtelSpanId::for_tool_call(&turn, "call-0"),
            OtelSpanId::for_run(&RunId::for_call(&turn, "call-0"))
        );
        assert_ne!(OtelSpanId::for_tool_call(&turn, "call-0"), OtelSpanId::for_tool_call(&turn, "call-1"));
        assert_ne!(OtelSpanId::for_turn(&turn), OtelSpanId::for_message(&TraceId::new("t1")));
    }

    #[test]
    fn marks_are_the_same_in_every_life() {
        assert_eq!(OtelTraceId::for_trace(&TraceId::new("x")), OtelTraceId::for_trace(&TraceId::new("x")));
        assert_ne!(OtelTraceId::for_trace(&TraceId::new("x")), OtelTraceId::for_trace(&TraceId::new("y")));
    }
}
