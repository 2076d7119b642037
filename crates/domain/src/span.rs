//! Spans for OpenTelemetry: when turns, model calls and tool calls began and ended, and what caused them. Never their
//! contents.
//!
//! Ids are derived from stored ids. A turn that resumes after a crash, on any node, therefore has the same span, and a
//! child knows the span of the call that spawned it.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::id::{RunId, TraceId, TurnId};
use crate::time::Millis;

/// The trace id that a collector sees for everything one message causes.
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
    /// Returns the span of the message that started a trace.
    pub fn for_message(trace: &TraceId) -> Self {
        Self::from_key("message", trace.as_str())
    }

    pub fn for_turn(turn: &TurnId) -> Self {
        Self::from_key("turn", turn.as_str())
    }

    /// Returns the span of a tool call. A call that spawns a run has the span of that run.
    pub fn for_tool_call(turn: &TurnId, call_id: &str) -> Self {
        Self::for_run(&RunId::for_call(turn, call_id))
    }

    /// Returns the span of the call that spawned a run.
    pub fn for_run(run: &RunId) -> Self {
        Self::from_key("tool", run.as_str())
    }

    /// Returns the span of a model call. It has no children, so its id need not be derivable.
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
    /// A call to an external service.
    Client,
    /// An external message.
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
    /// Other causes, possibly in other traces.
    pub links: Vec<(OtelTraceId, OtelSpanId)>,
    pub name: String,
    pub kind: SpanKind,
    pub began: Millis,
    pub ended: Millis,
    pub attributes: Vec<(&'static str, SpanAttribute)>,
    /// Stable code of the error.
    pub error: Option<String>,
}

/// Receives spans without blocking. When its buffer is full it drops and counts them.
pub trait SpanSink: Send + Sync {
    fn record_span(&self, span: Span);

    fn dropped_spans(&self) -> u64;
}

/// The span sink, if one is configured.
#[derive(Clone, Default)]
pub struct Telemetry(Option<Arc<dyn SpanSink>>);

impl Telemetry {
    pub fn with_sink(recorder: Arc<dyn SpanSink>) -> Self {
        Self(Some(recorder))
    }

    /// Builds and records a span only if there is a sink.
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
    fn run_span_id_equals_span_of_its_tool_call() {
        let turn = TurnId::new("t1");
        assert_eq!(
            OtelSpanId::for_tool_call(&turn, "call-0"),
            OtelSpanId::for_run(&RunId::for_call(&turn, "call-0"))
        );
        assert_ne!(OtelSpanId::for_tool_call(&turn, "call-0"), OtelSpanId::for_tool_call(&turn, "call-1"));
        assert_ne!(OtelSpanId::for_turn(&turn), OtelSpanId::for_message(&TraceId::new("t1")));
    }

    #[test]
    fn trace_ids_are_deterministic() {
        assert_eq!(OtelTraceId::for_trace(&TraceId::new("x")), OtelTraceId::for_trace(&TraceId::new("x")));
        assert_ne!(OtelTraceId::for_trace(&TraceId::new("x")), OtelTraceId::for_trace(&TraceId::new("y")));
    }
}
