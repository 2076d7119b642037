//! Decodes server-sent events as they arrive: bytes in, frames out.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use polyclaw_api::stream::{MissedFrames, StreamEvent};
use polyclaw_domain::frame::FrameKind;
use reqwest::Response;
use serde::Deserialize;
use serde_json::Value;

/// The server sends a keep-alive every 15 s. A stream that is silent this long is dead.
const STREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(40);

/// An event of a session's stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamFrame {
    /// The server's frame ID, to resume the stream from.
    pub id: Option<String>,
    pub event: StreamEvent,
    /// The event as it was received, with its name, for `--json`.
    pub kind: String,
    pub data: Value,
}

impl StreamFrame {
    /// Returns `None` if the data is no event of this API.
    pub fn from_data(id: Option<String>, data: Value) -> Option<Self> {
        let event = StreamEvent::deserialize(&data).ok()?;
        Some(Self { id, event, kind: data["event"].as_str()?.to_owned(), data })
    }

    /// Whether frames are missing before this one.
    pub fn is_gap(&self) -> bool {
        matches!(&self.event, StreamEvent::Notice(notice) if notice.event == MissedFrames::Gap)
    }

    /// The kind of a live frame.
    pub fn frame_kind(&self) -> Option<&FrameKind> {
        match &self.event {
            StreamEvent::Frame(frame) => Some(&frame.kind),
            StreamEvent::Opened(_) | StreamEvent::Notice(_) => None,
        }
    }
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

/// Parses one event. Comments, such as keep-alives, and events of other programs are not frames.
fn parse_frame(block: &str) -> Option<StreamFrame> {
    let field = |name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let values: Vec<&str> = lines.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect();
        (!values.is_empty()).then(|| values.join("\n"))
    };
    let data: Value = serde_json::from_str(&field("data")?).ok()?;
    StreamFrame::from_data(field("id"), data)
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::id::TurnId;

    use super::*;

    #[test]
    fn sse_frames_are_decoded_from_chunks_of_any_size() {
        let delta = r#"{"type":"event","seq":7,"session_key":"agent:main:main","event":"turn.delta","turn_id":"t","step":0,"text":"ä"}"#;
        let new =
            r#"{"type":"event","seq":8,"session_key":"agent:main:main","event":"of.a.later.version","x":1}"#;
        let wire = format!(": alive\n\nid: 7\ndata: {delta}\n\ndata: {{}}\n\ndata: {new}\r\n\r\n");
        for size in [1, 3, 1000] {
            let mut decoder = SseDecoder::default();
            let mut frames = Vec::new();
            for piece in wire.as_bytes().chunks(size) {
                decoder.push(piece);
                frames.extend(std::iter::from_fn(|| decoder.next()));
            }
            let seen: Vec<_> =
                frames.iter().map(|frame| (frame.id.as_deref(), frame.kind.as_str())).collect();
            assert_eq!(seen, [(Some("7"), "turn.delta"), (None, "of.a.later.version")]);
            let kinds = frames.iter().map(|frame| match &frame.event {
                StreamEvent::Frame(frame) => frame.kind.clone(),
                other => panic!("{other:?}"),
            });
            let delta = FrameKind::Delta { turn_id: TurnId::new("t"), step: 0, text: "ä".to_owned() };
            assert_eq!(kinds.collect::<Vec<_>>(), [delta, FrameKind::Unknown]);
        }
    }
}
