//! Sockets of the control plane: a snapshot first, then what is new. A reader that falls behind gets another snapshot,
//! never a gap.

mod envelopes;
mod events;
mod fleet;
mod lines;

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::error::Error;
use crate::serve::Closing;

pub use envelopes::open as messages;
pub use events::open as events;
pub use fleet::open as instances;
pub use lines::open as logs;

const LARGEST_FRAME: usize = 64 * 1024;
/// A peer that has said nothing for this long is gone.
const SILENCE: Duration = Duration::from_secs(90);
/// A peer that takes nothing for this long is gone too.
const WRITE: Duration = Duration::from_secs(30);

/// What peers may say.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Word {
    Ping,
    SetIncludeArchived { value: bool },
}

/// What came from a peer.
enum Heard {
    Word(Word),
    /// Something that says no more than that the peer is there.
    Alive,
    Wrong,
    Gone,
}

/// What a reader's turn brings.
enum Next<T> {
    News(T),
    /// The peer wants archived instances shown, or no longer.
    WithArchived(bool),
}

/// One end of a socket.
struct Line {
    socket: WebSocket,
    heard: Instant,
    closing: Option<Closing>,
}

impl Line {
    fn new(socket: WebSocket, closing: Option<Closing>) -> Self {
        Self { socket, heard: Instant::now(), closing }
    }

    /// Waits for news and hears the peer meanwhile. `None`: it is over, and the peer was told so.
    async fn next<T>(&mut self, news: impl Future<Output = T>) -> Option<Next<T>> {
        let closed = closed(self.closing.clone());
        tokio::pin!(closed, news);
        loop {
            let deadline = self.heard + SILENCE;
            tokio::select! {
                heard = self.hear() => match heard {
                    Heard::Word(Word::Ping) if self.pong().await => {}
                    Heard::Word(Word::SetIncludeArchived { value }) => return Some(Next::WithArchived(value)),
                    Heard::Alive => {}
                    Heard::Wrong => {
                        self.close(POLICY).await;
                        return None;
                    }
                    Heard::Word(Word::Ping) | Heard::Gone => return None,
                },
                news = &mut news => return Some(Next::News(news)),
                () = tokio::time::sleep_until(deadline) => break,
                () = &mut closed => break,
            }
        }
        self.close(AWAY).await;
        None
    }

    async fn hear(&mut self) -> Heard {
        let received = self.socket.recv().await;
        self.heard = Instant::now();
        match received {
            Some(Ok(Message::Text(text))) => serde_json::from_str(&text).map_or(Heard::Wrong, Heard::Word),
            Some(Ok(Message::Binary(_))) => Heard::Wrong,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Heard::Alive,
            Some(Ok(Message::Close(_)) | Err(_)) | None => Heard::Gone,
        }
    }

    /// Whether it was taken.
    async fn say(&mut self, frame: &impl Serialize) -> bool {
        let text = serde_json::to_string(frame).unwrap_or_default();
        matches!(timeout(WRITE, self.socket.send(Message::Text(text.into()))).await, Ok(Ok(())))
    }

    async fn pong(&mut self) -> bool {
        self.say(&json!({ "type": "pong" })).await
    }

    async fn close(&mut self, code: u16) {
        let farewell = Message::Close(Some(CloseFrame { code, reason: "".into() }));
        let _ = timeout(Duration::from_secs(1), self.socket.send(farewell)).await;
    }

    /// Says what went wrong, then closes with a code of the same kind.
    async fn fail(&mut self, error: &Error) {
        error.log();
        let detail = error.detail();
        self.say(&json!({ "type": "error", "code": detail.code, "message": detail.message })).await;
        self.close(match error.status().as_u16() {
            401 | 403 => 4401,
            404 => 4404,
            500.. => 4500,
            _ => 4400,
        })
        .await;
    }
}

async fn closed(closing: Option<Closing>) {
    match closing {
        Some(mut closing) => closing.wait().await,
        None => std::future::pending().await,
    }
}

const AWAY: u16 = close_code::AWAY;
const POLICY: u16 = close_code::POLICY;
