//! What every scripted platform is made of: a server, and the board that its requests are written on.

use std::sync::Arc;

use super::ReplyOutcome;
use super::board::{MessageBoard, RecordedCall, VisibleMessage};
use super::server::EmulatorServer;

/// What a platform keeps, the board among it.
pub trait EmulatorState {
    fn board(&self) -> &MessageBoard;
}

/// A platform on the wire. Runs until dropped.
pub struct PlatformEmulator<S> {
    pub(super) server: EmulatorServer,
    pub(super) state: Arc<S>,
}

impl<S: EmulatorState> PlatformEmulator<S> {
    /// What happens to the next call of a method that has no outcome yet.
    pub fn push(&self, method: &str, outcome: ReplyOutcome) {
        self.state.board().push(method, outcome);
    }

    pub fn calls(&self, method: &str) -> Vec<RecordedCall> {
        self.state.board().calls(method)
    }

    /// The messages people see, in order.
    pub fn visible_messages(&self) -> Vec<VisibleMessage> {
        self.state.board().visible_messages()
    }

    /// What people see in one conversation, in order, which is then wiped.
    pub fn wipe_chat(&self, chat: &str) -> Vec<VisibleMessage> {
        self.state.board().wipe_chat(chat)
    }

    /// Waits until something is so.
    ///
    /// # Panics
    /// When it does not become so within 10 seconds.
    pub async fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let reached = self.state.board().wait_until(|| is_so(self)).await;
        assert!(reached, "it did not happen in time: {what}");
    }
}
