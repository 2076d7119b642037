//! `/ws/instances`: the instances and their changes.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::response::Response;
use polyclaw_api::control::instances::InstanceView;
use polyclaw_api::control::sockets::FleetSocketQuery;
use polyclaw_control::InstanceChange;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::super::connection_lifetime::ConnectionLifetime;
use super::super::instances::instance_view;
use super::super::state::ControlState;
use super::{AWAY_CLOSE_CODE, ControlSocket, MAX_FRAME_BYTES, SocketStep};
use crate::browser::SOCKET_PROTOCOL;
use crate::error::{Error, Result};
use crate::extract::QueryParams;

/// Opens the socket. Frames: `snapshot`, then `status_changed`, `instance_created`, `instance_archived`,
/// `instance_unarchived` and `instance_deleted`. A peer may send `ping` and `set_include_archived`.
pub async fn open_fleet_socket(
    State(app): State<ControlState>,
    which: Result<QueryParams<FleetSocketQuery>>,
    until: ConnectionLifetime,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|why| Error::invalid_field("upgrade", why.body_text()))?;
    let upgrade = upgrade.protocols([SOCKET_PROTOCOL]).max_message_size(MAX_FRAME_BYTES);
    Ok(upgrade.on_upgrade(async move |socket| match which {
        Ok(_) => stream_fleet(app, socket, until).await,
        Err(error) => ControlSocket::new(&app, socket, until).close_with_error(&error).await,
    }))
}

async fn stream_fleet(app: ControlState, socket: WebSocket, until: ConnectionLifetime) {
    let (mut line, mut with_archived) = (ControlSocket::new(&app, socket, until), false);
    // Subscribes before the snapshot: a change in between is sent twice rather than missed.
    let mut news = app.control.subscribe_changes();
    let mut behind = true;
    loop {
        if behind {
            match fleet_snapshot(&app, with_archived).await {
                Ok(frame) if line.send_frame(&frame).await => behind = false,
                Ok(_) => return,
                Err(error) => return line.close_with_error(&error).await,
            }
        }
        match line.next_step(news.recv()).await {
            Some(SocketStep::News(Ok(change))) if line.send_frame(&change_frame(&change)).await => {}
            Some(SocketStep::News(Err(RecvError::Lagged(_)))) => behind = true,
            Some(SocketStep::News(Err(RecvError::Closed))) => return line.close_with(AWAY_CLOSE_CODE).await,
            Some(SocketStep::WithArchived(value)) => (with_archived, behind) = (value, true),
            Some(SocketStep::News(Ok(_))) | None => return,
        }
    }
}

async fn fleet_snapshot(app: &ControlState, with_archived: bool) -> Result<Value> {
    let views = app.control.list_instances(with_archived).await?;
    let instances: Vec<InstanceView> = views.into_iter().map(instance_view).collect();
    Ok(json!({
        "type": "snapshot",
        "instances": instances,
        "include_archived": with_archived,
        "timestamp": app.control.now(),
    }))
}

fn change_frame(change: &Arc<InstanceChange>) -> Value {
    let (kind, view) = match &**change {
        InstanceChange::StatusChanged { instance } => ("status_changed", instance),
        InstanceChange::InstanceCreated { instance } => ("instance_created", instance),
        InstanceChange::InstanceArchived { instance } => ("instance_archived", instance),
        InstanceChange::InstanceUnarchived { instance } => ("instance_unarchived", instance),
        InstanceChange::InstanceDeleted { instance } => ("instance_deleted", instance),
    };
    json!({ "type": kind, "instance": instance_view(view.clone()) })
}
