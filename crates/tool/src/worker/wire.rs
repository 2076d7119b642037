//! The protocol between daemon and worker: JSON-RPC 2.0, one object per line.

use polyclaw_domain::id::TurnId;
use polyclaw_domain::tool::{ToolCall, ToolScope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Maximum length of a line from a worker: a page of text with every character escaped. Anything longer is an attack.
pub const MAX_ANSWER_BYTES: u64 = 8 * 1024 * 1024;
/// Maximum length of a line to a worker: the largest writable file, escaped.
pub const MAX_REQUEST_BYTES: u64 = 64 * 1024 * 1024;

pub const RUN_METHOD: &str = "tool/run";
/// Notification with output of a running tool.
pub const PROGRESS_METHOD: &str = "host/progress";
/// Request to fetch a page that the worker may not or cannot fetch itself.
pub const FETCH_METHOD: &str = "host/fetch";

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct WorkerMessage {
    pub jsonrpc: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub params: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

/// The data of one call, with the engine's decision.
#[derive(Debug, Serialize, Deserialize)]
pub struct ToolRunParams {
    pub scope: ToolScope,
    pub turn: TurnId,
    pub call: ToolCall,
    /// All tools that may run in this scope.
    pub tools: Vec<String>,
    /// Whether web tools may reach private addresses.
    pub allow_private: bool,
}

impl WorkerMessage {
    pub fn request(id: u64, method: &str, params: Value) -> Self {
        Self {
            jsonrpc: "2.0".to_owned(),
            id: Some(id),
            method: Some(method.to_owned()),
            params,
            ..Self::default()
        }
    }

    pub fn notification(method: &str, params: Value) -> Self {
        Self { jsonrpc: "2.0".to_owned(), method: Some(method.to_owned()), params, ..Self::default() }
    }

    pub fn result(id: u64, result: Value) -> Self {
        Self { jsonrpc: "2.0".to_owned(), id: Some(id), result: Some(result), ..Self::default() }
    }

    pub fn error(id: Option<u64>, code: i32, message: &str) -> Self {
        let error = Some(json!({ "code": code, "message": message }));
        Self { jsonrpc: "2.0".to_owned(), id, error, ..Self::default() }
    }

    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Returns the next message. `None` at the end, or if a line is too long, incomplete or not JSON-RPC.
pub async fn next_message(from: &mut (impl AsyncBufRead + Unpin), longest: u64) -> Option<WorkerMessage> {
    parse_message(&read_line(from, longest).await?)
}

/// Reads a complete line.
pub async fn read_line(from: &mut (impl AsyncBufRead + Unpin), longest: u64) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    from.take(longest).read_until(b'\n', &mut line).await.ok()?;
    (line.last() == Some(&b'\n')).then_some(line)
}

pub fn parse_message(line: &[u8]) -> Option<WorkerMessage> {
    serde_json::from_slice::<WorkerMessage>(line).ok().filter(|message| message.jsonrpc == "2.0")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str, longest: u64) -> Option<WorkerMessage> {
        next_message(&mut text.as_bytes(), longest).await
    }

    #[tokio::test]
    async fn only_complete_json_rpc_lines_are_messages() {
        let line =
            String::from_utf8(WorkerMessage::request(7, RUN_METHOD, json!({ "a": 1 })).to_line()).unwrap();
        assert_eq!(read(&line, 1000).await.unwrap().id, Some(7));
        assert!(read(&line, 10).await.is_none(), "too long");
        for bad in
            ["", "\n", "garbage\n", "{}\n", "{\"jsonrpc\":\"1.0\"}\n", line.trim_end(), "[1]\n", "\u{0}\n"]
        {
            assert!(read(bad, 1000).await.is_none(), "{bad:?}");
        }
    }
}
