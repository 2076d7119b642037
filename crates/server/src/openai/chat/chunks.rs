//! Streams a chat completion.

use axum::response::Response;
use polyclaw_engine::TurnAnswer;
use serde::Serialize;
use serde_json::{Value, json};

use super::{CompletionHead, CompletionUsage, completion_usage, finish_reason, tool_call_json};
use crate::error::Result;
use crate::openai;
use crate::openai::question::{AcceptedQuestion, ClientToolCalls, ensure_done};
use crate::sse;
use crate::turn_follower::{PendingBytes, TurnWriter, stream_turn};

#[derive(Serialize)]
struct StreamedCompletion<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: &'a [StreamedChoice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

#[derive(Serialize)]
struct StreamedChoice<'a> {
    index: u32,
    delta: StreamedDelta<'a>,
    logprobs: Option<()>,
    finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct StreamedDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Value>,
}

struct ChunkWriter {
    head: CompletionHead,
    calls: ClientToolCalls,
    wants_usage: bool,
    out: PendingBytes,
}

pub fn stream_completion(head: CompletionHead, asked: AcceptedQuestion, wants_usage: bool) -> Response {
    let mut writer = ChunkWriter { head, calls: asked.calls, wants_usage, out: PendingBytes::new() };
    let first = StreamedDelta { role: Some("assistant"), content: Some(""), tool_calls: None };
    writer.push_delta(first, None);
    stream_turn(asked.follow, writer)
}

impl TurnWriter for ChunkWriter {
    fn write_text(&mut self, text: &str) {
        self.push_delta(StreamedDelta { content: Some(text), ..StreamedDelta::default() }, None);
    }

    async fn write_end(&mut self, answer: Result<TurnAnswer>) {
        match answer.and_then(ensure_done) {
            Ok(answer) => self.push_final(&answer),
            Err(error) => {
                error.log_internal();
                self.out.push_back(sse::encode_data(&json!({ "error": openai::error_json(&error) })));
            }
        }
        self.out.push_back(sse::DONE_EVENT);
    }

    fn pending_bytes(&mut self) -> &mut PendingBytes {
        &mut self.out
    }
}

impl ChunkWriter {
    fn push_final(&mut self, answer: &TurnAnswer) {
        let calls = self.calls.client_calls(answer);
        if !calls.is_empty() {
            let indexed = calls.iter().enumerate().map(|(index, call)| {
                let mut shown = tool_call_json(call);
                shown["index"] = json!(index);
                shown
            });
            self.push_delta(
                StreamedDelta { tool_calls: Some(indexed.collect()), ..StreamedDelta::default() },
                None,
            );
        }
        self.push_delta(StreamedDelta::default(), Some(finish_reason(answer, &calls)));
        if self.wants_usage {
            self.push_usage(completion_usage(answer.usage));
        }
    }

    fn push_delta(&mut self, delta: StreamedDelta<'_>, finish_reason: Option<&'static str>) {
        let choices = [StreamedChoice { index: 0, delta, logprobs: None, finish_reason }];
        let usage = self.wants_usage.then_some(Value::Null);
        let bytes = sse::encode_data(&self.build_chunk(&choices, usage));
        self.out.push_back(bytes);
    }

    fn push_usage(&mut self, spent: Option<CompletionUsage>) {
        let bytes = sse::encode_data(&self.build_chunk(&[], Some(json!(spent))));
        self.out.push_back(bytes);
    }

    fn build_chunk<'a>(
        &'a self,
        choices: &'a [StreamedChoice<'a>],
        usage: Option<Value>,
    ) -> StreamedCompletion<'a> {
        StreamedCompletion {
            id: &self.head.id,
            object: "chat.completion.chunk",
            created: self.head.created,
            model: &self.head.model,
            choices,
            usage,
        }
    }
}
