//! Streams a response as numbered events, from `response.created` to its end.

use axum::response::Response;
use polyclaw_domain::tool::ToolCall;
use polyclaw_engine::TurnAnswer;
use serde_json::{Value, json};

use super::object::{ResponseShape, response_status, text_part};
use crate::error::{Error, Result};
use crate::openai::question::{AcceptedQuestion, ClientToolCalls, ensure_done};
use crate::sse;
use crate::turn_follower::{PendingBytes, TurnWriter, stream_turn};

struct ResponseStreamWriter {
    shape: ResponseShape,
    calls: ClientToolCalls,
    sequence: u64,
    /// The text of the message item, once it is open.
    text: Option<String>,
    out: PendingBytes,
}

pub fn stream_response(shape: ResponseShape, asked: AcceptedQuestion) -> Response {
    let mut writer =
        ResponseStreamWriter { shape, calls: asked.calls, sequence: 0, text: None, out: PendingBytes::new() };
    let started = writer.shape.in_progress_json();
    writer.push_event("response.created", json!({ "response": started }));
    writer.push_event("response.in_progress", json!({ "response": started }));
    stream_turn(asked.follow, writer)
}

impl TurnWriter for ResponseStreamWriter {
    fn write_text(&mut self, text: &str) {
        if self.text.is_none() {
            self.open_message();
        }
        let data = json!({ "item_id": self.shape.message_id(), "output_index": 0, "content_index": 0, "delta": text, "logprobs": [] });
        self.push_event("response.output_text.delta", data);
        self.text.get_or_insert_default().push_str(text);
    }

    async fn write_end(&mut self, answer: Result<TurnAnswer>) {
        match answer.and_then(ensure_done) {
            Ok(answer) => self.push_completed(&answer),
            Err(error) => self.push_failed(&error),
        }
    }

    fn pending_bytes(&mut self) -> &mut PendingBytes {
        &mut self.out
    }
}

impl ResponseStreamWriter {
    fn push_event(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        self.out.push_back(sse::encode_event(&format!("event: {kind}\n"), &data));
    }

    fn open_message(&mut self) {
        let item = self.shape.message_item("in_progress", None);
        self.push_event("response.output_item.added", json!({ "output_index": 0, "item": item }));
        let at = json!({ "item_id": self.shape.message_id(), "output_index": 0, "content_index": 0, "part": text_part("") });
        self.push_event("response.content_part.added", at);
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
        let (reply, whole) =
            (place(json!({ "text": text, "logprobs": [] })), place(json!({ "part": text_part(text) })));
        self.push_event("response.output_text.done", reply);
        self.push_event("response.content_part.done", whole);
        let item = self.shape.message_item(status, Some(text.to_owned()));
        self.push_event("response.output_item.done", json!({ "output_index": 0, "item": item }));
    }

    fn push_call(&mut self, n: usize, at: usize, call: &ToolCall) {
        let item = self.shape.call_item(n, call, "in_progress");
        self.push_event("response.output_item.added", json!({ "output_index": at, "item": item }));
        let (id, arguments) = (self.shape.call_item_id(n), call.arguments.to_string());
        let delta = json!({ "item_id": id, "output_index": at, "delta": arguments });
        self.push_event("response.function_call_arguments.delta", delta);
        let done = json!({ "item_id": id, "output_index": at, "name": call.name, "arguments": arguments });
        self.push_event("response.function_call_arguments.done", done);
        let item = self.shape.call_item(n, call, "completed");
        self.push_event("response.output_item.done", json!({ "output_index": at, "item": item }));
    }

    fn push_completed(&mut self, answer: &TurnAnswer) {
        let calls = self.calls.client_calls(answer);
        if self.text.is_none() && calls.is_empty() {
            self.open_message();
        }
        let text = self.text.take();
        if let Some(text) = &text {
            self.close_message(text, response_status(answer));
        }
        let first = usize::from(text.is_some());
        for (n, call) in calls.iter().enumerate() {
            self.push_call(n, first + n, call);
        }
        let response = self.shape.completed_json(answer, text.unwrap_or_default(), &calls);
        self.push_event(&format!("response.{}", response_status(answer)), json!({ "response": response }));
    }

    fn push_failed(&mut self, error: &Error) {
        error.log_internal();
        let detail = error.detail();
        let reply =
            json!({ "code": "server_error", "message": format!("{} ({})", detail.message, detail.code) });
        let response = self.shape.response_json("failed", Vec::new(), Value::Null, reply);
        self.push_event("response.failed", json!({ "response": response }));
    }
}
