//! The common parts of scripted platforms: a server, and the board that records its requests.

use std::sync::Arc;

use super::ReplyOutcome;
use super::board::{MessageBoard, RecordedCall, VisibleMessage};
use super::server::EmulatorServer;

/// A platform's state, which includes the board.
pub trait EmulatorState {
    fn board(&self) -> &MessageBoard;
}

/// A scripted platform. Runs until dropped.
pub struct PlatformEmulator<S> {
    pub(super) server: EmulatorServer,
    pub(super) state: Arc<S>,
}

impl<S: EmulatorState> PlatformEmulator<S> {
    /// Queues an outcome for the next call of a method without one.
    pub fn push(&self, method: &str, outcome: ReplyOutcome) {
        self.state.board().push(method, outcome);
    }

    pub fn calls(&self, method: &str) -> Vec<RecordedCall> {
        self.state.board().calls(method)
    }

    /// Returns the messages that people see, in order.
    pub fn visible_messages(&self) -> Vec<VisibleMessage> {
        self.state.board().visible_messages()
    }

    /// Returns the messages that people see in one conversation, in order, and clears it.
    pub fn wipe_chat(&self, chat: &str) -> Vec<VisibleMessage> {
        self.state.board().wipe_chat(chat)
    }

    /// Waits until a condition holds.
    ///
    /// # Panics
    /// If it does not within 10 seconds.
    pub async fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let reached = self.state.board().wait_until(|| is_so(self)).await;
        assert!(reached, "it did not happen in time: {what}");
    }
}
