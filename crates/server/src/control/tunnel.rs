//! A socket that is handed through to an instance, byte by byte both ways, until one side ends or whoever opened it may
//! not hold it any more. What is asked for over it is looked at until it is more than looking: that is noted first.

use std::future::Future;
use std::io;
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use super::until::{End, Until};
use crate::ws::only_looks;

const CHUNK: usize = 16 * 1024;
/// A peer that takes nothing is not waited for to say goodbye.
const FAREWELL: Duration = Duration::from_secs(1);

/// No question is longer than this.
const LONGEST_LOOK: usize = 4 * 1024;

/// `first_change` is awaited before the first frame that may change something is handed on.
pub async fn join(
    (ours, theirs): (OnUpgrade, OnUpgrade),
    until: Until,
    first_change: impl Future<Output = polyclaw_control::Result<()>>,
) {
    let (Ok(ours), Ok(theirs)) = (ours.await, theirs.await) else { return };
    let (mut from_peer, mut to_peer) = split(TokioIo::new(ours));
    let (mut from_instance, mut to_instance) = split(TokioIo::new(theirs));
    let mut frames = Frames::default();
    let over = {
        let up = hand_up(&mut from_peer, &mut to_instance, first_change);
        let down = hand_down(&mut from_instance, &mut to_peer, &mut frames);
        tokio::select! {
            biased;
            end = until.over() => Some(end),
            _ = async { tokio::try_join!(up, down) } => None,
        }
    };
    if let Some(end) = over.filter(|_| frames.are_whole()) {
        let _ = tokio::time::timeout(FAREWELL, say_goodbye(&mut to_peer, end)).await;
    }
}

async fn hand_up(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    first_change: impl Future<Output = polyclaw_control::Result<()>>,
) -> io::Result<()> {
    let (mut chunk, mut said) = (vec![0; CHUNK], Said::default());
    let mut waiting = Some(first_change);
    loop {
        let read = from.read(&mut chunk).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        if waiting.is_some() && said.may_change(&chunk[..read]) {
            let Some(noted) = waiting.take() else { continue };
            noted.await.map_err(io::Error::other)?;
        }
        to.write_all(&chunk[..read]).await?;
        to.flush().await?;
    }
}

async fn hand_down(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    frames: &mut Frames,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = from.read(&mut chunk).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        frames.is_writing = true;
        to.write_all(&chunk[..read]).await?;
        to.flush().await?;
        frames.is_writing = false;
        frames.pass(&chunk[..read], |_, _, _| {});
    }
}

/// The frames of a server that closes: why, where that is to be told, and the end.
async fn say_goodbye(to: &mut (impl AsyncWrite + Unpin), end: End) -> io::Result<()> {
    let told = end.frame().map(|frame| frame.to_string()).unwrap_or_default();
    // So short a text has its length in one byte.
    if let Some(length) = u8::try_from(told.len()).ok().filter(|length| (1..126).contains(length)) {
        to.write_all(&[0x81, length]).await?;
        to.write_all(told.as_bytes()).await?;
    }
    let [high, low] = end.code().to_be_bytes();
    to.write_all(&[0x88, 2, high, low]).await?;
    to.shutdown().await
}

/// Follows the frames that were handed on: another can be put between two, and not into one.
#[derive(Default)]
struct Frames {
    /// What has come of the head of a frame.
    head: Vec<u8>,
    /// The head of the frame whose body comes.
    open: Vec<u8>,
    /// What is still to come of its body.
    left: u64,
    is_writing: bool,
}

impl Frames {
    /// `seen` is shown each part of a body, behind the head of its frame and before how much is still to come.
    fn pass(&mut self, mut bytes: &[u8], mut seen: impl FnMut(&[u8], &[u8], u64)) {
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
            if let Some(body) = body_of(&self.head) {
                self.left = body;
                self.open = std::mem::take(&mut self.head);
            }
        }
    }

    fn are_whole(&self) -> bool {
        self.left == 0 && self.head.is_empty() && !self.is_writing
    }
}

/// What a peer says, as far as it has to be known.
#[derive(Default)]
struct Said {
    frames: Frames,
    /// What has come of a question, as it was sent.
    masked: Vec<u8>,
}

impl Said {
    /// Whether anything in these bytes ends a request that may change something, or begins what can not be told.
    fn may_change(&mut self, bytes: &[u8]) -> bool {
        const CONTROL: u8 = 0x08;
        const WHOLE_TEXT: u8 = 0x81;
        let (masked, mut changes) = (&mut self.masked, false);
        self.frames.pass(bytes, |head, part, left| {
            if head[0] & CONTROL != 0 {
                return;
            }
            masked.extend_from_slice(part);
            if head[0] != WHOLE_TEXT || masked.len() > LONGEST_LOOK {
                changes = true;
            } else if left == 0 {
                changes |= !only_looks(&unmasked(head, masked));
                masked.clear();
            }
        });
        changes
    }
}

fn unmasked(head: &[u8], body: &[u8]) -> Vec<u8> {
    let mask = match head[1] >> 7 {
        0 => &[0; 4],
        _ => &head[head.len() - 4..],
    };
    body.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

/// How long the body of a frame is, once its head is whole.
fn body_of(head: &[u8]) -> Option<u64> {
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
    fn frames_are_whole_at_their_end_and_nowhere_else() {
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
                let mut frames = Frames::default();
                let mut seen = 0;
                for part in frame.chunks(size) {
                    frames.pass(part, |_, _, _| {});
                    seen += part.len();
                    assert_eq!(frames.are_whole(), seen == frame.len(), "{seen} of {}", frame.len());
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
    fn what_only_looks_is_told_from_what_may_change_something() {
        let ask = |method: &str| format!(r#"{{"type":"req","id":1,"method":"{method}","params":{{}}}}"#);
        let long = format!("{}{}", ask("watch"), " ".repeat(LONGEST_LOOK));
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
                let mut said = Said::default();
                let changes = bytes.chunks(size).fold(false, |changes, part| changes | said.may_change(part));
                assert_eq!(changes, expected, "{frames:?} in parts of {size}");
            }
        }
    }

    #[test]
    fn a_frame_that_is_being_written_is_not_whole() {
        let frames = Frames { is_writing: true, ..Frames::default() };
        assert!(!frames.are_whole());
    }
}
