//! A client's request as received.

use std::sync::OnceLock;
use std::time::Instant;

use axum::body::Bytes;
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

/// The wire format of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireShape {
    OpenAi,
    Anthropic,
}

#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub shape: WireShape,
    pub headers: HeaderMap,
    pub arrived: Instant,
    bytes: Bytes,
    head: RequestHead,
    body: OnceLock<Value>,
}

/// The fields that a response needs. The rest is parsed on demand, so that benchmarks do not measure this server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RequestHead {
    model: String,
    stream: bool,
}

impl ReceivedRequest {
    pub(super) fn new(shape: WireShape, headers: HeaderMap, bytes: Bytes) -> Self {
        let head = serde_json::from_slice(&bytes).unwrap_or_default();
        Self { shape, headers, arrived: Instant::now(), bytes, head, body: OnceLock::new() }
    }

    /// Returns the body, or `null` if it is not JSON.
    pub fn body(&self) -> &Value {
        self.body.get_or_init(|| serde_json::from_slice(&self.bytes).unwrap_or_default())
    }

    pub fn model(&self) -> &str {
        &self.head.model
    }

    pub fn is_streaming(&self) -> bool {
        self.head.stream
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub fn messages(&self) -> &[Value] {
        self.body()["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the system prompt, wherever the format keeps it. Empty if there is none.
    pub fn system_prompt(&self) -> String {
        match self.shape {
            WireShape::Anthropic => content_text(&self.body()["system"]),
            WireShape::OpenAi => self.last_text("system").unwrap_or_default(),
        }
    }

    /// Returns the user's last text. Tool results do not count.
    pub fn last_user_text(&self) -> String {
        self.last_text("user").unwrap_or_default()
    }

    /// Returns the tool results of the last round, as (call ID, content).
    pub fn tool_results(&self) -> Vec<(String, String)> {
        let mut results: Vec<_> =
            self.messages().iter().rev().map_while(|message| results_of(message, self.shape)).collect();
        results.reverse();
        results.concat()
    }

    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.body()["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        tools
            .iter()
            .filter_map(|tool| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()))
            .collect()
    }

    fn last_text(&self, role: &str) -> Option<String> {
        let of_role = self.messages().iter().rev().filter(|message| message["role"] == role);
        of_role.map(|message| content_text(&message["content"])).find(|text| !text.is_empty())
    }
}

/// Returns the tool results of a message, or `None` if it carries none.
fn results_of(message: &Value, shape: WireShape) -> Option<Vec<(String, String)>> {
    let pair =
        |id: &Value, content: &Value| (id.as_str().unwrap_or_default().to_owned(), content_text(content));
    match shape {
        WireShape::OpenAi => {
            (message["role"] == "tool").then(|| vec![pair(&message["tool_call_id"], &message["content"])])
        }
        WireShape::Anthropic => {
            let blocks = message["content"].as_array()?.iter();
            let results: Vec<_> = blocks
                .filter(|block| block["type"] == "tool_result")
                .map(|block| pair(&block["tool_use_id"], &block["content"]))
                .collect();
            (!results.is_empty()).then_some(results)
        }
    }
}

/// Returns the text of content, which is a string or a list of blocks. Only text blocks count.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}
