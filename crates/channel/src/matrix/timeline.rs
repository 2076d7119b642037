//! What one answer of the homeserver brings of one room: as much as it holds, and what lies before it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::account::MatrixAccount;
use super::api::{MatrixRequest, MatrixRequestError};
use super::event::MatrixEvent;

/// The most events of a room in one answer. Few: answers have to stay readable when many rooms are flooded at once.
const SYNC_PAGE_SIZE: u32 = 20;
/// How many pages of 100 are read back where an answer did not hold everything.
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
    /// There is more between this answer and the one before.
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

/// What of all that happens this instance wants to hear.
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
    /// Everything since the answer before, oldest first. Who has just come in answers what was said since they were
    /// invited, and nothing older.
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
    /// What happened between two positions, oldest first.
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
        tracing::warn!(account = self.name, room, "more was said while it was away than is read back");
        events.reverse();
        Ok(events)
    }
}
