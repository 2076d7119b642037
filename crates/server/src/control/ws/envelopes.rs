//! `/ws/messages`: what happened to messages between instances, and what happens. Never what they say.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use polyclaw_store::registry::envelopes::EnvelopeEventFilter;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::super::messages::MessageEvent;
use super::super::state::ControlState;
use super::super::until::Until;
use super::{AWAY, LARGEST_FRAME, Line, Next, POLICY};
use crate::browser::SOCKET_PROTOCOL;
use crate::error::{Error, Result};
use crate::extract::Query;

/// A reader that can not keep up is shown everything anew this often, and not with every step it falls behind.
const CATCH_UP: Duration = Duration::from_millis(250);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// Messages from or to this one, by id or name.
    instance: Option<String>,
    correlation_id: Option<String>,
    /// A one-time code, for pages of other origins.
    #[serde(rename = "code")]
    _code: Option<String>,
}

/// Frames: `snapshot` with `recent_events`, then `message_event`. A peer may say `ping`.
pub async fn open(
    State(app): State<ControlState>,
    which: Result<Query<Which>>,
    until: Until,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|why| Error::invalid("upgrade", why.body_text()))?;
    let upgrade = upgrade.protocols([SOCKET_PROTOCOL]).max_message_size(LARGEST_FRAME);
    Ok(upgrade.on_upgrade(async move |socket| {
        let mut line = Line::new(&app, socket, until);
        match begun(&app, which).await {
            Ok(reader) => run(app, reader, line).await,
            Err(error) => line.fail(&error).await,
        }
    }))
}

/// Whose messages are told of.
async fn begun(app: &ControlState, which: Result<Query<Which>>) -> Result<EnvelopeEventFilter> {
    let Query(which) = which?;
    let instance = match &which.instance {
        Some(word) => Some(app.control.get(word).await?.id),
        None => None,
    };
    Ok(EnvelopeEventFilter { instance, correlation: which.correlation_id })
}

async fn run(app: ControlState, reader: EnvelopeEventFilter, mut line: Line) {
    // Listened to before the first look: what happens in between is told twice rather than not at all.
    let mut news = app.control.watch_messages();
    let mut behind = true;
    loop {
        if behind {
            match snapshot(&app, &reader).await {
                Ok(frame) if line.say(&frame).await => behind = false,
                Ok(_) => return,
                Err(error) => return line.fail(&error).await,
            }
        }
        match line.next(news.recv()).await {
            Some(Next::News(Ok(event))) if !reader.matches_event(&event) => {}
            Some(Next::News(Ok(event))) if line.say(&told(&MessageEvent::from(&*event))).await => {}
            Some(Next::News(Err(RecvError::Lagged(_)))) => {
                tokio::time::sleep(CATCH_UP).await;
                news = news.resubscribe();
                behind = true;
            }
            Some(Next::News(Err(RecvError::Closed))) => return line.close(AWAY).await,
            Some(Next::WithArchived(_)) => return line.close(POLICY).await,
            Some(Next::News(Ok(_))) | None => return,
        }
    }
}

async fn snapshot(app: &ControlState, reader: &EnvelopeEventFilter) -> Result<Value> {
    let recent = app.control.recent_messages(reader).await?;
    let events: Vec<MessageEvent> = recent.iter().map(MessageEvent::from).collect();
    Ok(json!({ "type": "snapshot", "recent_events": events, "timestamp": app.control.now() }))
}

fn told(event: &MessageEvent) -> Value {
    let mut frame = serde_json::to_value(event).unwrap_or_default();
    frame["type"] = "message_event".into();
    frame
}
