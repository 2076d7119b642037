//! Sockets of the control plane: a snapshot first, then what is new. A reader that falls behind gets another snapshot,
//! never a gap.

mod envelopes;
mod events;
mod fleet;
mod lines;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use polyclaw_domain::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::state::ControlState;
use super::until::{End, UNAUTHORIZED, Until};
use crate::error::Error;

pub use envelopes::open as messages;
pub use events::open as events;
pub use fleet::open as instances;
pub use lines::open as logs;

const LARGEST_FRAME: usize = 64 * 1024;
/// A peer that has said nothing for this long is gone, unless the server was told another time.
pub const SILENCE: Duration = Duration::from_secs(90);
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
    until: Until,
    silence: Duration,
    redactor: Arc<Redactor>,
}

impl Line {
    fn new(app: &ControlState, socket: WebSocket, until: Until) -> Self {
        let (silence, redactor) = (app.silence, app.control.redactor());
        Self { socket, heard: Instant::now(), until, silence, redactor }
    }

    /// Waits for news and hears the peer meanwhile. `None`: it is over, and the peer was told so.
    async fn next<T>(&mut self, news: impl Future<Output = T>) -> Option<Next<T>> {
        let over = self.until.clone().over();
        tokio::pin!(over, news);
        let end = loop {
            let deadline = self.heard + self.silence;
            tokio::select! {
                // First: whoever may not listen any more is told nothing more.
                biased;
                end = &mut over => break end,
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
                // It is away, as a server is that goes down.
                () = tokio::time::sleep_until(deadline) => break End::Closing,
            }
        };
        self.end(end).await;
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
        let revoked = self.until.clone().revoked();
        tokio::select! {
            sent = timeout(WRITE, self.socket.send(Message::Text(text.into()))) => matches!(sent, Ok(Ok(()))),
            () = revoked => {
                self.end(End::Revoked).await;
                false
            }
        }
    }

    async fn pong(&mut self) -> bool {
        self.say(&json!({ "type": "pong" })).await
    }

    async fn close(&mut self, code: u16) {
        self.part(Message::Close(Some(CloseFrame { code, reason: "".into() }))).await;
    }

    /// Says why it is over, where that is to be told, and closes.
    async fn end(&mut self, end: End) {
        if let Some(frame) = end.frame() {
            self.part(Message::Text(frame.to_string().into())).await;
        }
        self.close(end.code()).await;
    }

    /// A peer that takes nothing is not waited for.
    async fn part(&mut self, word: Message) {
        let _ = timeout(Duration::from_secs(1), self.socket.send(word)).await;
    }

    /// Says what went wrong, then closes with a code of the same kind.
    async fn fail(&mut self, error: &Error) {
        error.log();
        let mut detail = error.detail();
        self.redactor.redact_in_place(&mut detail.message);
        self.say(&json!({ "type": "error", "code": detail.code, "message": detail.message })).await;
        self.close(match error.status().as_u16() {
            401 | 403 => UNAUTHORIZED,
            404 => 4404,
            500.. => 4500,
            _ => 4400,
        })
        .await;
    }
}

const AWAY: u16 = close_code::AWAY;
const POLICY: u16 = close_code::POLICY;

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::extract::ws::WebSocketUpgrade;
    use axum::routing::get;
    use futures_util::{SinkExt, StreamExt};
    use hyper_util::rt::TokioIo;
    use hyper_util::service::TowerToHyperService;
    use tokio::io::DuplexStream;
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Message as Frame;

    use super::*;

    /// A peer of a line that has nothing to tell, over a pipe: its time is the test's.
    async fn peer() -> WebSocketStream<DuplexStream> {
        let wait = async |upgrade: WebSocketUpgrade| {
            upgrade.on_upgrade(async move |socket| {
                let (until, redactor) = (Until::default(), Arc::default());
                let mut line = Line { socket, heard: Instant::now(), until, silence: SILENCE, redactor };
                while line.next(std::future::pending::<()>()).await.is_some() {}
            })
        };
        let (near, far) = tokio::io::duplex(LARGEST_FRAME);
        let service = TowerToHyperService::new(Router::new().route("/", get(wait)));
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service);
        tokio::spawn(connection.with_upgrades());
        tokio_tungstenite::client_async("ws://localhost/", near).await.unwrap().0
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_says_nothing_for_ninety_seconds_is_let_go_with_1001() {
        let mut peer = peer().await;
        tokio::time::sleep(SILENCE - Duration::from_secs(1)).await;
        peer.send(Frame::text(r#"{"type":"ping"}"#)).await.unwrap();
        assert_eq!(peer.next().await.unwrap().unwrap().to_text().unwrap(), r#"{"type":"pong"}"#);
        let heard = Instant::now();
        let Some(Ok(Frame::Close(Some(frame)))) = peer.next().await else { panic!("it was not closed") };
        assert_eq!(u16::from(frame.code), AWAY);
        let silent = heard.elapsed();
        assert!(silent >= SILENCE && silent < SILENCE + Duration::from_secs(2), "{silent:?}");
    }
}
