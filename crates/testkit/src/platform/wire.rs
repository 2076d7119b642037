//! What every scripted platform is made of: a server, and the board that its requests are written on.

use std::sync::Arc;

use super::Outcome;
use super::board::{Board, Called, Shown};
use super::server::Server;

/// What a platform keeps, the board among it.
pub trait Kept {
    fn board(&self) -> &Board;
}

/// A platform on the wire. Runs until dropped.
pub struct Wire<S> {
    pub(super) server: Server,
    pub(super) state: Arc<S>,
}

impl<S: Kept> Wire<S> {
    /// What happens to the next call of a method that has no outcome yet.
    pub fn push(&self, method: &str, outcome: Outcome) {
        self.state.board().push(method, outcome);
    }

    pub fn calls(&self, method: &str) -> Vec<Called> {
        self.state.board().calls(method)
    }

    /// The messages people see, in order.
    pub fn visible(&self) -> Vec<Shown> {
        self.state.board().shown()
    }

    /// What people see in one conversation, in order, which is then wiped.
    pub fn wipe(&self, chat: &str) -> Vec<Shown> {
        self.state.board().wipe(chat)
    }

    /// Waits until something is so.
    ///
    /// # Panics
    /// When it does not become so within 10 seconds.
    pub async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let reached = self.state.board().until(|| is_so(self)).await;
        assert!(reached, "it did not happen in time: {what}");
    }
}
