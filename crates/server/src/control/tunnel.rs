//! A proxied socket to an instance. Bytes are passed both ways until one side closes or the caller's access ends.
//! Requests are inspected until one does more than read, which is audited before it is forwarded.

use std::future::Future;
use std::io;
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use super::connection_lifetime::{ConnectionEnd, ConnectionLifetime};
use crate::ws::is_read_only;

const CHUNK_BYTES: usize = 16 * 1024;
/// A peer that does not read is not waited for when closing.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Longer requests are not inspected and count as changes.
const MAX_INSPECTED_BYTES: usize = 4 * 1024;

/// Joins both sockets. `first_change` is awaited before the first frame that may change something is forwarded.
pub async fn join_sockets(
    (ours, theirs): (OnUpgrade, OnUpgrade),
    until: ConnectionLifetime,
    first_change: impl Future<Output = polyclaw_control::Result<()>>,
) {
    let (Ok(ours), Ok(theirs)) = (ours.await, theirs.await) else { return };
    let (mut from_peer, mut to_peer) = split(TokioIo::new(ours));
    let (mut from_instance, mut to_instance) = split(TokioIo::new(theirs));
    let mut frames = FrameTracker::default();
    let over = {
        let up = forward_to_instance(&mut from_peer, &mut to_instance, first_change);
        let down = forward_to_peer(&mut from_instance, &mut to_peer, &mut frames);
        tokio::select! {
            biased;
            end = until.wait_for_end() => Some(end),
            _ = async { tokio::try_join!(up, down) } => None,
        }
    };
    if let Some(end) = over.filter(|_| frames.is_at_boundary()) {
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, send_close_frame(&mut to_peer, end)).await;
    }
}

async fn forward_to_instance(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    first_change: impl Future<Output = polyclaw_control::Result<()>>,
) -> io::Result<()> {
    let (mut chunk, mut frames) = (vec![0; CHUNK_BYTES], ClientFrames::default());
    let mut waiting = Some(first_change);
    loop {
        let read = from.read(&mut chunk).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        if waiting.is_some() && frames.may_change(&chunk[..read]) {
            let Some(noted) = waiting.take() else { continue };
            noted.await.map_err(io::Error::other)?;
        }
        to.write_all(&chunk[..read]).await?;
        to.flush().await?;
    }
}

async fn forward_to_peer(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    frames: &mut FrameTracker,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = from.read(&mut chunk).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        frames.is_writing = true;
        to.write_all(&chunk[..read]).await?;
        to.flush().await?;
        frames.is_writing = false;
        frames.track_bytes(&chunk[..read], |_, _, _| {});
    }
}

/// Sends the frames that close a socket: the reason, if there is one to state, and the close frame.
async fn send_close_frame(to: &mut (impl AsyncWrite + Unpin), end: ConnectionEnd) -> io::Result<()> {
    let text = end.error_frame().map(|frame| frame.to_string()).unwrap_or_default();
    // The text is short enough for a one-byte length.
    if let Some(length) = u8::try_from(text.len()).ok().filter(|length| (1..126).contains(length)) {
        to.write_all(&[0x81, length]).await?;
        to.write_all(text.as_bytes()).await?;
    }
    let [high, low] = end.close_code().to_be_bytes();
    to.write_all(&[0x88, 2, high, low]).await?;
    to.shutdown().await
}

/// Tracks frame boundaries in forwarded bytes: another frame may be inserted only between two frames.
#[derive(Default)]
struct FrameTracker {
    /// The part of a frame head received so far.
    head: Vec<u8>,
    /// The head of the frame whose body is being received.
    open: Vec<u8>,
    /// The number of body bytes still to come.
    left: u64,
    is_writing: bool,
}

impl FrameTracker {
    /// Calls `seen` for each part of a body, with the head of its frame and the number of bytes still to come.
    fn track_bytes(&mut self, mut bytes: &[u8], mut seen: impl FnMut(&[u8], &[u8], u64)) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.left > 0 {
                let taken = usize::try_from(self.left).map_or(bytes.len(), |left| left.min(bytes.len()));
                self.left -= taken as u64;
                seen(&self.open, &bytes[..taken], self.left);
                bytes = &bytes[taken..];
                continue;
            }
            self.head.push(*first);
            bytes = rest;
            if let Some(body) = body_length(&self.head) {
                self.left = body;
                self.open = std::mem::take(&mut self.head);
            }
        }
    }

    fn is_at_boundary(&self) -> bool {
        self.left == 0 && self.head.is_empty() && !self.is_writing
    }
}

/// Decodes the frames of the client as far as needed.
#[derive(Default)]
struct ClientFrames {
    frames: FrameTracker,
    /// The body of the current request, still masked.
    masked: Vec<u8>,
}

impl ClientFrames {
    /// Whether these bytes complete a request that may change something, or start one that cannot be inspected.
    fn may_change(&mut self, bytes: &[u8]) -> bool {
        const CONTROL_BIT: u8 = 0x08;
        const WHOLE_TEXT_BYTE: u8 = 0x81;
        let (masked, mut changes) = (&mut self.masked, false);
        self.frames.track_bytes(bytes, |head, part, left| {
            if head[0] & CONTROL_BIT != 0 {
                return;
            }
            masked.extend_from_slice(part);
            if head[0] != WHOLE_TEXT_BYTE || masked.len() > MAX_INSPECTED_BYTES {
                changes = true;
            } else if left == 0 {
                changes |= !is_read_only(&unmask(head, masked));
                masked.clear();
            }
        });
        changes
    }
}

fn unmask(head: &[u8], body: &[u8]) -> Vec<u8> {
    let mask = match head[1] >> 7 {
        0 => &[0; 4],
        _ => &head[head.len() - 4..],
    };
    body.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

/// Returns the length of a frame's body once its head is complete.
fn body_length(head: &[u8]) -> Option<u64> {
    let (mask, length) = (head.get(1)? >> 7, head.get(1)? & 0x7f);
    let wide = match length {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    if head.len() < 2 + wide + 4 * usize::from(mask) {
        return None;
    }
    let number = head[2..2 + wide].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    Some(if wide == 0 { u64::from(length) } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_boundary_is_only_at_frame_end() {
        let body = |length: usize| vec![7; length];
        for (head, length) in [
            (vec![0x81, 0], 0),
            (vec![0x81, 3], 3),
            (vec![0x82, 126, 1, 0], 256),
            (vec![0x82, 127, 0, 0, 0, 0, 0, 1, 0, 1], 65_537),
            (vec![0x81, 0x83, 1, 2, 3, 4], 3),
        ] {
            let frame = [head, body(length)].concat();
            for size in [1, 3, frame.len()] {
                let mut frames = FrameTracker::default();
                let mut seen = 0;
                for part in frame.chunks(size) {
                    frames.track_bytes(part, |_, _, _| {});
                    seen += part.len();
                    assert_eq!(frames.is_at_boundary(), seen == frame.len(), "{seen} of {}", frame.len());
                }
            }
        }
    }

    fn from_peer(first: u8, text: &str) -> Vec<u8> {
        let mask = [9, 8, 7, 6];
        let length = u16::try_from(text.len()).unwrap().to_be_bytes();
        let body = text.bytes().zip(mask.into_iter().cycle()).map(|(byte, mask)| byte ^ mask);
        [&[first, 0x80 | 126][..], &length, &mask].concat().into_iter().chain(body).collect()
    }

    #[test]
    fn client_frames_that_may_change_state_are_detected() {
        let ask = |method: &str| format!(r#"{{"type":"req","id":1,"method":"{method}","params":{{}}}}"#);
        let long = format!("{}{}", ask("watch"), " ".repeat(MAX_INSPECTED_BYTES));
        for (frames, expected) in [
            (vec![from_peer(0x81, &ask("subscribe")), from_peer(0x81, &ask("watch"))], false),
            (vec![from_peer(0x89, "ping"), from_peer(0x81, &ask("unsubscribe"))], false),
            (vec![from_peer(0x81, &ask("subscribe")), from_peer(0x81, &ask("approve"))], true),
            (vec![from_peer(0x81, &ask("send"))], true),
            (vec![from_peer(0x01, &ask("watch"))], true),
            (vec![from_peer(0xc1, &ask("watch"))], true),
            (vec![from_peer(0x81, &long)], true),
            (vec![from_peer(0x81, "no request")], true),
        ] {
            let bytes = frames.concat();
            for size in [1, 7, bytes.len()] {
                let mut text = ClientFrames::default();
                let changes = bytes.chunks(size).fold(false, |changes, part| changes | text.may_change(part));
                assert_eq!(changes, expected, "{frames:?} in parts of {size}");
            }
        }
    }

    #[test]
    fn frame_being_written_is_not_at_boundary() {
        let frames = FrameTracker { is_writing: true, ..FrameTracker::default() };
        assert!(!frames.is_at_boundary());
    }
}
