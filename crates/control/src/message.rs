//! The broker of messages between instances. It checks and stores them, leases them to recipients, retries,
//! dead-letters and publishes events. Memory holds only what a restart can lose.

mod poll;
mod rule;
mod secret;
mod send;
mod sweep;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use polyclaw_domain::envelope::EnvelopeState;
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::redact::Redactor;
use polyclaw_store::Tx;
use polyclaw_store::registry::envelopes::{
    self, EnvelopeEvent, EnvelopeEventFilter, EnvelopeFilter, ReplayOutcome, StoredEnvelope,
};
use tokio::sync::{Notify, broadcast};

use crate::access::ControlCaller;
use crate::audit;
use crate::control::Control;
use crate::error::{Error, Result};

pub use poll::{MAX_POLL_WAIT, PollRequest};
pub use rule::{NewRoutingRule, RoutingRuleChange};
pub use send::{NewEnvelope, SentEnvelope};

/// Buffered events; a reader that falls further behind re-reads everything.
const MESSAGE_EVENT_BUFFER_SIZE: usize = 256;
/// Recent events a reader gets first.
const MAX_RECENT_EVENTS: usize = 100;

/// The in-memory state of the broker: waiting recipients and readers.
pub(crate) struct MessageBroker {
    events: broadcast::Sender<Arc<EnvelopeEvent>>,
    waiting: Mutex<HashMap<InstanceId, Arc<Notify>>>,
    /// The process epoch that polled last, by instance.
    epochs: Mutex<HashMap<InstanceId, String>>,
    /// Signals a message whose rule allows starting its recipient.
    pub(crate) wake: Notify,
    redactor: OnceLock<Arc<Redactor>>,
    /// The secrets of each sender that must not appear in its messages.
    senders: secret::SenderRedactors,
}

impl MessageBroker {
    pub fn new() -> Self {
        Self {
            events: broadcast::channel(MESSAGE_EVENT_BUFFER_SIZE).0,
            waiting: Mutex::default(),
            epochs: Mutex::default(),
            wake: Notify::new(),
            redactor: OnceLock::new(),
            senders: secret::SenderRedactors::default(),
        }
    }

    fn recipient_notifier(&self, of: &InstanceId) -> Arc<Notify> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(waiting.entry(of.clone()).or_default())
    }

    fn set_process_epoch(&self, of: &InstanceId, life: &str) {
        self.epochs.lock().unwrap_or_else(PoisonError::into_inner).insert(of.clone(), life.to_owned());
    }

    /// Whether a later process of the instance has polled since. This one is dead then, even if its connection still
    /// looks open.
    fn is_earlier_epoch(&self, of: &InstanceId, life: Option<&str>) -> bool {
        let lives = self.epochs.lock().unwrap_or_else(PoisonError::into_inner);
        life.zip(lives.get(of)).is_some_and(|(life, last)| life != last)
    }

    fn redactor(&self) -> &Arc<Redactor> {
        self.redactor.get_or_init(Arc::default)
    }

    /// Publishes committed events, and wakes recipients that wait for messages.
    fn publish_events(&self, events: Vec<EnvelopeEvent>) {
        for event in events {
            if matches!(event.state, EnvelopeState::Queued | EnvelopeState::Failed) {
                self.recipient_notifier(&event.envelope.to).notify_waiters();
            }
            // There may be no readers.
            let _ = self.events.send(Arc::new(event));
        }
    }
}

impl Control {
    /// Sets secrets to redact in all messages, in addition to texts that look like secrets.
    pub fn set_redactor(&self, redactor: Redactor) {
        let _ = self.broker.redactor.set(Arc::new(redactor));
    }

    pub fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(self.broker.redactor())
    }

    /// Subscribes to message events from now on.
    pub fn watch_messages(&self) -> broadcast::Receiver<Arc<EnvelopeEvent>> {
        self.broker.events.subscribe()
    }

    /// Returns the most recent events in order.
    pub async fn recent_messages(&self, reader: &EnvelopeEventFilter) -> Result<Vec<EnvelopeEvent>> {
        let reader = reader.clone();
        Ok(self
            .db
            .read(move |tx: &mut Tx<'_>| envelopes::list_recent_events(tx, &reader, MAX_RECENT_EVENTS))
            .await?)
    }

    pub async fn list_messages(&self, filter: EnvelopeFilter, limit: usize) -> Result<Vec<StoredEnvelope>> {
        Ok(self.db.read(move |tx: &mut Tx<'_>| envelopes::search(tx, &filter, limit)).await?)
    }

    /// Returns a message with its events.
    pub async fn get_message(&self, id: &EnvelopeId) -> Result<(StoredEnvelope, Vec<EnvelopeEvent>)> {
        let wanted = id.clone();
        let found = self.db.read(move |tx: &mut Tx<'_>| {
            let Some(one) = envelopes::get(tx, &wanted)? else { return Ok(None) };
            let history = envelopes::list_events(tx, &one)?;
            Ok(Some((one, history)))
        });
        found.await?.ok_or_else(|| Error::unknown_message(id))
    }

    /// Sends a dead letter again as if it were new.
    pub async fn replay_message(&self, by: &ControlCaller, id: &EnvelopeId) -> Result<StoredEnvelope> {
        let (wanted, now, entry) = (id.clone(), self.now(), self.audit_entry(by, "message.replay", id));
        let replayed = self.db.write(move |tx| {
            let replayed = envelopes::replay_dead_letter(tx, &wanted, now)?;
            audit::append_optional(tx, Some(&entry).filter(|_| matches!(replayed, ReplayOutcome::Done(..))))?;
            Ok(replayed)
        });
        match replayed.await? {
            ReplayOutcome::Done(one, events) => {
                self.broker.publish_events(events);
                self.broker.wake.notify_one();
                Ok(*one)
            }
            ReplayOutcome::NotDead(state) => Err(Error::NotDeadLetter(state.as_str())),
            ReplayOutcome::RecipientGone => Err(Error::UnknownInstance("its recipient".to_owned())),
            ReplayOutcome::Unknown => Err(Error::unknown_message(id)),
        }
    }
}
