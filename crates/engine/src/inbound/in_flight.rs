//! Messages being processed. A platform that gets no response for a few seconds delivers a message again while its
//! files are still downloading; they are not fetched twice.

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

/// Excludes other copies of the message until it is dropped.
pub(super) struct InFlightGuard {
    name: InFlightKey,
    among: Arc<Mutex<HashSet<InFlightKey>>>,
}

impl InFlightMessages {
    /// `None`: another copy of the message is being processed.
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
