//! One gateway connection, from the platform's side.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use futures_util::{SinkExt, StreamExt};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

use super::GatewayEnd;
use super::state::{DiscordState, GatewayOrder};

type GatewaySocket = WebSocketStream<TokioIo<Upgraded>>;

pub(super) async fn serve_gateway(state: Arc<DiscordState>, request: Request<Incoming>) {
    let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
    let (orders, mut ordered) = unbounded_channel();
    let hello = json!({ "op": 10, "d": { "heartbeat_interval": state.heartbeat_ms } });
    let mut token = String::new();
    let mut silent = false;
    if send_frame(&mut socket, &hello).await.is_none() {
        return;
    }
    loop {
        let goes_on = tokio::select! {
            frame = socket.next() => match frame {
                Some(Ok(Message::Text(text))) => {
                    let frame: Value = serde_json::from_str(&text).unwrap_or_default();
                    handle_frame(&state, &mut socket, &frame, &mut token, &orders, silent).await
                }
                Some(Ok(_)) => Some(()),
                _ => None,
            },
            order = ordered.recv() => match order {
                Some(GatewayOrder::Say(event)) => send_frame(&mut socket, &event).await,
                Some(GatewayOrder::End(GatewayEnd::Silence)) => {
                    silent = true;
                    Some(())
                }
                Some(GatewayOrder::End(end)) => end_connection(&mut socket, &mut ordered, end).await,
                None => None,
            },
        };
        if goes_on.is_none() {
            return;
        }
    }
}

async fn handle_frame(
    state: &DiscordState,
    socket: &mut GatewaySocket,
    frame: &Value,
    token: &mut String,
    orders: &UnboundedSender<GatewayOrder>,
    silent: bool,
) -> Option<()> {
    let data = &frame["d"];
    match frame["op"].as_u64()? {
        1 => {
            state.with_bot(token, |bot| bot.beaten = data.as_u64());
            if silent { Some(()) } else { send_frame(socket, &json!({ "op": 11 })).await }
        }
        2 => {
            data["token"].as_str()?.clone_into(token);
            match state.identify(token, orders.clone()) {
                true => Some(()),
                false => close_with_code(socket, 4004).await,
            }
        }
        6 => {
            data["token"].as_str()?.clone_into(token);
            match state.resume_session(token, &data["session_id"], data["seq"].as_u64()?, orders.clone()) {
                true => Some(()),
                false => send_frame(socket, &json!({ "op": 9, "d": false })).await,
            }
        }
        _ => Some(()),
    }
}

/// Ends the connection. `Silence` never gets here, because it leaves the connection open.
async fn end_connection(
    socket: &mut GatewaySocket,
    ordered: &mut UnboundedReceiver<GatewayOrder>,
    end: GatewayEnd,
) -> Option<()> {
    ordered.close();
    match end {
        GatewayEnd::Drop | GatewayEnd::Silence => None,
        GatewayEnd::Reconnect => send_last(socket, &json!({ "op": 7 })).await,
        GatewayEnd::Invalid { resumable } => send_last(socket, &json!({ "op": 9, "d": resumable })).await,
        GatewayEnd::Close(code) => close_with_code(socket, code).await,
    }
}

async fn send_last(socket: &mut GatewaySocket, frame: &Value) -> Option<()> {
    send_frame(socket, frame).await?;
    // Lets the client close the connection itself.
    let _ = tokio::time::timeout(Duration::from_secs(5), socket.next()).await;
    None
}

async fn close_with_code(socket: &mut GatewaySocket, code: u16) -> Option<()> {
    let _ = socket.close(Some(CloseFrame { code: code.into(), reason: "".into() })).await;
    None
}

async fn send_frame(socket: &mut GatewaySocket, frame: &Value) -> Option<()> {
    socket.send(Message::text(frame.to_string())).await.ok()
}
