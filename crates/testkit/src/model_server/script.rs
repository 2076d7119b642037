//! Scripts a response to one request, step by step.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

/// Holds a response back until the test opens the gate. Clones share the gate; it stays open.
#[derive(Clone, Debug)]
pub struct ReplyGate(watch::Sender<bool>);

impl Default for ReplyGate {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl ReplyGate {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn wait_open(&self) {
        // The sender lives in `self`, so the wait cannot fail before the gate is open.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

#[derive(Clone, Debug)]
pub(super) struct ScriptedCall {
    pub id: String,
    pub name: String,
    /// The raw text on the wire, so that it can be invalid.
    pub arguments: String,
}

#[derive(Clone, Debug)]
pub(super) enum ReplyStep {
    Text(String),
    Reasoning(String),
    Call(ScriptedCall),
    Wait(Duration),
    Gate(ReplyGate),
    Hang,
    /// Closes the connection in the middle of the response.
    Cut,
    Raw(String),
}

impl ReplyStep {
    /// Returns whether this step only delays the response.
    pub fn is_pause(&self) -> bool {
        matches!(self, Self::Wait(_) | Self::Gate(_) | Self::Hang)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyFinish {
    Done,
    Truncated,
    /// The response ends cleanly, but without a completion marker.
    Missing,
}

#[derive(Clone, Debug)]
pub(super) struct ScriptedRefusal {
    pub status: u16,
    pub body: String,
    pub retry_after: Option<String>,
}

/// One response. Pauses before the first output come before the response head, so nothing is sent until they end.
#[derive(Clone, Debug)]
pub struct ReplyScript {
    pub(super) steps: Vec<ReplyStep>,
    pub(super) usage: Option<(u64, u64)>,
    pub(super) finish: ReplyFinish,
    pub(super) refusal: Option<ScriptedRefusal>,
    pub(super) empty: bool,
}

impl Default for ReplyScript {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            usage: Some((10, 5)),
            finish: ReplyFinish::Done,
            refusal: None,
            empty: false,
        }
    }
}

impl ReplyScript {
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers with one piece of text.
    pub fn reply(text: impl Into<String>) -> Self {
        Self::new().text(text)
    }

    /// Answers with an HTTP error. A JSON string becomes a plain text body.
    pub fn error(status: u16, body: Value) -> Self {
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        Self { refusal: Some(ScriptedRefusal { status, body, retry_after: None }), ..Self::default() }
    }

    /// Answers 200 without a body.
    pub fn empty() -> Self {
        Self { empty: true, ..Self::default() }
    }

    /// Sets the `Retry-After` header of an `error`.
    pub fn retry_after(mut self, value: impl ToString) -> Self {
        if let Some(refusal) = &mut self.refusal {
            refusal.retry_after = Some(value.to_string());
        }
        self
    }

    pub fn text(self, text: impl Into<String>) -> Self {
        self.step(ReplyStep::Text(text.into()))
    }

    /// Sends the text in `count` pieces of about the same length, with a pause between them.
    pub fn chunks(mut self, text: &str, count: usize, pause: Duration) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let size = chars.len().div_ceil(count.max(1)).max(1);
        for (index, piece) in chars.chunks(size).enumerate() {
            if index > 0 && !pause.is_zero() {
                self = self.wait(pause);
            }
            self = self.text(piece.iter().collect::<String>());
        }
        self
    }

    pub fn reasoning(self, text: impl Into<String>) -> Self {
        self.step(ReplyStep::Reasoning(text.into()))
    }

    pub fn call(self, id: &str, name: &str, arguments: Value) -> Self {
        self.raw_call(id, name, &arguments.to_string())
    }

    /// Adds a call with raw arguments, valid or not.
    pub fn raw_call(self, id: &str, name: &str, arguments: &str) -> Self {
        self.step(ReplyStep::Call(ScriptedCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        }))
    }

    pub fn wait(self, pause: Duration) -> Self {
        self.step(ReplyStep::Wait(pause))
    }

    pub fn gate(self, gate: &ReplyGate) -> Self {
        self.step(ReplyStep::Gate(gate.clone()))
    }

    pub fn hang(self) -> Self {
        self.step(ReplyStep::Hang)
    }

    pub fn cut(self) -> Self {
        self.step(ReplyStep::Cut)
    }

    /// Inserts raw bytes into a stream.
    pub fn raw(self, bytes: impl Into<String>) -> Self {
        self.step(ReplyStep::Raw(bytes.into()))
    }

    /// Sends a well-formed event whose data is not JSON.
    pub fn malformed_json(self) -> Self {
        self.raw("event: content_block_delta\ndata: {\"choices\":[{\"delta\":{\"content\":\"hal\n\n")
    }

    /// Sends something that is not an event stream.
    pub fn malformed_sse(self) -> Self {
        self.raw("<html><body>Bad gateway</body></html>\n\n")
    }

    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some((input, output));
        self
    }

    /// Omits the usage object.
    pub fn no_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// Ends because of the length limit.
    pub fn truncated(mut self) -> Self {
        self.finish = ReplyFinish::Truncated;
        self
    }

    /// Ends without a finish reason or end marker.
    pub fn unfinished(mut self) -> Self {
        self.finish = ReplyFinish::Missing;
        self
    }

    fn step(mut self, step: ReplyStep) -> Self {
        self.steps.push(step);
        self
    }

    pub(super) fn has_calls(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, ReplyStep::Call(_)))
    }

    /// Returns the text of all steps, for responses that are not streamed.
    pub(super) fn whole_text(&self) -> String {
        let text =
            |step: &ReplyStep| if let ReplyStep::Text(text) = step { text.clone() } else { String::new() };
        self.steps.iter().map(text).collect()
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &ScriptedCall> {
        self.steps.iter().filter_map(|step| if let ReplyStep::Call(call) = step { Some(call) } else { None })
    }
}
