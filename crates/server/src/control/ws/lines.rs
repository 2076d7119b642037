//! `/ws/instances/{id}/logs`: the last lines of a log, then new ones.

use std::path::PathBuf;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use polyclaw_api::control::sockets::LogSocketQuery;
use polyclaw_control::log::LogFollower;
use serde_json::json;

use super::super::connection_lifetime::ConnectionLifetime;
use super::super::logs::redact_lines;
use super::super::state::ControlState;
use super::{AWAY_CLOSE_CODE, ControlSocket, MAX_FRAME_BYTES, POLICY_CLOSE_CODE, SocketStep};
use crate::browser::SOCKET_PROTOCOL;
use crate::error::{Error, Result};
use crate::extract::{PathId, QueryParams};

const DEFAULT_BACKLOG_LINES: usize = 100;
const MAX_BACKLOG_LINES: usize = 1000;
/// The poll interval while there is a reader.
const LOG_POLL_INTERVAL: Duration = Duration::from_millis(400);

/// Opens the socket. Frames: `backlog`, then `lines` and `rotated`. A peer may send `ping`.
pub async fn open_log_socket(
    State(app): State<ControlState>,
    PathId(id): PathId,
    which: Result<QueryParams<LogSocketQuery>>,
    until: ConnectionLifetime,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|why| Error::invalid_field("upgrade", why.body_text()))?;
    let upgrade = upgrade.protocols([SOCKET_PROTOCOL]).max_message_size(MAX_FRAME_BYTES);
    Ok(upgrade.on_upgrade(async move |socket| {
        let mut line = ControlSocket::new(&app, socket, until);
        match find_log(&app, &id, which).await {
            Ok((log, count)) => stream_log(&app, log, count, line).await,
            Err(error) => line.close_with_error(&error).await,
        }
    }))
}

/// Returns the path of the log and the number of lines to send first.
async fn find_log(
    app: &ControlState,
    id: &str,
    which: Result<QueryParams<LogSocketQuery>>,
) -> Result<(PathBuf, usize)> {
    let QueryParams(which) = which?;
    Ok((
        app.control.log_path(id).await?,
        which.backlog.unwrap_or(DEFAULT_BACKLOG_LINES).min(MAX_BACKLOG_LINES),
    ))
}

async fn stream_log(app: &ControlState, log: PathBuf, count: usize, mut line: ControlSocket) {
    let (mut follow, backlog) = match LogFollower::with_backlog(log, count) {
        Ok(started) => started,
        Err(error) => return line.close_with_error(&super::super::logs::blocking_task_failed(error)).await,
    };
    let backlog = redact_lines(app, backlog);
    if !line.send_frame(&json!({ "type": "backlog", "count": backlog.len(), "lines": backlog })).await {
        return;
    }
    let mut pause = LOG_POLL_INTERVAL;
    loop {
        match line.next_step(tokio::time::sleep(pause)).await {
            Some(SocketStep::News(())) => {}
            Some(SocketStep::WithArchived(_)) => return line.close_with(POLICY_CLOSE_CODE).await,
            None => return,
        }
        let Ok(news) = follow.read_new() else { return line.close_with(AWAY_CLOSE_CODE).await };
        pause = if news.more { Duration::ZERO } else { LOG_POLL_INTERVAL };
        let lines = redact_lines(app, news.lines);
        let is_notified = lines.is_empty()
            || line.send_frame(&json!({ "type": "lines", "count": lines.len(), "lines": lines })).await;
        if !is_notified || news.rotated && !line.send_frame(&json!({ "type": "rotated" })).await {
            return;
        }
    }
}
