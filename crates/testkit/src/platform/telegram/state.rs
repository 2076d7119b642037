//! State shared by the handle and the server thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::Value;

use crate::platform::board::MessageBoard;
use crate::platform::emulator::EmulatorState;
use crate::platform::state::lock;

#[derive(Default)]
pub struct TelegramState {
    pub(super) board: MessageBoard,
    bots: Mutex<HashMap<String, TelegramBot>>,
    files: Mutex<HashMap<String, Vec<u8>>>,
    ids: AtomicI64,
}

struct TelegramBot {
    user: Value,
    /// Updates by ID, until confirmed.
    updates: BTreeMap<i64, Value>,
    /// Number of current polls for updates, and its maximum so far.
    polls: usize,
    most_polls: usize,
}

/// A running poll for updates.
pub(super) struct UpdatePoll<'a> {
    state: &'a TelegramState,
    token: &'a str,
}

impl Drop for UpdatePoll<'_> {
    fn drop(&mut self) {
        if let Some(bot) = lock(&self.state.bots).get_mut(self.token) {
            bot.polls -= 1;
        }
    }
}

impl EmulatorState for TelegramState {
    fn board(&self) -> &MessageBoard {
        &self.board
    }
}

impl TelegramState {
    pub(super) fn add_bot(&self, token: &str, user: Value) {
        lock(&self.bots).insert(
            token.to_owned(),
            TelegramBot { user, updates: BTreeMap::new(), polls: 0, most_polls: 0 },
        );
    }

    pub(super) fn bot_user(&self, token: &str) -> Option<Value> {
        lock(&self.bots).get(token).map(|bot| bot.user.clone())
    }

    pub(super) fn next_id(&self) -> i64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn queue_update(&self, token: &str, mut update: Value) {
        let id = self.next_id();
        update["update_id"] = id.into();
        if let Some(bot) = lock(&self.bots).get_mut(token) {
            bot.updates.insert(id, update);
        }
        self.board.notify_change();
    }

    /// Confirms everything before `offset` and returns the rest, as Telegram does.
    pub(super) fn updates(&self, token: &str, offset: i64, limit: usize) -> Vec<Value> {
        let mut bots = lock(&self.bots);
        let Some(bot) = bots.get_mut(token) else { return Vec::new() };
        let confirmed = bot.updates.len();
        bot.updates = bot.updates.split_off(&offset);
        let confirmed = confirmed - bot.updates.len();
        let left = bot.updates.values().take(limit).cloned().collect();
        drop(bots);
        if confirmed > 0 {
            self.board.notify_change();
        }
        left
    }

    pub(super) fn start_poll<'a>(&'a self, token: &'a str) -> UpdatePoll<'a> {
        if let Some(bot) = lock(&self.bots).get_mut(token) {
            bot.polls += 1;
            bot.most_polls = bot.most_polls.max(bot.polls);
        }
        UpdatePoll { state: self, token }
    }

    pub(super) fn max_concurrent_polls(&self, token: &str) -> usize {
        lock(&self.bots).get(token).map_or(0, |bot| bot.most_polls)
    }

    pub(super) fn unconfirmed_count(&self, token: &str) -> usize {
        lock(&self.bots).get(token).map_or(0, |bot| bot.updates.len())
    }

    pub(super) fn add_file(&self, id: &str, content: &[u8]) {
        lock(&self.files).insert(id.to_owned(), content.to_owned());
    }

    pub(super) fn file_content(&self, id: &str) -> Option<Vec<u8>> {
        lock(&self.files).get(id).cloned()
    }
}
