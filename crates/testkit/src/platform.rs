//! A scripted chat platform. It receives the answers that the webhook channel posts and shows them to people, with
//! the faults of its script. People on it write to Polyclaw through [`Hook`].
//!
//! It outlives the Polyclaw under test, so the messages that a person saw before and after a crash are one list.

mod board;
pub mod discord;
mod emulator;
pub mod matrix;
mod router;
mod serve;
mod server;
mod signature;
pub mod slack;
mod state;
pub mod telegram;
#[cfg(test)]
mod tests;
mod webhook_sender;
pub mod whatsapp;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

pub use emulator::{EmulatorState, PlatformEmulator};
use server::EmulatorServer;
use state::WebhookState;
pub use webhook_sender::{PlatformPost, WebhookAnswer, WebhookSender};

/// Longer than any normal wait, shorter than a person would wait for a test run.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The platform's reaction to one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// Shows it and responds 200 with an ID.
    Shown,
    /// Shows it and responds with a status that does not say so.
    ShownThenStatus(u16),
    /// Shows it and cuts the connection before responding.
    ShownThenCut,
    /// Shows it and never responds.
    ShownThenHang,
    /// Does not show it and responds with this status.
    Status(u16),
    /// Does not show it and responds with this status and `Retry-After`.
    Later { status: u16, seconds: u64 },
    /// Does not show it and cuts the connection.
    Cut,
}

impl ReplyOutcome {
    fn is_visible(self) -> bool {
        matches!(self, Self::Shown | Self::ShownThenStatus(_) | Self::ShownThenCut | Self::ShownThenHang)
    }
}

/// One answer as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedReply {
    /// The `Idempotency-Key` header.
    pub key: String,
    pub peer: String,
    pub thread: Option<String>,
    pub text: String,
    pub signature: Option<String>,
    /// A person sees it.
    pub shown: bool,
}

/// Runs until dropped.
pub struct WebhookPlatform {
    server: EmulatorServer,
    state: Arc<WebhookState>,
}

impl WebhookPlatform {
    /// Listens on a free loopback port and shows whatever arrives, repeats included.
    ///
    /// # Panics
    /// If no loopback port is available.
    pub fn start() -> Self {
        let state = Arc::new(WebhookState::default());
        let shared = Arc::clone(&state);
        let server = EmulatorServer::start(move |request| serve::handle_reply(Arc::clone(&shared), request));
        Self { server, state }
    }

    /// Returns the `reply_url` that answers are posted to.
    pub fn reply_url(&self) -> String {
        format!("http://{}/replies", self.server.address)
    }

    /// Deduplicates: an answer whose key was shown is not shown again and gets its first ID.
    pub fn dedupe_repeats(&self) {
        self.state.set_rules(|rules| rules.recognises_repeats = true);
    }

    /// Rejects answers that are not signed with this secret with 401.
    pub fn require_signature(&self, secret: &str) {
        self.state.set_rules(|rules| rules.secret = Some(secret.to_owned()));
    }

    /// Queues an outcome for the next answer without one. Outcomes are used in order, once each.
    pub fn push(&self, outcome: ReplyOutcome) {
        self.state.set_rules(|rules| rules.next.push_back(outcome));
    }

    /// Sets the outcome of every answer for which no queued outcome is left.
    pub fn set_default_outcome(&self, outcome: ReplyOutcome) {
        self.state.set_rules(|rules| rules.usual = outcome);
    }

    /// Returns every answer that reached the platform, in order of arrival.
    pub fn arrivals(&self) -> Vec<PostedReply> {
        self.state.arrivals()
    }

    /// Returns the messages that a person sees, in order.
    pub fn visible_replies(&self) -> Vec<PostedReply> {
        self.arrivals().into_iter().filter(|arrival| arrival.shown).collect()
    }

    /// Returns the texts that a person sees, in order.
    pub fn visible_texts(&self) -> Vec<String> {
        self.visible_replies().into_iter().map(|arrival| arrival.text).collect()
    }

    /// Waits until a person sees this many messages.
    ///
    /// # Panics
    /// If they do not within 10 seconds.
    pub async fn wait_for_visible(&self, count: usize) -> Vec<PostedReply> {
        let seen = wait_for_count(&self.state.shown, count).await;
        assert!(seen, "expected {count} messages, a person sees {:?}", self.visible_texts());
        self.visible_replies()
    }

    /// Waits until this many answers arrived, shown or not.
    ///
    /// # Panics
    /// If they do not within 10 seconds.
    pub async fn wait_for_arrivals(&self, count: usize) -> Vec<PostedReply> {
        let seen = wait_for_count(&self.state.arrived, count).await;
        assert!(seen, "expected {count} answers, saw {:?}", self.arrivals());
        self.arrivals()
    }
}

async fn wait_for_count(counter: &watch::Sender<usize>, count: usize) -> bool {
    let mut counter = counter.subscribe();
    let wait = tokio::time::timeout(WAIT_TIMEOUT, counter.wait_for(|seen| *seen >= count));
    wait.await.is_ok()
}
