//! `/ws/messages`: events of messages between instances, without their content.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use polyclaw_api::control::messages::EnvelopeEventView;
use polyclaw_api::control::sockets::EnvelopeSocketQuery;
use polyclaw_store::registry::envelopes::EnvelopeEventFilter;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::super::connection_lifetime::ConnectionLifetime;
use super::super::messages::envelope_event_view;
use super::super::state::ControlState;
use super::{AWAY_CLOSE_CODE, ControlSocket, MAX_FRAME_BYTES, POLICY_CLOSE_CODE, SocketStep};
use crate::browser::SOCKET_PROTOCOL;
use crate::error::{Error, Result};
use crate::extract::QueryParams;

/// The interval at which a slow reader gets a new snapshot.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(250);

/// Opens the socket. Frames: `snapshot` with `recent_events`, then `message_event`. A peer may send `ping`.
pub async fn open_envelope_socket(
    State(app): State<ControlState>,
    which: Result<QueryParams<EnvelopeSocketQuery>>,
    until: ConnectionLifetime,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|why| Error::invalid_field("upgrade", why.body_text()))?;
    let upgrade = upgrade.protocols([SOCKET_PROTOCOL]).max_message_size(MAX_FRAME_BYTES);
    Ok(upgrade.on_upgrade(async move |socket| {
        let mut line = ControlSocket::new(&app, socket, until);
        match start_reader(&app, which).await {
            Ok(reader) => stream_envelopes(app, reader, line).await,
            Err(error) => line.close_with_error(&error).await,
        }
    }))
}

/// Returns the filter of the reader.
async fn start_reader(
    app: &ControlState,
    which: Result<QueryParams<EnvelopeSocketQuery>>,
) -> Result<EnvelopeEventFilter> {
    let QueryParams(which) = which?;
    let instance = match &which.instance {
        Some(word) => Some(app.control.get(word).await?.id),
        None => None,
    };
    Ok(EnvelopeEventFilter { instance, correlation: which.correlation_id })
}

async fn stream_envelopes(app: ControlState, reader: EnvelopeEventFilter, mut line: ControlSocket) {
    // Subscribes before the snapshot: an event in between is sent twice rather than missed.
    let mut news = app.control.watch_messages();
    let mut behind = true;
    loop {
        if behind {
            match envelope_snapshot(&app, &reader).await {
                Ok(frame) if line.send_frame(&frame).await => behind = false,
                Ok(_) => return,
                Err(error) => return line.close_with_error(&error).await,
            }
        }
        match line.next_step(news.recv()).await {
            Some(SocketStep::News(Ok(event))) if !reader.matches_event(&event) => {}
            Some(SocketStep::News(Ok(event)))
                if line.send_frame(&event_frame(&envelope_event_view(&event))).await => {}
            Some(SocketStep::News(Err(RecvError::Lagged(_)))) => {
                tokio::time::sleep(SNAPSHOT_INTERVAL).await;
                news = news.resubscribe();
                behind = true;
            }
            Some(SocketStep::News(Err(RecvError::Closed))) => return line.close_with(AWAY_CLOSE_CODE).await,
            Some(SocketStep::WithArchived(_)) => return line.close_with(POLICY_CLOSE_CODE).await,
            Some(SocketStep::News(Ok(_))) | None => return,
        }
    }
}

async fn envelope_snapshot(app: &ControlState, reader: &EnvelopeEventFilter) -> Result<Value> {
    let recent = app.control.recent_messages(reader).await?;
    let events: Vec<EnvelopeEventView> = recent.iter().map(envelope_event_view).collect();
    Ok(json!({ "type": "snapshot", "recent_events": events, "timestamp": app.control.now() }))
}

fn event_frame(event: &EnvelopeEventView) -> Value {
    let mut frame = serde_json::to_value(event).unwrap_or_default();
    frame["type"] = "message_event".into();
    frame
}
