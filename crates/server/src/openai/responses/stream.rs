//! A response as it is written: numbered events, from `response.created` to its end.

use axum::response::Response;
use polyclaw_domain::tool::ToolCall;
use polyclaw_engine::TurnAnswer;
use serde_json::{Value, json};

use super::object::{Shape, part, status};
use crate::error::{Error, Result};
use crate::follow::{Out, Tell, told};
use crate::openai::ask::{Asked, Calls, succeeded};
use crate::sse;

struct Writer {
    shape: Shape,
    calls: Calls,
    sequence: u64,
    /// The text of the message item, once it is open.
    text: Option<String>,
    out: Out,
}

pub fn open(shape: Shape, asked: Asked) -> Response {
    let mut writer = Writer { shape, calls: asked.calls, sequence: 0, text: None, out: Out::new() };
    let begun = writer.shape.begun();
    writer.push("response.created", json!({ "response": begun }));
    writer.push("response.in_progress", json!({ "response": begun }));
    told(asked.follow, writer)
}

impl Tell for Writer {
    fn text(&mut self, text: &str) {
        if self.text.is_none() {
            self.open_message();
        }
        let data = json!({ "item_id": self.shape.message_id(), "output_index": 0, "content_index": 0, "delta": text, "logprobs": [] });
        self.push("response.output_text.delta", data);
        self.text.get_or_insert_default().push_str(text);
    }

    async fn end(&mut self, answer: Result<TurnAnswer>) {
        match answer.and_then(succeeded) {
            Ok(answer) => self.complete(&answer),
            Err(error) => self.fail(&error),
        }
    }

    fn out(&mut self) -> &mut Out {
        &mut self.out
    }
}

impl Writer {
    fn push(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        self.out.push_back(sse::event(&format!("event: {kind}\n"), &data));
    }

    fn open_message(&mut self) {
        let item = self.shape.message("in_progress", None);
        self.push("response.output_item.added", json!({ "output_index": 0, "item": item }));
        let at = json!({ "item_id": self.shape.message_id(), "output_index": 0, "content_index": 0, "part": part("") });
        self.push("response.content_part.added", at);
        self.text = Some(String::new());
    }

    fn close_message(&mut self, text: &str, status: &str) {
        let id = self.shape.message_id();
        let place = |mut data: Value| {
            data["item_id"] = json!(id);
            data["output_index"] = json!(0);
            data["content_index"] = json!(0);
            data
        };
        let (said, whole) =
            (place(json!({ "text": text, "logprobs": [] })), place(json!({ "part": part(text) })));
        self.push("response.output_text.done", said);
        self.push("response.content_part.done", whole);
        let item = self.shape.message(status, Some(text.to_owned()));
        self.push("response.output_item.done", json!({ "output_index": 0, "item": item }));
    }

    fn call(&mut self, n: usize, at: usize, call: &ToolCall) {
        let item = self.shape.call(n, call, "in_progress");
        self.push("response.output_item.added", json!({ "output_index": at, "item": item }));
        let (id, arguments) = (self.shape.call_item_id(n), call.arguments.to_string());
        let delta = json!({ "item_id": id, "output_index": at, "delta": arguments });
        self.push("response.function_call_arguments.delta", delta);
        let done = json!({ "item_id": id, "output_index": at, "name": call.name, "arguments": arguments });
        self.push("response.function_call_arguments.done", done);
        let item = self.shape.call(n, call, "completed");
        self.push("response.output_item.done", json!({ "output_index": at, "item": item }));
    }

    fn complete(&mut self, answer: &TurnAnswer) {
        let calls = self.calls.of(answer);
        if self.text.is_none() && calls.is_empty() {
            self.open_message();
        }
        let text = self.text.take();
        if let Some(text) = &text {
            self.close_message(text, status(answer));
        }
        let first = usize::from(text.is_some());
        for (n, call) in calls.iter().enumerate() {
            self.call(n, first + n, call);
        }
        let response = self.shape.completed(answer, text.unwrap_or_default(), &calls);
        self.push(&format!("response.{}", status(answer)), json!({ "response": response }));
    }

    fn fail(&mut self, error: &Error) {
        error.log();
        let detail = error.detail();
        let said =
            json!({ "code": "server_error", "message": format!("{} ({})", detail.message, detail.code) });
        let response = self.shape.object("failed", Vec::new(), Value::Null, said);
        self.push("response.failed", json!({ "response": response }));
    }
}
