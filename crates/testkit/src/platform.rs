//! A chat platform on the wire: it takes the answers that the webhook channel posts and shows them to people, as
//! badly as its script says; and people on it write to a Polyclaw through [`Hook`].
//!
//! It outlives the Polyclaw under test, so what a person saw before and after a crash is one list.

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

/// Longer than any healthy wait, shorter than a test run someone sits through.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// What the platform does with one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// Shown, and answered 200 with an id.
    Shown,
    /// Shown, and then answered with a status that does not say so.
    ShownThenStatus(u16),
    /// Shown, and the connection cut before an answer.
    ShownThenCut,
    /// Shown, and never answered.
    ShownThenHang,
    /// Not shown, and answered with this status.
    Status(u16),
    /// Not shown, and answered with this status and `Retry-After`.
    Later { status: u16, seconds: u64 },
    /// Not shown, and the connection cut before an answer.
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
    /// The `Idempotency-Key`.
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
    /// When no loopback port can be had: no test can go on without one.
    pub fn start() -> Self {
        let state = Arc::new(WebhookState::default());
        let shared = Arc::clone(&state);
        let server = EmulatorServer::start(move |request| serve::handle_reply(Arc::clone(&shared), request));
        Self { server, state }
    }

    /// Where answers are to be posted: the `reply_url`.
    pub fn reply_url(&self) -> String {
        format!("http://{}/replies", self.server.address)
    }

    /// From now on a key that was shown is not shown again, but answered with its first id.
    pub fn dedupe_repeats(&self) {
        self.state.set_rules(|rules| rules.recognises_repeats = true);
    }

    /// From now on an answer that is not signed with this secret is refused with 401.
    pub fn require_signature(&self, secret: &str) {
        self.state.set_rules(|rules| rules.secret = Some(secret.to_owned()));
    }

    /// What happens to the next answer that has no outcome yet. Outcomes are used in order, each once.
    pub fn push(&self, outcome: ReplyOutcome) {
        self.state.set_rules(|rules| rules.next.push_back(outcome));
    }

    /// What happens to every answer for which no pushed outcome is left.
    pub fn set_default_outcome(&self, outcome: ReplyOutcome) {
        self.state.set_rules(|rules| rules.usual = outcome);
    }

    /// Every answer that reached the platform, in order of arrival.
    pub fn arrivals(&self) -> Vec<PostedReply> {
        self.state.arrivals()
    }

    /// The messages a person sees, in order.
    pub fn visible_replies(&self) -> Vec<PostedReply> {
        self.arrivals().into_iter().filter(|arrival| arrival.shown).collect()
    }

    /// The texts a person sees, in order.
    pub fn visible_texts(&self) -> Vec<String> {
        self.visible_replies().into_iter().map(|arrival| arrival.text).collect()
    }

    /// Waits until a person sees this many messages.
    ///
    /// # Panics
    /// When they do not see them within 10 seconds.
    pub async fn wait_for_visible(&self, count: usize) -> Vec<PostedReply> {
        let seen = wait_for_count(&self.state.shown, count).await;
        assert!(seen, "expected {count} messages, a person sees {:?}", self.visible_texts());
        self.visible_replies()
    }

    /// Waits until this many answers arrived, shown or not.
    ///
    /// # Panics
    /// When they do not arrive within 10 seconds.
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
