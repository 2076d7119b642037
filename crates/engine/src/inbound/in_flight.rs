//! Letters that are just being taken. A platform that hears nothing for a few seconds delivers a letter again while its
//! files still come; they are not fetched twice.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::channel::InboundMessage;

#[derive(Default)]
pub(crate) struct InFlightMessages(Arc<Mutex<HashSet<InFlightKey>>>);

#[derive(Clone, PartialEq, Eq, Hash)]
struct InFlightKey {
    channel: String,
    account: String,
    platform_id: String,
}

/// Until it is dropped, no other copy of the letter gets one.
pub(super) struct InFlightGuard {
    name: InFlightKey,
    among: Arc<Mutex<HashSet<InFlightKey>>>,
}

impl InFlightMessages {
    /// Nothing while another copy of it is being taken.
    pub(super) fn try_enter(&self, message: &InboundMessage) -> Option<InFlightGuard> {
        let name = InFlightKey {
            channel: message.context.channel.clone(),
            account: message.context.account.clone(),
            platform_id: message.platform_id.clone(),
        };
        let is_first = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        is_first.then(|| InFlightGuard { name, among: Arc::clone(&self.0) })
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.among.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}
