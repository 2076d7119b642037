//! What one answer of the homeserver brings of one room: as much as it holds, and what lies before it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::account::Account;
use super::api::{Ask, Trouble};
use super::event::Event;

/// The most events of a room in one answer. Few: answers have to stay readable when many rooms are flooded at once.
const PAGE: u32 = 20;
/// How many pages of 100 are read back where an answer did not hold everything.
const MAX_PAGES: usize = 20;

#[derive(Debug, Deserialize)]
pub(super) struct News {
    pub next_batch: String,
    #[serde(default)]
    pub rooms: Rooms,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Rooms {
    pub join: BTreeMap<String, Joined>,
    pub invite: BTreeMap<String, Invited>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Joined {
    pub timeline: Timeline,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Timeline {
    events: Vec<Value>,
    /// There is more between this answer and the one before.
    pub limited: bool,
    prev_batch: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Invited {
    invite_state: State,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    events: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct Page {
    chunk: Vec<Value>,
    end: Option<String>,
}

/// What of all that happens this instance wants to hear.
pub(super) fn filter() -> String {
    let nothing = json!({ "types": [] });
    let room = json!({
        "timeline": { "limit": PAGE, "types": types() },
        "state": { "types": [] },
        "ephemeral": nothing,
        "account_data": nothing,
    });
    json!({ "room": room, "presence": nothing, "account_data": nothing }).to_string()
}

fn types() -> [&'static str; 3] {
    ["m.room.message", "m.room.member", "m.room.encrypted"]
}

fn read(events: &[Value]) -> impl DoubleEndedIterator<Item = Event> {
    events.iter().filter_map(|event| Event::deserialize(event).ok())
}

impl Invited {
    pub fn events(&self) -> Vec<Event> {
        read(&self.invite_state.events).collect()
    }
}

impl Timeline {
    /// Everything since the answer before, oldest first. Who has just come in answers what was said since they were
    /// invited, and nothing older.
    pub async fn whole(&self, account: &Account, room: &str, since: &str) -> Result<Vec<Event>, Trouble> {
        let mut events: Vec<_> = read(&self.events).collect();
        let own = &account.settings.user_id;
        if let Some(start) = events.iter().position(|event| event.lets_in(own)) {
            return Ok(events.split_off(start));
        }
        if let Some(from) = self.prev_batch.as_deref().filter(|_| self.limited) {
            let mut whole = account.gap(room, from, since).await?;
            whole.append(&mut events);
            return Ok(whole);
        }
        Ok(events)
    }
}

impl Account {
    /// What happened between two positions, oldest first.
    async fn gap(&self, room: &str, from: &str, to: &str) -> Result<Vec<Event>, Trouble> {
        let (mut events, mut from) = (Vec::new(), from.to_owned());
        let (path, filter) = (["v3", "rooms", room, "messages"], json!({ "types": types() }).to_string());
        for _ in 0..MAX_PAGES {
            let query = [("dir", "b"), ("limit", "100"), ("from", &from), ("to", to), ("filter", &filter)];
            let page: Page = self.api.fetch(&Ask { query: &query, ..Ask::get(&path) }).await?;
            events.extend(read(&page.chunk));
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
