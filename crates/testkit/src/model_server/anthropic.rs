//! Renders responses in Anthropic's message format.

use serde_json::{Value, json};

use super::reply::ReplyRenderer;
use super::script::{ReplyFinish, ReplyScript, ReplyStep, ScriptedCall};

pub(super) struct AnthropicRenderer {
    model: String,
    next_block: usize,
    open: Option<&'static str>,
}

impl AnthropicRenderer {
    pub fn new(model: &str) -> Self {
        Self { model: model.to_owned(), next_block: 0, open: None }
    }

    /// Opens a block. Text and thinking continue an open block of their kind; any other block is closed first.
    fn open_block(&mut self, kind: &'static str, start: &Value) -> String {
        if self.open == Some(kind) && kind != "tool_use" {
            return String::new();
        }
        let close = self.close_block();
        self.open = Some(kind);
        close
            + &sse_event(
                "content_block_start",
                &json!({ "type": "content_block_start", "index": self.next_block, "content_block": start }),
            )
    }

    fn delta_event(&self, delta: &Value) -> String {
        sse_event(
            "content_block_delta",
            &json!({ "type": "content_block_delta", "index": self.next_block, "delta": delta }),
        )
    }

    fn close_block(&mut self) -> String {
        if self.open.take().is_none() {
            return String::new();
        }
        let index = self.next_block;
        self.next_block += 1;
        sse_event("content_block_stop", &json!({ "type": "content_block_stop", "index": index }))
    }

    fn call_events(&mut self, call: &ScriptedCall) -> String {
        let start = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
        let middle = call.arguments.len() / 2;
        let cut = (middle..).find(|at| call.arguments.is_char_boundary(*at)).unwrap_or(0);
        let (head, tail) = call.arguments.split_at(cut);
        let mut events = self.open_block("tool_use", &start);
        for piece in [head, tail] {
            events += &self.delta_event(&json!({ "type": "input_json_delta", "partial_json": piece }));
        }
        events + &self.close_block()
    }

    fn stop_reason(script: &ReplyScript) -> Value {
        match script.finish {
            ReplyFinish::Truncated => json!("max_tokens"),
            ReplyFinish::Missing => Value::Null,
            ReplyFinish::Done if script.has_calls() => json!("tool_use"),
            ReplyFinish::Done => json!("end_turn"),
        }
    }
}

impl ReplyRenderer for AnthropicRenderer {
    fn render_head(&mut self, script: &ReplyScript) -> String {
        let mut message = json!({ "id": "msg_1", "type": "message", "role": "assistant",
            "model": self.model, "content": [], "stop_reason": null });
        if let Some((input, _)) = script.usage {
            message["usage"] = json!({ "input_tokens": input, "output_tokens": 1 });
        }
        sse_event("message_start", &json!({ "type": "message_start", "message": message }))
    }

    fn render_step(&mut self, step: &ReplyStep) -> String {
        match step {
            ReplyStep::Text(text) => {
                self.open_block("text", &json!({ "type": "text", "text": "" }))
                    + &self.delta_event(&json!({ "type": "text_delta", "text": text }))
            }
            ReplyStep::Reasoning(text) => {
                self.open_block("thinking", &json!({ "type": "thinking", "thinking": "" }))
                    + &self.delta_event(&json!({ "type": "thinking_delta", "thinking": text }))
            }
            ReplyStep::Call(call) => self.call_events(call),
            ReplyStep::Raw(bytes) => bytes.clone(),
            _ => String::new(),
        }
    }

    fn render_tail(&mut self, script: &ReplyScript) -> String {
        if script.finish == ReplyFinish::Missing {
            return String::new();
        }
        let mut delta =
            json!({ "type": "message_delta", "delta": { "stop_reason": Self::stop_reason(script) } });
        if let Some((_, output)) = script.usage {
            delta["usage"] = json!({ "output_tokens": output });
        }
        self.close_block()
            + &sse_event("message_delta", &delta)
            + &sse_event("message_stop", &json!({ "type": "message_stop" }))
    }

    fn render_whole(&mut self, script: &ReplyScript) -> Value {
        let mut content = vec![json!({ "type": "text", "text": script.whole_text() })];
        content.extend(script.calls().map(|call| {
            let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
        }));
        let mut body = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
            "content": content, "stop_reason": Self::stop_reason(script) });
        if let Some((input, output)) = script.usage {
            body["usage"] = json!({ "input_tokens": input, "output_tokens": output });
        }
        body
    }
}

fn sse_event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
