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
pub struct TraceMark(pub u128);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanMark(pub u64);

impl TraceMark {
    pub fn of(trace: &TraceId) -> Self {
        let digest = digest("trace", trace.as_str());
        Self(u128::from_be_bytes(std::array::from_fn(|n| digest[n])))
    }
}

impl SpanMark {
    /// The message that began a trace.
    pub fn message(trace: &TraceId) -> Self {
        Self::of("message", trace.as_str())
    }

    pub fn turn(turn: &TurnId) -> Self {
        Self::of("turn", turn.as_str())
    }

    /// A call of a tool. One that begins a run has its name.
    pub fn tool(turn: &TurnId, call_id: &str) -> Self {
        Self::run(&RunId::of_call(turn, call_id))
    }

    /// The call that began a run.
    pub fn run(run: &RunId) -> Self {
        Self::of("tool", run.as_str())
    }

    /// A model call. Nothing is below it, so its name need not be found again.
    pub fn chat(fresh: &str) -> Self {
        Self::of("chat", fresh)
    }

    fn of(kind: &str, key: &str) -> Self {
        let digest = digest(kind, key);
        Self(u64::from_be_bytes(std::array::from_fn(|n| digest[n])))
    }
}

fn digest(kind: &str, key: &str) -> [u8; 32] {
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
pub enum Fact {
    Text(String),
    Count(i64),
    Texts(Vec<String>),
}

impl From<&str> for Fact {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub trace: TraceMark,
    pub mark: SpanMark,
    pub parent: Option<SpanMark>,
    /// Others that caused it, which may be of other traces.
    pub links: Vec<(TraceMark, SpanMark)>,
    pub name: String,
    pub kind: SpanKind,
    pub began: Millis,
    pub ended: Millis,
    pub facts: Vec<(&'static str, Fact)>,
    /// The stable code of what went wrong.
    pub error: Option<String>,
}

/// Takes spans. Nobody waits for it: what it has no room for it drops, and counts.
pub trait Recorder: Send + Sync {
    fn record(&self, span: Span);

    fn dropped(&self) -> u64;
}

/// Where spans go, if anywhere.
#[derive(Clone, Default)]
pub struct Telemetry(Option<Arc<dyn Recorder>>);

impl Telemetry {
    pub fn to(recorder: Arc<dyn Recorder>) -> Self {
        Self(Some(recorder))
    }

    /// Makes a span only where somebody takes it.
    pub fn record(&self, span: impl FnOnce() -> Span) {
        if let Some(recorder) = &self.0 {
            recorder.record(span());
        }
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub fn dropped(&self) -> u64 {
        self.0.as_ref().map_or(0, |recorder| recorder.dropped())
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "Telemetry(on)" } else { "Telemetry(off)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_below_the_call_that_began_it() {
        let turn = TurnId::new("t1");
        assert_eq!(SpanMark::tool(&turn, "call-0"), SpanMark::run(&RunId::of_call(&turn, "call-0")));
        assert_ne!(SpanMark::tool(&turn, "call-0"), SpanMark::tool(&turn, "call-1"));
        assert_ne!(SpanMark::turn(&turn), SpanMark::message(&TraceId::new("t1")));
    }

    #[test]
    fn marks_are_the_same_in_every_life() {
        assert_eq!(TraceMark::of(&TraceId::new("x")), TraceMark::of(&TraceId::new("x")));
        assert_ne!(TraceMark::of(&TraceId::new("x")), TraceMark::of(&TraceId::new("y")));
    }
}
