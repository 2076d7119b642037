//! Sockets of the control plane. Each sends a snapshot and then changes. A reader that falls behind gets a new
//! snapshot, so it never misses a change.

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
/// A peer that sends nothing for this long counts as gone, unless configured otherwise.
pub const SOCKET_IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// A peer that does not read for this long also counts as gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Commands that peers may send.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum PeerCommand {
    Ping,
    SetIncludeArchived { value: bool },
}

/// What a peer sent.
enum PeerInput {
    Word(PeerCommand),
    /// A ping or pong: the peer is alive.
    Alive,
    Wrong,
    Gone,
}

/// What happened next on a socket.
enum SocketStep<T> {
    News(T),
    /// The peer wants archived instances to be included or not.
    WithArchived(bool),
}

/// The server's end of a socket.
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

    /// Waits for news and handles the peer's input meanwhile. Returns `None` when the socket is closed.
    async fn next_step<T>(&mut self, news: impl Future<Output = T>) -> Option<SocketStep<T>> {
        let over = self.lifetime.clone().wait_for_end();
        tokio::pin!(over, news);
        let end = loop {
            let deadline = self.last_received + self.idle_timeout;
            tokio::select! {
                // Checked first, so that a revoked reader gets nothing more.
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
                // An idle peer is closed like at a server shutdown.
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

    /// Sends a frame. Returns whether that succeeded.
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

    /// Sends the reason, if there is one to state, and closes.
    async fn close_for(&mut self, end: ConnectionEnd) {
        if let Some(frame) = end.error_frame() {
            self.send_last(Message::Text(frame.to_string().into())).await;
        }
        self.close_with(end.close_code()).await;
    }

    /// Sends a last message without waiting long for a peer that does not read.
    async fn send_last(&mut self, word: Message) {
        let _ = timeout(Duration::from_secs(1), self.socket.send(word)).await;
    }

    /// Sends an error and closes with the matching code.
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

    /// A client of a socket without news, over an in-memory pipe, so that the test controls the time.
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
    async fn silent_websocket_peer_is_closed_after_idle_timeout() {
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
