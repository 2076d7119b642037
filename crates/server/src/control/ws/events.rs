//! `/ws/events`: what happens in the instances: sessions, turns, teams and more, as they record it.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use polyclaw_control::observe::{Happened, Interest, Places};
use polyclaw_domain::envelope::EnvelopeKindPattern;
use polyclaw_domain::session_key::SessionKey;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::state::ControlState;
use super::super::until::Until;
use super::{LARGEST_FRAME, Line, Next, POLICY};
use crate::browser::SOCKET_PROTOCOL;
use crate::error::{Error, Result};
use crate::extract::Query;
use crate::http::events::EventView;

/// While somebody reads.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// By id or name; all if not given.
    instance: Option<String>,
    session: Option<SessionKey>,
    /// One kind, or all below one: `turn.*`.
    kind: Option<String>,
    /// A one-time code, for pages of other origins.
    #[serde(rename = "code")]
    _code: Option<String>,
}

impl Which {
    fn read(self) -> Result<Interest> {
        let wrong = || Error::invalid("kind", "such as turn.failed or turn.*");
        let kind = match &self.kind {
            Some(text) => Some(EnvelopeKindPattern::parse(text).ok_or_else(wrong)?),
            None => None,
        };
        Ok(Interest { instance: self.instance, session: self.session, kind })
    }
}

/// Frames: `snapshot` with the last `events`, then `event`. A peer may say `ping`.
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
        match which.and_then(|Query(which)| which.read()) {
            Ok(interest) => run(app, interest, line).await,
            Err(error) => line.fail(&error).await,
        }
    }))
}

async fn run(app: ControlState, interest: Interest, mut line: Line) {
    let mut places = Places::default();
    let first = match app.control.happened(&interest, &mut places).await {
        Ok(events) => events.into_iter().map(shown).collect::<Vec<Value>>(),
        Err(error) => return line.fail(&error.into()).await,
    };
    if !line.say(&json!({ "type": "snapshot", "events": first, "timestamp": app.control.now() })).await {
        return;
    }
    loop {
        match line.next(tokio::time::sleep(LOOK_EVERY)).await {
            Some(Next::News(())) => match app.control.happened(&interest, &mut places).await {
                Ok(events) => {
                    if !tell(&mut line, events).await {
                        return;
                    }
                }
                Err(error) => return line.fail(&error.into()).await,
            },
            Some(Next::WithArchived(_)) => return line.close(POLICY).await,
            None => return,
        }
    }
}

async fn tell(line: &mut Line, events: Vec<Happened>) -> bool {
    for event in events {
        let mut frame = shown(event);
        frame["type"] = "event".into();
        if !line.say(&frame).await {
            return false;
        }
    }
    true
}

fn shown(event: Happened) -> Value {
    let mut frame = serde_json::to_value(EventView::from(event.event)).unwrap_or_default();
    frame["instance"] = json!({ "id": event.instance, "name": event.name });
    frame
}
