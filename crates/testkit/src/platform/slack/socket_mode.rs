//! One socket of an app.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State as Shared};
use axum::http::Response;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;

use super::{SlackState, SocketOrder};
use crate::platform::state::lock;

pub(super) async fn open_socket(
    Shared(state): Shared<Arc<SlackState>>,
    Path(app): Path<String>,
    upgrade: WebSocketUpgrade,
) -> Response<Body> {
    upgrade.on_upgrade(move |socket| async move {
        let orders = state.orders.subscribe();
        let _ = run_socket(&state, &app, socket, orders).await;
    })
}

/// Serves a socket. Ends with an error when the app has disconnected.
async fn run_socket(
    state: &SlackState,
    app: &str,
    mut socket: WebSocket,
    mut orders: Receiver<SocketOrder>,
) -> Result<(), axum::Error> {
    socket.send(text_message(&json!({ "type": "hello", "num_connections": 1 }))).await?;
    state.links.fetch_add(1, Ordering::SeqCst);
    state.board.notify_change();
    for body in pending_envelopes(state, app) {
        socket.send(text_message(&body)).await?;
    }
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Ok(SocketOrder::Send(id)) => {
                    if let Some(body) = find_envelope(state, app, &id) {
                        socket.send(text_message(&body)).await?;
                    }
                }
                Ok(SocketOrder::Leave(reason)) => {
                    socket.send(text_message(&json!({ "type": "disconnect", "reason": reason }))).await?;
                }
                Ok(SocketOrder::Hang) => std::future::pending().await,
                Ok(SocketOrder::Drop) | Err(_) => return Ok(()),
            },
            received = socket.recv() => match received {
                Some(Ok(Message::Text(answer))) => acknowledge_envelope(state, &answer),
                Some(Ok(_)) => {}
                _ => return Ok(()),
            },
        }
    }
}

fn text_message(body: &Value) -> Message {
    Message::Text(body.to_string().into())
}

fn pending_envelopes(state: &SlackState, app: &str) -> Vec<Value> {
    let envelopes = lock(&state.envelopes);
    let waiting = envelopes.iter().filter(|one| one.app == app && !one.acknowledged);
    waiting.map(|one| one.body.clone()).collect()
}

fn find_envelope(state: &SlackState, app: &str, id: &str) -> Option<Value> {
    let envelopes = lock(&state.envelopes);
    envelopes.iter().find(|one| one.app == app && one.id == id).map(|one| one.body.clone())
}

fn acknowledge_envelope(state: &SlackState, answer: &str) {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    for one in lock(&state.envelopes).iter_mut().filter(|one| answer["envelope_id"] == one.id) {
        one.acknowledged = true;
    }
    state.board.notify_change();
}
