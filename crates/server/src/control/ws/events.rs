//! `/ws/events`: events of the instances, such as sessions, turns and teams, as each instance records them.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use polyclaw_api::control::sockets::EventSocketQuery;
use polyclaw_control::observe::{EventPositions, InstanceEvent, InstanceEventFilter};
use polyclaw_domain::envelope::EnvelopeKindPattern;
use serde_json::{Value, json};

use super::super::connection_lifetime::ConnectionLifetime;
use super::super::state::ControlState;
use super::{ControlSocket, MAX_FRAME_BYTES, POLICY_CLOSE_CODE, SocketStep};
use crate::browser::SOCKET_PROTOCOL;
use crate::error::{Error, Result};
use crate::extract::QueryParams;
use crate::http::events::event_view;

/// The poll interval while there is a reader.
const EVENT_POLL_INTERVAL: Duration = Duration::from_millis(500);

fn event_filter(query: EventSocketQuery) -> Result<InstanceEventFilter> {
    let wrong = || Error::invalid_field("kind", "must be a kind such as turn.failed or turn.*");
    let kind = match &query.kind {
        Some(text) => Some(EnvelopeKindPattern::parse(text).ok_or_else(wrong)?),
        None => None,
    };
    Ok(InstanceEventFilter { instance: query.instance, session: query.session, kind })
}

/// Opens the socket. Frames: `snapshot` with the last `events`, then `event`. A peer may send `ping`.
pub async fn open_event_socket(
    State(app): State<ControlState>,
    which: Result<QueryParams<EventSocketQuery>>,
    until: ConnectionLifetime,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|why| Error::invalid_field("upgrade", why.body_text()))?;
    let upgrade = upgrade.protocols([SOCKET_PROTOCOL]).max_message_size(MAX_FRAME_BYTES);
    Ok(upgrade.on_upgrade(async move |socket| {
        let mut line = ControlSocket::new(&app, socket, until);
        match which.and_then(|QueryParams(which)| event_filter(which)) {
            Ok(interest) => stream_events(app, interest, line).await,
            Err(error) => line.close_with_error(&error).await,
        }
    }))
}

async fn stream_events(app: ControlState, interest: InstanceEventFilter, mut line: ControlSocket) {
    let mut places = EventPositions::default();
    let first = match app.control.read_new_events(&interest, &mut places).await {
        Ok(events) => events.into_iter().map(event_frame).collect::<Vec<Value>>(),
        Err(error) => return line.close_with_error(&error.into()).await,
    };
    if !line.send_frame(&json!({ "type": "snapshot", "events": first, "timestamp": app.control.now() })).await
    {
        return;
    }
    loop {
        match line.next_step(tokio::time::sleep(EVENT_POLL_INTERVAL)).await {
            Some(SocketStep::News(())) => match app.control.read_new_events(&interest, &mut places).await {
                Ok(events) => {
                    if !send_events(&mut line, events).await {
                        return;
                    }
                }
                Err(error) => return line.close_with_error(&error.into()).await,
            },
            Some(SocketStep::WithArchived(_)) => return line.close_with(POLICY_CLOSE_CODE).await,
            None => return,
        }
    }
}

async fn send_events(line: &mut ControlSocket, events: Vec<InstanceEvent>) -> bool {
    for event in events {
        let mut frame = event_frame(event);
        frame["type"] = "event".into();
        if !line.send_frame(&frame).await {
            return false;
        }
    }
    true
}

fn event_frame(event: InstanceEvent) -> Value {
    let mut frame = serde_json::to_value(event_view(event.event)).unwrap_or_default();
    frame["instance"] = json!({ "id": event.instance, "name": event.name });
    frame
}
