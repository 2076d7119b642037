//! `/ws/instances/{id}/logs`: the last lines, then each new one.

use std::path::PathBuf;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use polyclaw_control::log::Follow;
use serde::Deserialize;
use serde_json::json;

use super::super::logs::clean;
use super::super::state::ControlState;
use super::super::until::Until;
use super::{AWAY, LARGEST_FRAME, Line, Next, POLICY};
use crate::browser::SOCKET_PROTOCOL;
use crate::error::{Error, Result};
use crate::extract::{Id, Query};

const USUAL: usize = 100;
const MOST: usize = 1000;
/// While somebody reads.
const LOOK_EVERY: Duration = Duration::from_millis(400);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    backlog: Option<usize>,
    /// A one-time code, for pages of other origins.
    #[serde(rename = "code")]
    _code: Option<String>,
}

/// Frames: `backlog`, then `lines` and `rotated`. A peer may say `ping`.
pub async fn open(
    State(app): State<ControlState>,
    Id(id): Id,
    which: Result<Query<Which>>,
    until: Until,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|why| Error::invalid("upgrade", why.body_text()))?;
    let upgrade = upgrade.protocols([SOCKET_PROTOCOL]).max_message_size(LARGEST_FRAME);
    Ok(upgrade.on_upgrade(async move |socket| {
        let mut line = Line::new(&app, socket, until);
        match begun(&app, &id, which).await {
            Ok((log, count)) => run(&app, log, count, line).await,
            Err(error) => line.fail(&error).await,
        }
    }))
}

/// Which log, and how much of it is shown first.
async fn begun(app: &ControlState, id: &str, which: Result<Query<Which>>) -> Result<(PathBuf, usize)> {
    let Query(which) = which?;
    Ok((app.control.log_of(id).await?, which.backlog.unwrap_or(USUAL).min(MOST)))
}

async fn run(app: &ControlState, log: PathBuf, count: usize, mut line: Line) {
    let (mut follow, backlog) = match Follow::with_backlog(log, count) {
        Ok(begun) => begun,
        Err(error) => return line.fail(&super::super::logs::blocking_failed(error)).await,
    };
    let backlog = clean(app, backlog);
    if !line.say(&json!({ "type": "backlog", "count": backlog.len(), "lines": backlog })).await {
        return;
    }
    let mut pause = LOOK_EVERY;
    loop {
        match line.next(tokio::time::sleep(pause)).await {
            Some(Next::News(())) => {}
            Some(Next::WithArchived(_)) => return line.close(POLICY).await,
            None => return,
        }
        let Ok(news) = follow.look() else { return line.close(AWAY).await };
        pause = if news.more { Duration::ZERO } else { LOOK_EVERY };
        let lines = clean(app, news.lines);
        let told = lines.is_empty()
            || line.say(&json!({ "type": "lines", "count": lines.len(), "lines": lines })).await;
        if !told || news.rotated && !line.say(&json!({ "type": "rotated" })).await {
            return;
        }
    }
}
