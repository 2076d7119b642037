//! Decodes server-sent events as they arrive: bytes in, frames out.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Response;
use serde_json::Value;

/// The server sends a keep-alive every 15 s. A stream that is silent this long is dead.
const STREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(40);

/// A live frame of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamFrame {
    /// The server's frame ID, to resume the stream from.
    pub id: Option<String>,
    pub kind: String,
    pub data: Value,
}

pub struct FrameStream {
    bytes: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    decoder: SseDecoder,
}

impl FrameStream {
    pub fn new(response: Response) -> Self {
        let bytes = response.bytes_stream().map(|piece| piece.map(|bytes| bytes.to_vec())).boxed();
        Self { bytes, decoder: SseDecoder::default() }
    }

    /// Returns `None` when the stream ended, broke or timed out.
    pub async fn next(&mut self) -> Option<StreamFrame> {
        loop {
            if let Some(frame) = self.decoder.next() {
                return Some(frame);
            }
            let piece = tokio::time::timeout(STREAM_IDLE_TIMEOUT, self.bytes.next()).await.ok()?;
            self.decoder.push(&piece?.ok()?);
        }
    }
}

#[derive(Default)]
struct SseDecoder {
    pending: Vec<u8>,
}

impl SseDecoder {
    fn push(&mut self, bytes: &[u8]) {
        self.pending.extend(bytes.iter().filter(|byte| **byte != b'\r'));
    }

    fn next(&mut self) -> Option<StreamFrame> {
        loop {
            let end = self.pending.windows(2).position(|pair| pair == b"\n\n")?;
            let block: Vec<u8> = self.pending.drain(..end + 2).collect();
            if let Some(frame) = parse_frame(&String::from_utf8_lossy(&block)) {
                return Some(frame);
            }
        }
    }
}

/// Parses one event. A comment, such as a keep-alive, is no frame.
fn parse_frame(block: &str) -> Option<StreamFrame> {
    let field = |name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let values: Vec<&str> = lines.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect();
        (!values.is_empty()).then(|| values.join("\n"))
    };
    let data: Value = serde_json::from_str(&field("data")?).ok()?;
    let kind = field("event").or_else(|| data["event"].as_str().map(str::to_owned))?;
    Some(StreamFrame { id: field("id"), kind, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_put_together_from_whatever_pieces_arrive() {
        let wire =
            ": alive\n\nid: 7\nevent: turn.delta\ndata: {\"text\":\"ä\"}\n\nevent: x\r\ndata: {}\r\n\r\n";
        for size in [1, 3, 1000] {
            let mut decoder = SseDecoder::default();
            let mut frames = Vec::new();
            for piece in wire.as_bytes().chunks(size) {
                decoder.push(piece);
                frames.extend(std::iter::from_fn(|| decoder.next()));
            }
            let seen: Vec<_> =
                frames.iter().map(|frame| (frame.id.as_deref(), frame.kind.as_str())).collect();
            assert_eq!(seen, [(Some("7"), "turn.delta"), (None, "x")]);
            assert_eq!(frames[0].data["text"], "ä");
        }
    }
}
