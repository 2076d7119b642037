//! State shared by the handle and the server thread.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{PostedReply, ReplyOutcome};

pub(super) struct WebhookState {
    rules: Mutex<ReplyRules>,
    arrivals: Mutex<Vec<PostedReply>>,
    pub arrived: watch::Sender<usize>,
    pub shown: watch::Sender<usize>,
}

pub(super) struct ReplyRules {
    pub next: VecDeque<ReplyOutcome>,
    pub usual: ReplyOutcome,
    pub recognises_repeats: bool,
    pub secret: Option<String>,
}

impl Default for WebhookState {
    fn default() -> Self {
        let rules = ReplyRules {
            next: VecDeque::new(),
            usual: ReplyOutcome::Shown,
            recognises_repeats: false,
            secret: None,
        };
        Self {
            rules: Mutex::new(rules),
            arrivals: Mutex::default(),
            arrived: watch::Sender::new(0),
            shown: watch::Sender::new(0),
        }
    }
}

impl WebhookState {
    pub fn set_rules(&self, change: impl FnOnce(&mut ReplyRules)) {
        change(&mut lock(&self.rules));
    }

    pub fn secret(&self) -> Option<String> {
        lock(&self.rules).secret.clone()
    }

    pub fn arrivals(&self) -> Vec<PostedReply> {
        lock(&self.arrivals).clone()
    }

    /// Records an answer. Returns its outcome and its ID on the platform.
    pub fn record_reply(&self, mut arrival: PostedReply) -> (ReplyOutcome, String) {
        let (outcome, recognises) = {
            let mut rules = lock(&self.rules);
            let outcome = rules.next.pop_front().unwrap_or(rules.usual);
            (outcome, rules.recognises_repeats)
        };
        let mut arrivals = lock(&self.arrivals);
        let first = arrivals.iter().position(|seen| recognises && seen.shown && seen.key == arrival.key);
        arrival.shown = outcome.is_visible() && first.is_none();
        let is_shown = arrival.shown;
        arrivals.push(arrival);
        let id = format!("reply-{}", first.map_or(arrivals.len(), |first| first + 1));
        drop(arrivals);
        if is_shown {
            self.shown.send_modify(|count| *count += 1);
        }
        self.arrived.send_modify(|count| *count += 1);
        (outcome, id)
    }
}

/// Ignores poisoning: a test that panicked while holding a lock has failed already, and the rest should still run.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
