//! Tool calls in this process that wait for an answer of another instance. The registry is in memory only: the
//! control plane keeps an answer until the call's result is stored.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::envelope::LeasedEnvelope;

#[derive(Default)]
pub struct AnswerWaiters(Mutex<HashMap<String, UnboundedSender<WaiterUpdate>>>);

pub enum WaiterUpdate {
    /// Work on the task has started.
    Progress,
    Answer(Box<LeasedEnvelope>),
}

impl AnswerWaiters {
    fn lock_waiters(&self) -> MutexGuard<'_, HashMap<String, UnboundedSender<WaiterUpdate>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call: answers under this correlation ID are sent to the returned receiver.
    pub fn register_waiter(&self, correlation: &str) -> UnboundedReceiver<WaiterUpdate> {
        let (line, news) = unbounded_channel();
        self.lock_waiters().insert(correlation.to_owned(), line);
        news
    }

    /// Unregisters a call.
    pub fn remove_waiter(&self, correlation: &str) {
        self.lock_waiters().remove(correlation);
    }

    pub fn notify_progress(&self, envelope: &LeasedEnvelope) {
        if let Some(line) = self.lock_waiters().get(envelope.thread_id()) {
            let _ = line.send(WaiterUpdate::Progress);
        }
    }

    /// Hands an answer to the waiting call. Each call gets one answer.
    pub fn deliver_answer(&self, envelope: &LeasedEnvelope) {
        if let Some(line) = self.lock_waiters().remove(envelope.thread_id()) {
            let _ = line.send(WaiterUpdate::Answer(Box::new(envelope.clone())));
        }
    }
}
