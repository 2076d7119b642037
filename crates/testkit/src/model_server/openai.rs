//! Answers in the shape of OpenAI's chat completions.

use serde_json::{Value, json};

use super::reply::Render;
use super::script::{Finish, Script, Step};

pub(super) struct OpenAi {
    model: String,
    next_call: usize,
}

impl OpenAi {
    pub fn new(model: &str) -> Self {
        Self { model: model.to_owned(), next_call: 0 }
    }

    fn chunk(&self, delta: Value, finish_reason: Value) -> String {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": finish_reason }]);
        event(&json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0,
            "model": self.model, "choices": choices }))
    }

    fn finish_reason(script: &Script) -> Value {
        match script.finish {
            Finish::Truncated => json!("length"),
            Finish::Missing => Value::Null,
            Finish::Done if script.has_calls() => json!("tool_calls"),
            Finish::Done => json!("stop"),
        }
    }

    /// Split in two, as real servers do: the first piece names the call, later ones only continue it.
    fn call(&mut self, call: &super::script::Call) -> String {
        let index = self.next_call;
        self.next_call += 1;
        let middle = call.arguments.len() / 2;
        let cut = (middle..).find(|at| call.arguments.is_char_boundary(*at)).unwrap_or(0);
        let (head, tail) = call.arguments.split_at(cut);
        let first = json!({ "tool_calls": [{ "index": index, "id": call.id, "type": "function",
            "function": { "name": call.name, "arguments": head } }] });
        let rest = json!({ "tool_calls": [{ "index": index, "function": { "arguments": tail } }] });
        self.chunk(first, Value::Null) + &self.chunk(rest, Value::Null)
    }
}

impl Render for OpenAi {
    fn head(&mut self, _: &Script) -> String {
        self.chunk(json!({ "role": "assistant", "content": "" }), Value::Null)
    }

    fn step(&mut self, step: &Step) -> String {
        match step {
            Step::Text(text) => self.chunk(json!({ "content": text }), Value::Null),
            Step::Reasoning(text) => self.chunk(json!({ "reasoning_content": text }), Value::Null),
            Step::Call(call) => self.call(call),
            Step::Raw(bytes) => bytes.clone(),
            _ => String::new(),
        }
    }

    fn tail(&mut self, script: &Script) -> String {
        if script.finish == Finish::Missing {
            return String::new();
        }
        let mut tail = self.chunk(json!({}), Self::finish_reason(script));
        if let Some(usage) = usage(script) {
            tail += &event(&json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0,
                "model": self.model, "choices": [], "usage": usage }));
        }
        tail + "data: [DONE]\n\n"
    }

    fn whole(&mut self, script: &Script) -> Value {
        let call = |call: &super::script::Call| {
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

fn usage(script: &Script) -> Option<Value> {
    let (input, output) = script.usage?;
    Some(json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output }))
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
