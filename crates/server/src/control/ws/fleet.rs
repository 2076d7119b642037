//! `/ws/instances`: what there is, and what changes.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::response::Response;
use polyclaw_control::Change;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::super::instances::InstanceView;
use super::super::state::ControlState;
use super::super::until::Until;
use super::{AWAY, LARGEST_FRAME, Line, Next};
use crate::browser::SOCKET_PROTOCOL;
use crate::error::{Error, Result};
use crate::extract::Query;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// A one-time code, for pages of other origins.
    #[serde(rename = "code")]
    _code: Option<String>,
}

/// Frames: `snapshot`, then `status_changed`, `instance_created`, `instance_archived`, `instance_unarchived` and
/// `instance_deleted`. A peer may say `ping` and `set_include_archived`.
pub async fn open(
    State(app): State<ControlState>,
    which: Result<Query<Which>>,
    until: Until,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|why| Error::invalid("upgrade", why.body_text()))?;
    let upgrade = upgrade.protocols([SOCKET_PROTOCOL]).max_message_size(LARGEST_FRAME);
    Ok(upgrade.on_upgrade(async move |socket| match which {
        Ok(_) => run(app, socket, until).await,
        Err(error) => Line::new(&app, socket, until).fail(&error).await,
    }))
}

async fn run(app: ControlState, socket: WebSocket, until: Until) {
    let (mut line, mut with_archived) = (Line::new(&app, socket, until), false);
    // Listened to before the first look: what changes in between is told twice rather than not at all.
    let mut news = app.control.watch();
    let mut behind = true;
    loop {
        if behind {
            match snapshot(&app, with_archived).await {
                Ok(frame) if line.say(&frame).await => behind = false,
                Ok(_) => return,
                Err(error) => return line.fail(&error).await,
            }
        }
        match line.next(news.recv()).await {
            Some(Next::News(Ok(change))) if line.say(&told(&change)).await => {}
            Some(Next::News(Err(RecvError::Lagged(_)))) => behind = true,
            Some(Next::News(Err(RecvError::Closed))) => return line.close(AWAY).await,
            Some(Next::WithArchived(value)) => (with_archived, behind) = (value, true),
            Some(Next::News(Ok(_))) | None => return,
        }
    }
}

async fn snapshot(app: &ControlState, with_archived: bool) -> Result<Value> {
    let views = app.control.list(with_archived).await?;
    let instances: Vec<InstanceView> = views.into_iter().map(InstanceView::from).collect();
    Ok(json!({
        "type": "snapshot",
        "instances": instances,
        "include_archived": with_archived,
        "timestamp": app.control.now(),
    }))
}

fn told(change: &Arc<Change>) -> Value {
    let (kind, view) = match &**change {
        Change::StatusChanged { instance } => ("status_changed", instance),
        Change::InstanceCreated { instance } => ("instance_created", instance),
        Change::InstanceArchived { instance } => ("instance_archived", instance),
        Change::InstanceUnarchived { instance } => ("instance_unarchived", instance),
        Change::InstanceDeleted { instance } => ("instance_deleted", instance),
    };
    json!({ "type": kind, "instance": InstanceView::from(view.clone()) })
}
