//! `GET /ws`: one socket for many sessions. Requests are answered in order, with frames in between. Losing the socket
//! loses nothing: turns continue, and a reader resumes from the last frame number it saw.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use polyclaw_api::error::ErrorBody;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::access::AccessLevel;
use crate::browser::SOCKET_PROTOCOL;
use crate::control::connection_lifetime::{ConnectionEnd, ConnectionLifetime};
use crate::error::{Error, Result};
use crate::metrics::HttpMetrics;
use crate::state::AppState;

mod call;
mod frame;
mod subscription;

pub use call::is_read_only;
use subscription::SocketSubscriptions;

const MAX_FRAME_BYTES: usize = 1024 * 1024;
/// Queued events of a socket. More wait in its subscriptions.
const EVENT_QUEUE_CAPACITY: usize = 16;
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// A peer that answers no ping for this long counts as gone.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// A peer that does not read for this long also counts as gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens a WebSocket for requests and live events of many sessions.
/// Frames: `{type:"req",id,method,params}`, `{type:"res",id,ok,result|error}`, `{type:"event",seq,…}`. Methods:
/// `subscribe`, `unsubscribe`, `watch` (all sessions, without partial text), `send`, `stop`, `command`, `approve`.
/// Events are `Frame`s. A frame larger than 1 MiB closes the socket; send images with
/// `POST /sessions/{key}/messages`.
#[utoipa::path(get, path = "/ws", tag = "sessions",
    responses((status = 101, description = "A WebSocket; see the frames above"), (status = 400, description = "The request is not a WebSocket upgrade", body = ErrorBody)))]
pub async fn open_socket(
    State(app): State<AppState>,
    by: AccessLevel,
    Extension(metrics): Extension<Arc<HttpMetrics>>,
    until: ConnectionLifetime,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|why| Error::invalid_field("upgrade", why.body_text()))?;
    let upgrade = upgrade
        .protocols([SOCKET_PROTOCOL])
        .max_message_size(MAX_FRAME_BYTES)
        .max_frame_size(MAX_FRAME_BYTES);
    Ok(upgrade.on_upgrade(async move |socket| {
        metrics.sockets.fetch_add(1, Ordering::Relaxed);
        serve_socket((app, by), socket, until).await;
        metrics.sockets.fetch_sub(1, Ordering::Relaxed);
    }))
}

async fn serve_socket((app, by): (AppState, AccessLevel), mut socket: WebSocket, until: ConnectionLifetime) {
    let (events, mut queue) = mpsc::channel(EVENT_QUEUE_CAPACITY);
    let mut subscriptions = SocketSubscriptions::new(app.clone(), events);
    let mut ping = interval(PING_INTERVAL);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Instant::now();
    let over = until.wait_for_end();
    tokio::pin!(over);
    let code = loop {
        let message = tokio::select! {
            received = socket.recv() => {
                heard = Instant::now();
                match received {
                    Some(Ok(Message::Text(text))) => call::answer_frame(&app, by, &mut subscriptions, &text).await,
                    Some(Ok(Message::Binary(_))) => break close_code::UNSUPPORTED,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_))) | None => return,
                    Some(Err(error)) => return tracing::debug!(%error, "socket broke"),
                }
            }
            Some(event) = queue.recv() => event.to_message(),
            _ = ping.tick() => {
                if heard.elapsed() > IDLE_TIMEOUT {
                    break close_code::AWAY;
                }
                Message::Ping(bytes::Bytes::new())
            }
            end = &mut over => break match end {
                ConnectionEnd::Closing => close_code::RESTART,
                ConnectionEnd::Revoked => end.close_code(),
            },
        };
        match timeout(WRITE_TIMEOUT, socket.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return tracing::debug!(%error, "socket broke"),
            Err(_) => return tracing::info!("peer does not read; closing its socket"),
        }
    };
    let farewell = Message::Close(Some(CloseFrame { code, reason: "".into() }));
    let _ = timeout(Duration::from_secs(1), socket.send(farewell)).await;
}
