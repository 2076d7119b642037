//! Leases messages to recipients and records their results.

use std::time::Duration;

use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::envelopes::{self, AckOutcome, EnvelopePoll, StoredEnvelope};
use tokio::time::Instant;

use crate::access::ControlCaller;
use crate::control::Control;
use crate::error::{Error, Result};

/// The longest wait of a poll.
pub const MAX_POLL_WAIT: Duration = Duration::from_secs(60);

/// Options of a poll for messages.
#[derive(Clone, Debug, Default)]
pub struct PollRequest {
    pub wait: Duration,
    pub limit: usize,
    /// The process epoch of the poller. Messages leased to earlier epochs are requeued immediately.
    pub process_epoch: Option<String>,
    /// A lease id chosen by the caller. Polling again with it after a lost response returns the same messages.
    pub lease: Option<String>,
    /// Only messages that answer others.
    pub only_answers: bool,
}

impl Control {
    /// Leases the due messages of an instance. Waits for one if there are none.
    pub async fn poll_messages(
        &self,
        by: &ControlCaller,
        word: &str,
        request: PollRequest,
    ) -> Result<Vec<StoredEnvelope>> {
        let to = self.find_active(word).await?.id;
        if by.instance.as_ref().is_some_and(|own| *own != to) {
            return Err(Error::ForeignSender);
        }
        if let Some(life) = request.process_epoch.clone() {
            self.broker.set_process_epoch(&to, &life);
            let (to, now) = (to.clone(), self.now());
            let given_back = self.db.write(move |tx| envelopes::requeue_earlier_epochs(tx, &to, &life, now));
            self.broker.publish_events(given_back.await?);
        }
        let deadline = Instant::now() + request.wait.min(MAX_POLL_WAIT);
        let bell = self.broker.recipient_notifier(&to);
        loop {
            // Subscribes before the query, so that a message in between wakes the poll.
            let rung = bell.notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            let (taken, due) = self.lease_messages(&to, &request).await?;
            let is_past = self.broker.is_earlier_epoch(&to, request.process_epoch.as_deref());
            if !taken.is_empty() || is_past || Instant::now() >= deadline {
                return Ok(taken);
            }
            let pause = due.map(|due| Duration::from_millis(due.since(self.now()).max(50).unsigned_abs()));
            let look_at = pause.map_or(deadline, |pause| deadline.min(Instant::now() + pause));
            tokio::select! {
                () = rung => {}
                () = tokio::time::sleep_until(look_at) => {}
            }
        }
    }

    async fn lease_messages(
        &self,
        to: &InstanceId,
        request: &PollRequest,
    ) -> Result<(Vec<StoredEnvelope>, Option<Millis>)> {
        let poll = EnvelopePoll {
            to: to.clone(),
            lease: request.lease.clone().unwrap_or_else(|| self.ids.fresh_nonce()),
            asks_again: request.lease.is_some(),
            process_epoch: request.process_epoch.clone(),
            only_answers: request.only_answers,
            limit: request.limit,
            now: self.now(),
        };
        let control = self.clone();
        let leased = self.db.write(move |tx| {
            // Checked inside the transaction, so that it is ordered with requeuing what earlier epochs hold.
            if control.broker.is_earlier_epoch(&poll.to, poll.process_epoch.as_deref()) {
                return Ok(Default::default());
            }
            let (taken, events) = envelopes::lease_due(tx, &poll)?;
            let looks_on = taken.is_empty() && !poll.only_answers;
            let due = if looks_on { envelopes::next_due_at(tx, &poll.to)? } else { None };
            Ok((taken, events, due))
        });
        let (taken, events, due) = leased.await?;
        self.broker.publish_events(events);
        Ok((taken, due))
    }

    /// Acknowledges a message. A repeated acknowledgement succeeds and changes nothing.
    pub async fn acknowledge_message(
        &self,
        by: &ControlCaller,
        id: &EnvelopeId,
        lease: &str,
    ) -> Result<StoredEnvelope> {
        self.check_recipient(by, id).await?;
        let (wanted, lease, now) = (id.clone(), lease.to_owned(), self.now());
        let settled = self.db.write(move |tx| envelopes::acknowledge(tx, &wanted, &lease, now));
        self.publish_ack_outcome(id, settled.await?)
    }

    /// Records a failed delivery. The message is delivered again later or dead-lettered.
    pub async fn fail_message(
        &self,
        by: &ControlCaller,
        id: &EnvelopeId,
        lease: &str,
        why: &str,
    ) -> Result<StoredEnvelope> {
        self.check_recipient(by, id).await?;
        let (wanted, lease, now) = (id.clone(), lease.to_owned(), self.now());
        let why = self.redact_text(why);
        let settled = self.db.write(move |tx| envelopes::fail_delivery(tx, &wanted, &lease, &why, now));
        self.publish_ack_outcome(id, settled.await?)
    }

    /// Renews the lease of a message in progress. Returns when it expires.
    pub async fn renew_message(&self, by: &ControlCaller, id: &EnvelopeId, lease: &str) -> Result<Millis> {
        self.check_recipient(by, id).await?;
        let (wanted, lease, now) = (id.clone(), lease.to_owned(), self.now());
        let renewed = self.db.write(move |tx| envelopes::renew_lease(tx, &wanted, &lease, now));
        renewed.await?.ok_or(Error::LeaseLost)
    }

    fn publish_ack_outcome(&self, id: &EnvelopeId, settled: AckOutcome) -> Result<StoredEnvelope> {
        match settled {
            AckOutcome::Done(one, events) => {
                self.broker.publish_events(events);
                Ok(*one)
            }
            AckOutcome::AlreadySettled(one) => Ok(*one),
            AckOutcome::Lost => Err(Error::LeaseLost),
            AckOutcome::Unknown => Err(Error::unknown_message(id)),
        }
    }

    /// Hides messages to other instances from an instance.
    async fn check_recipient(&self, by: &ControlCaller, id: &EnvelopeId) -> Result<()> {
        let Some(own) = &by.instance else { return Ok(()) };
        match self.get_message(id).await? {
            (one, _) if one.to == *own => Ok(()),
            _ => Err(Error::unknown_message(id)),
        }
    }
}
