//! JSON-RPC on lines of stdin and stdout, in both directions: the editor sends requests, and so does this process.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use super::AcpResult;

#[derive(Debug, PartialEq, Eq)]
pub enum WireLine {
    Whole(Vec<u8>),
    TooLarge,
}

/// Reads the next line; `None` at the end. The content of a line larger than `most` is discarded.
pub async fn next_line(from: &mut (impl AsyncBufRead + Unpin), most: usize) -> io::Result<Option<WireLine>> {
    let (mut line, mut size) = (Vec::new(), 0);
    loop {
        let piece = from.fill_buf().await?;
        let end = piece.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(piece.len());
        size += taken;
        match size > most {
            true => line = Vec::new(),
            false => line.extend_from_slice(&piece[..taken]),
        }
        from.consume(taken);
        if end.is_some() || taken == 0 {
            let line = if size > most { WireLine::TooLarge } else { WireLine::Whole(line) };
            return Ok((size > 0).then_some(line));
        }
    }
}

/// A message from the editor.
pub enum EditorMessage {
    /// A call without an ID expects no response.
    Call {
        id: Option<Value>,
        method: String,
        params: Value,
    },
    Answer(Value),
}

impl EditorMessage {
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut value: Value = serde_json::from_slice(line).ok()?;
        value.as_object()?;
        let Some(method) = value["method"].as_str().map(str::to_owned) else {
            return (value["id"].is_u64()).then_some(Self::Answer(value));
        };
        let id = Some(value["id"].take()).filter(|id| !id.is_null());
        Some(Self::Call { id, method, params: value["params"].take() })
    }
}

/// The editor's end of the connection.
pub struct EditorPeer {
    lines: mpsc::UnboundedSender<Value>,
    next: AtomicU64,
    /// Requests to the editor without a response yet.
    open: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
}

impl EditorPeer {
    pub fn on_stdout() -> Self {
        let (peer, mut lines) = Self::with_receiver();
        tokio::spawn(async move {
            let mut stdout = tokio::io::stdout();
            while let Some(line) = lines.recv().await {
                let line = format!("{line}\n");
                if stdout.write_all(line.as_bytes()).await.is_err() || stdout.flush().await.is_err() {
                    return;
                }
            }
        });
        peer
    }

    fn with_receiver() -> (Self, mpsc::UnboundedReceiver<Value>) {
        let (lines, written) = mpsc::unbounded_channel();
        (Self { lines, next: AtomicU64::new(1), open: Mutex::default() }, written)
    }

    fn write_message(&self, line: Value) {
        // The editor may have closed its end.
        let _ = self.lines.send(line);
    }

    pub fn send_notification(&self, method: &str, params: Value) {
        self.write_message(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    pub fn send_result(&self, id: &Value, done: AcpResult) {
        self.write_message(match done {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(fault) => {
                let data = json!({ "code": fault.code });
                let error = json!({ "code": fault.number, "message": fault.message, "data": data });
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        });
    }

    /// Rejects a line that could not be parsed; its ID is unknown.
    pub fn refuse_line(&self, number: i32, why: &str) {
        let error = json!({ "code": number, "message": why });
        self.write_message(json!({ "jsonrpc": "2.0", "id": null, "error": error }));
    }

    /// Sends a request and returns its result. Returns `None` if the editor refuses or disconnects.
    pub async fn send_request(&self, method: &str, params: Value) -> Option<Value> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        self.write_message(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut answer = answer.await.ok()?;
        answer.get_mut("result").map(Value::take)
    }

    pub fn resolve_response(&self, answer: Value) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = answer["id"].as_u64().and_then(|id| open.remove(&id));
        if let Some(asked) = asked {
            let _ = asked.send(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editor_lines_parse_as_call_or_answer_or_none() {
        let call = |line: &str| match EditorMessage::parse(line.as_bytes()) {
            Some(EditorMessage::Call { id, method, .. }) => Some((id, method)),
            _ => None,
        };
        assert_eq!(call(r#"{"id":"a","method":"x"}"#), Some((Some(json!("a")), "x".to_owned())));
        assert_eq!(call(r#"{"method":"x"}"#), Some((None, "x".to_owned())));
        assert!(matches!(EditorMessage::parse(br#"{"id":1,"result":{}}"#), Some(EditorMessage::Answer(_))));
        for odd in ["", "7", "[]", "{}", r#"{"id":"a"}"#, "{"] {
            assert!(EditorMessage::parse(odd.as_bytes()).is_none(), "{odd}");
        }
    }

    #[tokio::test]
    async fn too_large_line_is_skipped_and_next_line_read() {
        let text = format!("one\n{}\nfive!\nend", "x".repeat(50));
        for size in [1, 7, 1_000] {
            let mut from = tokio::io::BufReader::with_capacity(size, text.as_bytes());
            let mut lines = Vec::new();
            while let Some(line) = next_line(&mut from, 6).await.unwrap() {
                lines.push(line);
            }
            let whole = |text: &[u8]| WireLine::Whole(text.to_vec());
            assert_eq!(lines, [whole(b"one\n"), WireLine::TooLarge, whole(b"five!\n"), whole(b"end")]);
        }
    }

    #[tokio::test]
    async fn editor_responses_are_matched_to_requests_by_id() {
        let (peer, mut written) = EditorPeer::with_receiver();
        let other = async {
            let (first, second) = (written.recv().await.unwrap(), written.recv().await.unwrap());
            peer.resolve_response(json!({ "id": 99, "result": "nobody's" }));
            peer.resolve_response(json!({ "id": second["id"], "result": "two" }));
            peer.resolve_response(json!({ "id": first["id"], "error": { "code": 1 } }));
        };
        let (one, two, ()) =
            tokio::join!(peer.send_request("a", json!({})), peer.send_request("b", json!({})), other);
        assert_eq!((one, two), (None, Some(json!("two"))));
    }
}
