//! The response object and its items.

use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::tool::ToolCall;
use polyclaw_engine::TurnAnswer;
use serde_json::{Value, json};

pub const INCOMPLETE_STATUS: &str = "incomplete";

/// Returns the status. A reply that was cut off at the length limit is incomplete.
pub fn response_status(answer: &TurnAnswer) -> &'static str {
    if answer.truncated { INCOMPLETE_STATUS } else { "completed" }
}

/// The fields of a response that depend on its request.
pub struct ResponseShape {
    pub id: String,
    pub created_at: i64,
    pub model: String,
    pub instructions: Option<String>,
    pub previous_response_id: Option<String>,
    pub tools: Vec<Value>,
    pub metadata: Value,
}

impl ResponseShape {
    pub fn response_json(&self, status: &str, output: Vec<Value>, usage: Value, error: Value) -> Value {
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created_at,
            "status": status,
            "error": error,
            "incomplete_details": (status == INCOMPLETE_STATUS).then(|| json!({ "reason": "max_output_tokens" })),
            "instructions": self.instructions,
            "metadata": self.metadata,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": true,
            "previous_response_id": self.previous_response_id,
            "temperature": null,
            "tool_choice": "auto",
            "tools": self.tools,
            "top_p": null,
            "usage": usage,
        })
    }

    pub fn in_progress_json(&self) -> Value {
        self.response_json("in_progress", Vec::new(), Value::Null, Value::Null)
    }

    pub fn completed_json(&self, answer: &TurnAnswer, text: String, calls: &[ToolCall]) -> Value {
        let mut output = Vec::new();
        if !text.is_empty() || calls.is_empty() {
            output.push(self.message_item(response_status(answer), Some(text)));
        }
        output.extend(calls.iter().enumerate().map(|(n, call)| self.call_item(n, call, "completed")));
        self.response_json(response_status(answer), output, usage_json(answer.usage), Value::Null)
    }

    pub fn message_id(&self) -> String {
        format!("msg_{}", self.id)
    }

    pub fn message_item(&self, status: &str, text: Option<String>) -> Value {
        let content: Vec<Value> = text.map(|text| text_part(&text)).into_iter().collect();
        json!({
            "type": "message", "id": self.message_id(), "status": status, "role": "assistant",
            "content": content,
        })
    }

    pub fn call_item_id(&self, n: usize) -> String {
        format!("fc_{}_{n}", self.id)
    }

    /// Returns the item of a call. It has no arguments until it is complete.
    pub fn call_item(&self, n: usize, call: &ToolCall, status: &str) -> Value {
        let arguments = if status == "completed" { call.arguments.to_string() } else { String::new() };
        json!({
            "type": "function_call", "id": self.call_item_id(n), "call_id": call.id, "name": call.name,
            "arguments": arguments, "status": status,
        })
    }
}

pub fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

/// Converts token usage. Without both numbers it is null.
pub fn usage_json(usage: TokenUsage) -> Value {
    let (Some(input), Some(output)) = (usage.input_tokens, usage.output_tokens) else { return Value::Null };
    let mut spent = json!({ "input_tokens": input, "output_tokens": output, "total_tokens": input + output });
    if let Some(cached) = usage.cached_tokens {
        spent["input_tokens_details"] = json!({ "cached_tokens": cached });
    }
    spent
}
