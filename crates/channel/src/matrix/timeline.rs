//! Sync responses, and the history that a limited timeline leaves out.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::account::MatrixAccount;
use super::api::{MatrixRequest, MatrixRequestError};
use super::event::MatrixEvent;

/// Maximum events per room in one sync. Kept small, so that responses stay readable when many rooms are busy.
const SYNC_PAGE_SIZE: u32 = 20;
/// Maximum pages of 100 events that are read back after a limited sync.
const MAX_HISTORY_PAGES: usize = 20;

#[derive(Debug, Deserialize)]
pub(super) struct SyncResponse {
    pub next_batch: String,
    #[serde(default)]
    pub rooms: SyncRooms,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SyncRooms {
    pub join: BTreeMap<String, JoinedRoom>,
    pub invite: BTreeMap<String, InvitedRoom>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct JoinedRoom {
    pub timeline: RoomTimeline,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RoomTimeline {
    events: Vec<Value>,
    /// Events between this sync and the previous one are missing.
    pub limited: bool,
    prev_batch: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct InvitedRoom {
    invite_state: InviteState,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InviteState {
    events: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct MessagesPage {
    chunk: Vec<Value>,
    end: Option<String>,
}

/// The event types that are requested.
pub(super) fn sync_filter() -> String {
    let nothing = json!({ "types": [] });
    let room = json!({
        "timeline": { "limit": SYNC_PAGE_SIZE, "types": event_types() },
        "state": { "types": [] },
        "ephemeral": nothing,
        "account_data": nothing,
    });
    json!({ "room": room, "presence": nothing, "account_data": nothing }).to_string()
}

fn event_types() -> [&'static str; 3] {
    ["m.room.message", "m.room.member", "m.room.encrypted"]
}

fn parse_events(events: &[Value]) -> impl DoubleEndedIterator<Item = MatrixEvent> {
    events.iter().filter_map(|event| MatrixEvent::deserialize(event).ok())
}

impl InvitedRoom {
    pub fn events(&self) -> Vec<MatrixEvent> {
        parse_events(&self.invite_state.events).collect()
    }
}

impl RoomTimeline {
    /// Returns all events since the previous sync, oldest first. If this account was just invited or joined, returns
    /// only events from then on.
    pub async fn complete_events(
        &self,
        account: &MatrixAccount,
        room: &str,
        since: &str,
    ) -> Result<Vec<MatrixEvent>, MatrixRequestError> {
        let mut events: Vec<_> = parse_events(&self.events).collect();
        let own = &account.settings.user_id;
        if let Some(start) = events.iter().position(|event| event.admits_user(own)) {
            return Ok(events.split_off(start));
        }
        if let Some(from) = self.prev_batch.as_deref().filter(|_| self.limited) {
            let mut whole = account.fetch_gap(room, from, since).await?;
            whole.append(&mut events);
            return Ok(whole);
        }
        Ok(events)
    }
}

impl MatrixAccount {
    /// Fetches the events between two positions, oldest first.
    async fn fetch_gap(
        &self,
        room: &str,
        from: &str,
        to: &str,
    ) -> Result<Vec<MatrixEvent>, MatrixRequestError> {
        let (mut events, mut from) = (Vec::new(), from.to_owned());
        let (path, filter) =
            (["v3", "rooms", room, "messages"], json!({ "types": event_types() }).to_string());
        for _ in 0..MAX_HISTORY_PAGES {
            let query = [("dir", "b"), ("limit", "100"), ("from", &from), ("to", to), ("filter", &filter)];
            let page: MessagesPage =
                self.api.request_as(&MatrixRequest { query: &query, ..MatrixRequest::get(&path) }).await?;
            events.extend(parse_events(&page.chunk));
            match page.end.filter(|end| !page.chunk.is_empty() && *end != to) {
                Some(end) => from = end,
                None => {
                    events.reverse();
                    return Ok(events);
                }
            }
        }
        tracing::warn!(
            account = self.name,
            room,
            "history of a Matrix room reached its page limit; older missed messages are skipped"
        );
        events.reverse();
        Ok(events)
    }
}
