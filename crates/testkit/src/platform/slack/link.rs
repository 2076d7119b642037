//! One socket of an app.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State as Shared};
use axum::http::Response;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;

use super::{Order, State};
use crate::platform::state::lock;

pub(super) async fn open(
    Shared(state): Shared<Arc<State>>,
    Path(app): Path<String>,
    upgrade: WebSocketUpgrade,
) -> Response<Body> {
    upgrade.on_upgrade(move |socket| async move {
        let orders = state.orders.subscribe();
        let _ = converse(&state, &app, socket, orders).await;
    })
}

/// Ends with an error when the app has gone.
async fn converse(
    state: &State,
    app: &str,
    mut socket: WebSocket,
    mut orders: Receiver<Order>,
) -> Result<(), axum::Error> {
    socket.send(text(&json!({ "type": "hello", "num_connections": 1 }))).await?;
    state.links.fetch_add(1, Ordering::SeqCst);
    state.board.changed();
    for body in waiting(state, app) {
        socket.send(text(&body)).await?;
    }
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Ok(Order::Send(id)) => {
                    if let Some(body) = envelope(state, app, &id) {
                        socket.send(text(&body)).await?;
                    }
                }
                Ok(Order::Leave(reason)) => {
                    socket.send(text(&json!({ "type": "disconnect", "reason": reason }))).await?;
                }
                Ok(Order::Hang) => std::future::pending().await,
                Ok(Order::Drop) | Err(_) => return Ok(()),
            },
            received = socket.recv() => match received {
                Some(Ok(Message::Text(answer))) => acknowledge(state, &answer),
                Some(Ok(_)) => {}
                _ => return Ok(()),
            },
        }
    }
}

fn text(body: &Value) -> Message {
    Message::Text(body.to_string().into())
}

fn waiting(state: &State, app: &str) -> Vec<Value> {
    let envelopes = lock(&state.envelopes);
    let waiting = envelopes.iter().filter(|one| one.app == app && !one.acknowledged);
    waiting.map(|one| one.body.clone()).collect()
}

fn envelope(state: &State, app: &str, id: &str) -> Option<Value> {
    let envelopes = lock(&state.envelopes);
    envelopes.iter().find(|one| one.app == app && one.id == id).map(|one| one.body.clone())
}

fn acknowledge(state: &State, answer: &str) {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    for one in lock(&state.envelopes).iter_mut().filter(|one| answer["envelope_id"] == one.id) {
        one.acknowledged = true;
    }
    state.board.changed();
}
