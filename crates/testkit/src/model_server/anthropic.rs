//! Answers in the shape of Anthropic's messages.

use serde_json::{Value, json};

use super::reply::Render;
use super::script::{Call, Finish, Script, Step};

pub(super) struct Anthropic {
    model: String,
    next_block: usize,
    open: Option<&'static str>,
}

impl Anthropic {
    pub fn new(model: &str) -> Self {
        Self { model: model.to_owned(), next_block: 0, open: None }
    }

    /// Text and thinking go on in an open block of their kind; anything else closes it first.
    fn block(&mut self, kind: &'static str, start: &Value) -> String {
        if self.open == Some(kind) && kind != "tool_use" {
            return String::new();
        }
        let close = self.close();
        self.open = Some(kind);
        close
            + &event(
                "content_block_start",
                &json!({ "type": "content_block_start", "index": self.next_block, "content_block": start }),
            )
    }

    fn delta(&self, delta: &Value) -> String {
        event(
            "content_block_delta",
            &json!({ "type": "content_block_delta", "index": self.next_block, "delta": delta }),
        )
    }

    fn close(&mut self) -> String {
        if self.open.take().is_none() {
            return String::new();
        }
        let index = self.next_block;
        self.next_block += 1;
        event("content_block_stop", &json!({ "type": "content_block_stop", "index": index }))
    }

    fn call(&mut self, call: &Call) -> String {
        let start = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
        let middle = call.arguments.len() / 2;
        let cut = (middle..).find(|at| call.arguments.is_char_boundary(*at)).unwrap_or(0);
        let (head, tail) = call.arguments.split_at(cut);
        let mut events = self.block("tool_use", &start);
        for piece in [head, tail] {
            events += &self.delta(&json!({ "type": "input_json_delta", "partial_json": piece }));
        }
        events + &self.close()
    }

    fn stop_reason(script: &Script) -> Value {
        match script.finish {
            Finish::Truncated => json!("max_tokens"),
            Finish::Missing => Value::Null,
            Finish::Done if script.has_calls() => json!("tool_use"),
            Finish::Done => json!("end_turn"),
        }
    }
}

impl Render for Anthropic {
    fn head(&mut self, script: &Script) -> String {
        let mut message = json!({ "id": "msg_1", "type": "message", "role": "assistant",
            "model": self.model, "content": [], "stop_reason": null });
        if let Some((input, _)) = script.usage {
            message["usage"] = json!({ "input_tokens": input, "output_tokens": 1 });
        }
        event("message_start", &json!({ "type": "message_start", "message": message }))
    }

    fn step(&mut self, step: &Step) -> String {
        match step {
            Step::Text(text) => {
                self.block("text", &json!({ "type": "text", "text": "" }))
                    + &self.delta(&json!({ "type": "text_delta", "text": text }))
            }
            Step::Reasoning(text) => {
                self.block("thinking", &json!({ "type": "thinking", "thinking": "" }))
                    + &self.delta(&json!({ "type": "thinking_delta", "thinking": text }))
            }
            Step::Call(call) => self.call(call),
            Step::Raw(bytes) => bytes.clone(),
            _ => String::new(),
        }
    }

    fn tail(&mut self, script: &Script) -> String {
        if script.finish == Finish::Missing {
            return String::new();
        }
        let mut delta =
            json!({ "type": "message_delta", "delta": { "stop_reason": Self::stop_reason(script) } });
        if let Some((_, output)) = script.usage {
            delta["usage"] = json!({ "output_tokens": output });
        }
        self.close()
            + &event("message_delta", &delta)
            + &event("message_stop", &json!({ "type": "message_stop" }))
    }

    fn whole(&mut self, script: &Script) -> Value {
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

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
