//! Calls that wait for an answer of another instance, in this process. The control plane keeps an answer until the
//! result of the call is stored, so what is here may be lost.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::envelope::LeasedEnvelope;

#[derive(Default)]
pub struct AnswerWaiters(Mutex<HashMap<String, UnboundedSender<WaiterUpdate>>>);

pub enum WaiterUpdate {
    /// The task is worked on.
    Progress,
    Answer(Box<LeasedEnvelope>),
}

impl AnswerWaiters {
    fn lock_waiters(&self) -> MutexGuard<'_, HashMap<String, UnboundedSender<WaiterUpdate>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on answers under this correlation come here.
    pub fn register_waiter(&self, correlation: &str) -> UnboundedReceiver<WaiterUpdate> {
        let (line, news) = unbounded_channel();
        self.lock_waiters().insert(correlation.to_owned(), line);
        news
    }

    /// Nobody waits for it any more.
    pub fn remove_waiter(&self, correlation: &str) {
        self.lock_waiters().remove(correlation);
    }

    pub fn notify_progress(&self, envelope: &LeasedEnvelope) {
        if let Some(line) = self.lock_waiters().get(envelope.thread_id()) {
            let _ = line.send(WaiterUpdate::Progress);
        }
    }

    /// Hands an answer to the call that waits for it: one call is given one answer.
    pub fn deliver_answer(&self, envelope: &LeasedEnvelope) {
        if let Some(line) = self.lock_waiters().remove(envelope.thread_id()) {
            let _ = line.send(WaiterUpdate::Answer(Box::new(envelope.clone())));
        }
    }
}
