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

use super::connection_lifetime::{ConnectionEnd, ConnectionLifetime, UNAUTHORIZED_CLOSE_CODE};
use super::state::ControlState;
use crate::error::Error;

pub use envelopes::open_envelope_socket as messages;
pub use events::open_event_socket as events;
pub use fleet::open_fleet_socket as instances;
pub use lines::open_log_socket as logs;

const MAX_FRAME_BYTES: usize = 64 * 1024;
/// A peer that has said nothing for this long is gone, unless the server was told another time.
pub const SOCKET_IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// A peer that takes nothing for this long is gone too.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// What peers may say.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum PeerCommand {
    Ping,
    SetIncludeArchived { value: bool },
}

/// What came from a peer.
enum PeerInput {
    Word(PeerCommand),
    /// Something that says no more than that the peer is there.
    Alive,
    Wrong,
    Gone,
}

/// What a reader's turn brings.
enum SocketStep<T> {
    News(T),
    /// The peer wants archived instances shown, or no longer.
    WithArchived(bool),
}

/// One end of a socket.
struct ControlSocket {
    socket: WebSocket,
    last_received: Instant,
    lifetime: ConnectionLifetime,
    idle_timeout: Duration,
    redactor: Arc<Redactor>,
}

impl ControlSocket {
    fn new(app: &ControlState, socket: WebSocket, lifetime: ConnectionLifetime) -> Self {
        let (idle_timeout, redactor) = (app.socket_idle_timeout, app.control.redactor());
        Self { socket, last_received: Instant::now(), lifetime, idle_timeout, redactor }
    }

    /// Waits for news and hears the peer meanwhile. `None`: it is over, and the peer was told so.
    async fn next_step<T>(&mut self, news: impl Future<Output = T>) -> Option<SocketStep<T>> {
        let over = self.lifetime.clone().wait_for_end();
        tokio::pin!(over, news);
        let end = loop {
            let deadline = self.last_received + self.idle_timeout;
            tokio::select! {
                // First: whoever may not listen any more is told nothing more.
                biased;
                end = &mut over => break end,
                heard = self.read_input() => match heard {
                    PeerInput::Word(PeerCommand::Ping) if self.send_pong().await => {}
                    PeerInput::Word(PeerCommand::SetIncludeArchived { value }) => return Some(SocketStep::WithArchived(value)),
                    PeerInput::Alive => {}
                    PeerInput::Wrong => {
                        self.close_with(POLICY_CLOSE_CODE).await;
                        return None;
                    }
                    PeerInput::Word(PeerCommand::Ping) | PeerInput::Gone => return None,
                },
                news = &mut news => return Some(SocketStep::News(news)),
                // It is away, as a server is that goes down.
                () = tokio::time::sleep_until(deadline) => break ConnectionEnd::Closing,
            }
        };
        self.close_for(end).await;
        None
    }

    async fn read_input(&mut self) -> PeerInput {
        let received = self.socket.recv().await;
        self.last_received = Instant::now();
        match received {
            Some(Ok(Message::Text(text))) => {
                serde_json::from_str(&text).map_or(PeerInput::Wrong, PeerInput::Word)
            }
            Some(Ok(Message::Binary(_))) => PeerInput::Wrong,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => PeerInput::Alive,
            Some(Ok(Message::Close(_)) | Err(_)) | None => PeerInput::Gone,
        }
    }

    /// Whether it was taken.
    async fn send_frame(&mut self, frame: &impl Serialize) -> bool {
        let text = serde_json::to_string(frame).unwrap_or_default();
        let revoked = self.lifetime.clone().wait_for_revocation();
        tokio::select! {
            sent = timeout(WRITE_TIMEOUT, self.socket.send(Message::Text(text.into()))) => matches!(sent, Ok(Ok(()))),
            () = revoked => {
                self.close_for(ConnectionEnd::Revoked).await;
                false
            }
        }
    }

    async fn send_pong(&mut self) -> bool {
        self.send_frame(&json!({ "type": "pong" })).await
    }

    async fn close_with(&mut self, code: u16) {
        self.send_last(Message::Close(Some(CloseFrame { code, reason: "".into() }))).await;
    }

    /// Says why it is over, where that is to be told, and closes.
    async fn close_for(&mut self, end: ConnectionEnd) {
        if let Some(frame) = end.error_frame() {
            self.send_last(Message::Text(frame.to_string().into())).await;
        }
        self.close_with(end.close_code()).await;
    }

    /// A peer that takes nothing is not waited for.
    async fn send_last(&mut self, word: Message) {
        let _ = timeout(Duration::from_secs(1), self.socket.send(word)).await;
    }

    /// Says what went wrong, then closes with a code of the same kind.
    async fn close_with_error(&mut self, error: &Error) {
        error.log_internal();
        let mut detail = error.detail();
        self.redactor.redact_in_place(&mut detail.message);
        self.send_frame(&json!({ "type": "error", "code": detail.code, "message": detail.message })).await;
        self.close_with(match error.status().as_u16() {
            401 | 403 => UNAUTHORIZED_CLOSE_CODE,
            404 => 4404,
            500.. => 4500,
            _ => 4400,
        })
        .await;
    }
}

const AWAY_CLOSE_CODE: u16 = close_code::AWAY;
const POLICY_CLOSE_CODE: u16 = close_code::POLICY;

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
                let (until, redactor) = (ConnectionLifetime::default(), Arc::default());
                let mut line = ControlSocket {
                    socket,
                    last_received: Instant::now(),
                    lifetime: until,
                    idle_timeout: SOCKET_IDLE_TIMEOUT,
                    redactor,
                };
                while line.next_step(std::future::pending::<()>()).await.is_some() {}
            })
        };
        let (near, far) = tokio::io::duplex(MAX_FRAME_BYTES);
        let service = TowerToHyperService::new(Router::new().route("/", get(wait)));
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service);
        tokio::spawn(connection.with_upgrades());
        tokio_tungstenite::client_async("ws://localhost/", near).await.unwrap().0
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_says_nothing_for_ninety_seconds_is_let_go_with_1001() {
        let mut peer = peer().await;
        tokio::time::sleep(SOCKET_IDLE_TIMEOUT - Duration::from_secs(1)).await;
        peer.send(Frame::text(r#"{"type":"ping"}"#)).await.unwrap();
        assert_eq!(peer.next().await.unwrap().unwrap().to_text().unwrap(), r#"{"type":"pong"}"#);
        let heard = Instant::now();
        let Some(Ok(Frame::Close(Some(frame)))) = peer.next().await else { panic!("it was not closed") };
        assert_eq!(u16::from(frame.code), AWAY_CLOSE_CODE);
        let silent = heard.elapsed();
        assert!(
            silent >= SOCKET_IDLE_TIMEOUT && silent < SOCKET_IDLE_TIMEOUT + Duration::from_secs(2),
            "{silent:?}"
        );
    }
}
