//! The event stream: events since a position, and history before one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, State as Shared};
use axum::http::Response;
use serde_json::{Value, json};

use super::rest::{MatrixCaller, refusal_response, scripted_outcome};
use super::{HomeserverData, MatrixState};
use crate::platform::board::{self, apply_outcome};
use crate::platform::server::ConnectionCut;
use crate::platform::state::lock;

type SyncQuery = Query<BTreeMap<String, String>>;

/// Waits for new events up to the requested timeout.
pub(super) async fn sync(
    Shared(state): Shared<Arc<MatrixState>>,
    Query(asked): SyncQuery,
    MatrixCaller { user, .. }: MatrixCaller,
) -> Result<Response<Body>, ConnectionCut> {
    let since = asked.get("since").and_then(|since| parse_position(since));
    let wait = asked.get("timeout").and_then(|ms| ms.parse().ok()).unwrap_or(0);
    if let Some(since) = since {
        let mut changes = state.board.watch_changes();
        let is_new = || lock(&state.world).stream.len() > since;
        let news = async { while !is_new() && changes.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(Duration::from_millis(wait), news).await;
    }
    let outcome = scripted_outcome(&state, &user, "sync");
    apply_outcome(
        outcome,
        || board::json_response(200, &lock(&state.world).sync_response(&user, since)),
        refusal_response,
    )
    .await
}

/// Returns history backwards from one position to another.
pub(super) async fn messages(
    Shared(state): Shared<Arc<MatrixState>>,
    Path(room): Path<String>,
    Query(asked): SyncQuery,
    MatrixCaller { user, .. }: MatrixCaller,
) -> Result<Response<Body>, ConnectionCut> {
    let at = |name: &str| asked.get(name).and_then(|token| parse_position(token)).unwrap_or(0);
    let tell = || board::json_response(200, &lock(&state.world).messages_page(&room, at("from"), at("to")));
    apply_outcome(scripted_outcome(&state, &user, "messages"), tell, refusal_response).await
}

/// Parses a position token: `s` and the number of earlier events.
fn parse_position(token: &str) -> Option<usize> {
    token.strip_prefix('s')?.parse().ok()
}

impl HomeserverData {
    fn sync_response(&self, user: &str, since: Option<usize>) -> Value {
        let (mut join, mut invite) = (json!({}), json!({}));
        let mine = self.members.iter().filter(|((_, member), _)| member == user);
        for ((room, _), how) in mine {
            if how == "join" {
                join[room] = json!({ "timeline": self.room_timeline(user, room, since.unwrap_or(0)) });
            }
            if how == "invite" && self.last_membership_change(room, user, since.unwrap_or(0)).is_some() {
                let mut events: Vec<Value> = self
                    .last_membership_change(room, user, 0)
                    .map(|(_, event)| event.clone())
                    .into_iter()
                    .collect();
                if self.sealed.contains(room) {
                    events.push(json!({ "type": "m.room.encryption", "state_key": "" }));
                }
                invite[room] = json!({ "invite_state": { "events": events } });
            }
        }
        let next = format!("s{}", self.stream.len());
        json!({ "next_batch": next, "rooms": { "join": join, "invite": invite } })
    }

    fn messages_page(&self, room: &str, from: usize, to: usize) -> Value {
        let all = self.stream.iter().enumerate().take(from).skip(to).filter(|(_, (place, _))| place == room);
        let page: Vec<_> = all.rev().take(self.page).collect();
        let chunk: Vec<&Value> = page.iter().map(|(_, (_, event))| event).collect();
        let mut answer = json!({ "chunk": chunk, "start": format!("s{from}") });
        if let Some((last, _)) = page.last() {
            answer["end"] = json!(format!("s{last}"));
        }
        answer
    }

    /// Returns the user's last membership change in a room at or after a position.
    fn last_membership_change(&self, room: &str, user: &str, since: usize) -> Option<(usize, &Value)> {
        let is_own = |event: &Value| event["type"] == "m.room.member" && event["state_key"] == user;
        let mut events = self.stream.iter().enumerate().skip(since);
        events.rfind(|(_, (place, event))| place == room && is_own(event)).map(|(at, (_, event))| (at, event))
    }

    /// Returns the timeline of a room. A user who has just joined also gets earlier messages.
    fn room_timeline(&self, user: &str, room: &str, since: usize) -> Value {
        let since = if self.last_membership_change(room, user, since).is_some() { 0 } else { since };
        let all = self.stream.iter().enumerate().skip(since).filter(|(_, (place, _))| place == room);
        let mut page: Vec<_> = all.clone().rev().take(self.page).collect();
        page.reverse();
        let events: Vec<&Value> = page.iter().map(|(_, (_, event))| event).collect();
        let first = page.first().map_or(since, |(at, _)| *at);
        json!({ "events": events, "limited": all.count() > page.len(), "prev_batch": format!("s{first}") })
    }
}
