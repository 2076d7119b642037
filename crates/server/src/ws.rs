//! `GET /ws`: one socket for many sessions. Requests are answered in the order they came; frames flow in
//! between. Losing the socket loses nothing: turns run on, and a reader goes on from the last number it saw.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::access::May;
use crate::browser::SOCKET_PROTOCOL;
use crate::control::until::{End, Until};
use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::state::AppState;

mod call;
mod frame;
mod subscription;

pub use call::only_looks;
use subscription::Subscriptions;

const MAX_FRAME: usize = 1024 * 1024;
/// Events on their way to one socket; more than that waits in its subscriptions.
const QUEUE: usize = 16;
const PING: Duration = Duration::from_secs(20);
/// A peer that answers no ping for this long is gone.
const IDLE: Duration = Duration::from_secs(60);
/// A peer that takes nothing for this long is gone too.
const WRITE: Duration = Duration::from_secs(30);

/// Frames: `{type:"req",id,method,params}`, `{type:"res",id,ok,result|error}`, `{type:"event",seq,…}`. Methods:
/// subscribe, unsubscribe, watch (all sessions, without text in pieces), send, stop, command, approve. Events are
/// `Frame`s. A frame of more than 1 MiB closes the socket: images are sent by `POST /sessions/{key}/messages`.
#[utoipa::path(get, path = "/ws", tag = "sessions",
    responses((status = 101, description = "A WebSocket; see the frames above"), (status = 400, description = "No upgrade was asked for", body = crate::error::Problem)))]
pub async fn open(
    State(app): State<AppState>,
    by: May,
    Extension(metrics): Extension<Arc<Metrics>>,
    until: Until,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|why| Error::invalid("upgrade", why.body_text()))?;
    let upgrade = upgrade.protocols([SOCKET_PROTOCOL]).max_message_size(MAX_FRAME).max_frame_size(MAX_FRAME);
    Ok(upgrade.on_upgrade(async move |socket| {
        metrics.sockets.fetch_add(1, Ordering::Relaxed);
        run((app, by), socket, until).await;
        metrics.sockets.fetch_sub(1, Ordering::Relaxed);
    }))
}

async fn run((app, by): (AppState, May), mut socket: WebSocket, until: Until) {
    let (events, mut queue) = mpsc::channel(QUEUE);
    let mut subscriptions = Subscriptions::new(app.clone(), events);
    let mut ping = interval(PING);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = Instant::now();
    let over = until.over();
    tokio::pin!(over);
    let code = loop {
        let message = tokio::select! {
            received = socket.recv() => {
                heard = Instant::now();
                match received {
                    Some(Ok(Message::Text(text))) => call::answer(&app, by, &mut subscriptions, &text).await,
                    Some(Ok(Message::Binary(_))) => break close_code::UNSUPPORTED,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_))) | None => return,
                    Some(Err(error)) => return tracing::debug!(%error, "a socket broke"),
                }
            }
            Some(event) = queue.recv() => event.message(),
            _ = ping.tick() => {
                if heard.elapsed() > IDLE {
                    break close_code::AWAY;
                }
                Message::Ping(bytes::Bytes::new())
            }
            end = &mut over => break match end {
                End::Closing => close_code::RESTART,
                End::Revoked => end.code(),
            },
        };
        match timeout(WRITE, socket.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return tracing::debug!(%error, "a socket broke"),
            Err(_) => return tracing::info!("a socket takes nothing any more and is closed"),
        }
    };
    let farewell = Message::Close(Some(CloseFrame { code, reason: "".into() }));
    let _ = timeout(Duration::from_secs(1), socket.send(farewell)).await;
}
