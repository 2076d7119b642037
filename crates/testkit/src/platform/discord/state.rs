//! State shared by the handle and the server thread.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::GatewayEnd;
use crate::platform::board::MessageBoard;
use crate::platform::emulator::EmulatorState;
use crate::platform::state::lock;

const DISCORD_EPOCH_MS: u64 = 1_420_070_400_000;

pub struct DiscordState {
    pub(super) board: MessageBoard,
    pub(super) heartbeat_ms: u64,
    bots: Mutex<HashMap<String, DiscordBot>>,
    /// Channels by ID, with their server and parent.
    channels: Mutex<BTreeMap<String, (String, Option<String>)>>,
    /// Messages of people, by channel.
    messages: Mutex<HashMap<String, Vec<Value>>>,
    /// The message with a nonce, by bot, channel and nonce.
    nonces: Mutex<HashMap<(String, String, String), String>>,
    ids: AtomicU64,
    address: OnceLock<SocketAddr>,
    /// URL for resuming sessions, if it differs from the gateway's.
    pub(super) resume_url: OnceLock<String>,
}

#[derive(Default)]
pub(super) struct DiscordBot {
    pub id: String,
    pub session: Option<String>,
    /// Events of the session, to be repeated on resume.
    events: Vec<Value>,
    connection: Option<UnboundedSender<GatewayOrder>>,
    pub identified: usize,
    pub resumed: usize,
    pub beaten: Option<u64>,
}

/// A command for a connection.
pub(super) enum GatewayOrder {
    Say(Value),
    End(GatewayEnd),
}

impl EmulatorState for DiscordState {
    fn board(&self) -> &MessageBoard {
        &self.board
    }
}

impl DiscordState {
    pub(super) fn new(heartbeat_ms: u64) -> Self {
        Self {
            board: MessageBoard::default(),
            heartbeat_ms,
            bots: Mutex::default(),
            channels: Mutex::default(),
            messages: Mutex::default(),
            nonces: Mutex::default(),
            ids: AtomicU64::new(0),
            address: OnceLock::new(),
            resume_url: OnceLock::new(),
        }
    }

    pub(super) fn set_address(&self, address: SocketAddr) {
        let _ = self.address.set(address);
    }

    pub(super) fn gateway_url(&self) -> String {
        format!("ws://{}/gateway", self.address.get().expect("the server runs"))
    }

    pub(super) fn add_bot(&self, token: &str, id: &str) {
        lock(&self.bots).insert(token.to_owned(), DiscordBot { id: id.to_owned(), ..DiscordBot::default() });
    }

    pub(super) fn add_channel(&self, id: &str, guild: &str, parent: Option<&str>) {
        lock(&self.channels).insert(id.to_owned(), (guild.to_owned(), parent.map(str::to_owned)));
    }

    /// Runs a change on a bot. Returns `None` if there is no such token.
    pub(super) fn with_bot<T>(&self, token: &str, change: impl FnOnce(&mut DiscordBot) -> T) -> Option<T> {
        let changed = lock(&self.bots).get_mut(token).map(change);
        self.board.notify_change();
        changed
    }

    /// Returns an ID that grows with time, like Discord's.
    pub(super) fn next_id(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_millis();
        let now = u64::try_from(now).expect("a clock before the year 500,000,000") - DISCORD_EPOCH_MS;
        ((now << 22) + self.ids.fetch_add(1, Ordering::Relaxed)).to_string()
    }

    pub(super) fn write_message(
        &self,
        token: &str,
        channel: &str,
        person: &str,
        text: &str,
        over: Value,
    ) -> String {
        let id = self.next_id();
        let author = json!({ "id": person, "username": format!("user{person}"), "bot": false });
        let mut message =
            json!({ "id": id, "channel_id": channel, "type": 0, "author": author, "content": text });
        for (key, value) in over.as_object().into_iter().flatten() {
            message[key] = value.clone();
        }
        lock(&self.messages).entry(channel.to_owned()).or_default().push(message.clone());
        let guild = lock(&self.channels).get(channel).map(|(guild, _)| guild.clone());
        if let Some(guild) = guild {
            message["guild_id"] = guild.into();
            message["member"] = member_json(person);
        }
        self.dispatch_event(token, "MESSAGE_CREATE", message);
        id
    }

    /// Sends an event on the current connection and records it for a resume.
    pub(super) fn dispatch_event(&self, token: &str, kind: &str, data: Value) {
        self.with_bot(token, |bot| bot.record_event(kind, data));
    }

    pub(super) fn end_connection(&self, token: &str, end: GatewayEnd) {
        self.with_bot(token, |bot| {
            if let GatewayEnd::Invalid { resumable: false } = end {
                bot.session = None;
            }
            bot.connection.as_ref().map(|connection| connection.send(GatewayOrder::End(end)))
        });
    }

    pub(super) fn forget_session(&self, token: &str) {
        self.end_connection(token, GatewayEnd::Drop);
        self.with_bot(token, |bot| (bot.session, bot.connection) = (None, None));
    }

    /// Starts a session on this connection. Returns false if there is no such bot.
    pub(super) fn identify(&self, token: &str, connection: UnboundedSender<GatewayOrder>) -> bool {
        let url = self.resume_url.get().cloned().unwrap_or_else(|| self.gateway_url());
        let session = format!("s{}", self.next_id());
        let guilds = self.guilds();
        let identified = self.with_bot(token, |bot| {
            bot.identified += 1;
            bot.events.clear();
            (bot.session, bot.connection) = (Some(session.clone()), Some(connection));
            let user = json!({ "id": bot.id, "username": "polybot", "bot": true });
            let mut ready = json!({ "session_id": session, "resume_gateway_url": url, "user": user });
            ready["guilds"] =
                guilds.iter().map(|guild| json!({ "id": guild["id"], "unavailable": true })).collect();
            bot.record_event("READY", ready);
            guilds.into_iter().for_each(|guild| bot.record_event("GUILD_CREATE", guild));
        });
        identified.is_some()
    }

    /// Repeats the events after `seq`. Returns false if there is no such session.
    pub(super) fn resume_session(
        &self,
        token: &str,
        session: &Value,
        seq: u64,
        connection: UnboundedSender<GatewayOrder>,
    ) -> bool {
        let resumed = self.with_bot(token, |bot| {
            if bot.session.is_none() || bot.session.as_deref() != session.as_str() {
                return false;
            }
            bot.resumed += 1;
            for event in bot.events.iter().filter(|event| event["s"].as_u64().is_some_and(|s| s > seq)) {
                let _ = connection.send(GatewayOrder::Say(event.clone()));
            }
            bot.connection = Some(connection);
            bot.record_event("RESUMED", json!({}));
            true
        });
        resumed.unwrap_or(false)
    }

    pub(super) fn guilds(&self) -> Vec<Value> {
        let mut guilds: BTreeMap<String, Value> = BTreeMap::new();
        for (id, (guild, parent)) in lock(&self.channels).iter() {
            let last =
                lock(&self.messages).get(id).and_then(|list| list.last().map(|last| last["id"].clone()));
            let (list, kind) = if parent.is_some() { ("threads", 11) } else { ("channels", 0) };
            let channel = json!({ "id": id, "type": kind, "parent_id": parent, "last_message_id": last });
            let entry = guilds.entry(guild.clone());
            let entry = entry.or_insert_with(|| json!({ "id": guild, "channels": [], "threads": [] }));
            entry[list].as_array_mut().expect("a list").push(channel);
        }
        guilds.into_values().collect()
    }

    pub(super) fn find_channel(&self, id: &str) -> Option<Value> {
        let channels = lock(&self.channels);
        let (guild, parent) = channels.get(id)?;
        let kind = if parent.is_some() { 11 } else { 0 };
        Some(json!({ "id": id, "guild_id": guild, "type": kind, "parent_id": parent }))
    }

    /// Returns messages newest first, without fields that only events carry, as Discord does.
    pub(super) fn messages_after(&self, channel: &str, after: u64, limit: usize) -> Vec<Value> {
        let messages = lock(&self.messages);
        let id = |message: &Value| message["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0);
        let list = messages.get(channel).into_iter().flatten();
        let mut list: Vec<Value> = list.filter(|message| id(message) > after).take(limit).cloned().collect();
        list.reverse();
        list
    }

    /// Returns a new ID for a new nonce, or the ID of the message that already has it as the error.
    pub(super) fn claim_nonce(&self, token: &str, channel: &str, nonce: &str) -> Result<String, String> {
        let key = (token.to_owned(), channel.to_owned(), nonce.to_owned());
        let mut nonces = lock(&self.nonces);
        match nonces.get(&key) {
            Some(known) => Err(known.clone()),
            None => {
                let id = self.next_id();
                nonces.insert(key, id.clone());
                Ok(id)
            }
        }
    }

    pub(super) fn opening_counts(&self, token: &str) -> (usize, usize) {
        lock(&self.bots).get(token).map_or((0, 0), |bot| (bot.identified, bot.resumed))
    }

    pub(super) fn last_heartbeat(&self, token: &str) -> Option<u64> {
        lock(&self.bots).get(token).and_then(|bot| bot.beaten)
    }
}

impl DiscordBot {
    fn record_event(&mut self, kind: &str, data: Value) {
        if self.session.is_none() {
            return;
        }
        let event = json!({ "op": 0, "t": kind, "s": self.events.len() + 1, "d": data });
        self.events.push(event.clone());
        if let Some(connection) = &self.connection {
            let _ = connection.send(GatewayOrder::Say(event));
        }
    }
}

pub(super) fn member_json(person: &str) -> Value {
    json!({ "roles": [format!("role-of-{person}")], "nick": null })
}
