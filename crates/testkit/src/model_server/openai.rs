//! Renders responses in OpenAI's chat completion format.

use serde_json::{Value, json};

use super::reply::ReplyRenderer;
use super::script::{ReplyFinish, ReplyScript, ReplyStep};

pub(super) struct OpenAiRenderer {
    model: String,
    next_call: usize,
}

impl OpenAiRenderer {
    pub fn new(model: &str) -> Self {
        Self { model: model.to_owned(), next_call: 0 }
    }

    fn chunk_event(&self, delta: Value, finish_reason: Value) -> String {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": finish_reason }]);
        sse_event(&json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0,
            "model": self.model, "choices": choices }))
    }

    fn finish_reason(script: &ReplyScript) -> Value {
        match script.finish {
            ReplyFinish::Truncated => json!("length"),
            ReplyFinish::Missing => Value::Null,
            ReplyFinish::Done if script.has_calls() => json!("tool_calls"),
            ReplyFinish::Done => json!("stop"),
        }
    }

    /// Splits a call in two chunks, as real servers do: the first names the call, the second only continues it.
    fn call_chunks(&mut self, call: &super::script::ScriptedCall) -> String {
        let index = self.next_call;
        self.next_call += 1;
        let middle = call.arguments.len() / 2;
        let cut = (middle..).find(|at| call.arguments.is_char_boundary(*at)).unwrap_or(0);
        let (head, tail) = call.arguments.split_at(cut);
        let first = json!({ "tool_calls": [{ "index": index, "id": call.id, "type": "function",
            "function": { "name": call.name, "arguments": head } }] });
        let rest = json!({ "tool_calls": [{ "index": index, "function": { "arguments": tail } }] });
        self.chunk_event(first, Value::Null) + &self.chunk_event(rest, Value::Null)
    }
}

impl ReplyRenderer for OpenAiRenderer {
    fn render_head(&mut self, _: &ReplyScript) -> String {
        self.chunk_event(json!({ "role": "assistant", "content": "" }), Value::Null)
    }

    fn render_step(&mut self, step: &ReplyStep) -> String {
        match step {
            ReplyStep::Text(text) => self.chunk_event(json!({ "content": text }), Value::Null),
            ReplyStep::Reasoning(text) => self.chunk_event(json!({ "reasoning_content": text }), Value::Null),
            ReplyStep::Call(call) => self.call_chunks(call),
            ReplyStep::Raw(bytes) => bytes.clone(),
            _ => String::new(),
        }
    }

    fn render_tail(&mut self, script: &ReplyScript) -> String {
        if script.finish == ReplyFinish::Missing {
            return String::new();
        }
        let mut tail = self.chunk_event(json!({}), Self::finish_reason(script));
        if let Some(usage) = usage(script) {
            tail += &sse_event(&json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0,
                "model": self.model, "choices": [], "usage": usage }));
        }
        tail + "data: [DONE]\n\n"
    }

    fn render_whole(&mut self, script: &ReplyScript) -> Value {
        let call = |call: &super::script::ScriptedCall| {
            json!({ "id": call.id, "type": "function",
            "function": { "name": call.name, "arguments": call.arguments } })
        };
        let mut message = json!({ "role": "assistant", "content": script.whole_text() });
        if script.has_calls() {
            message["tool_calls"] = script.calls().map(call).collect();
        }
        let mut body = json!({ "id": "chatcmpl-1", "object": "chat.completion", "created": 0,
            "model": self.model,
            "choices": [{ "index": 0, "message": message, "finish_reason": Self::finish_reason(script) }] });
        if let Some(usage) = usage(script) {
            body["usage"] = usage;
        }
        body
    }
}

fn usage(script: &ReplyScript) -> Option<Value> {
    let (input, output) = script.usage?;
    Some(json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output }))
}

fn sse_event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
