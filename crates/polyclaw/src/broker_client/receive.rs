//! Fetches messages from the control plane and delivers each to its session.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_api::control::messages::NewEnvelopeBody;
use polyclaw_domain::backoff::{Backoff, BackoffPolicy};
use polyclaw_domain::envelope::{HANDOFF_KIND, STATUS_KIND};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::ingress::{AcceptedMessage, InternalMessage, MessageProvenance, RelayKind};
use polyclaw_engine::{Engine, Error, ErrorCategory};
use serde_json::json;
use tokio::sync::Semaphore;

use super::envelope::LeasedEnvelope;
use super::{BrokerClient, EnvelopeUpdate, answers, random_nonce};
use crate::failure::{CommandFailure, FailureExit};

/// Maximum number of messages processed concurrently.
const MAX_CONCURRENT_MESSAGES: usize = 32;
const POLL_BATCH_SIZE: usize = 16;
/// Well before a lease of 90 seconds expires.
const LEASE_RENEW_INTERVAL: Duration = Duration::from_secs(30);
const BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_millis(250), Duration::from_secs(10));

/// Runs until it is dropped or the engine is draining.
pub async fn run(exchange: Arc<BrokerClient>, engine: Engine) {
    let room = Arc::new(Semaphore::new(MAX_CONCURRENT_MESSAGES));
    let mut asking = PollLoop::new(false);
    while !engine.is_draining() {
        let Ok(first) = Arc::clone(&room).acquire_owned().await else { return };
        let limit = room.available_permits().min(POLL_BATCH_SIZE - 1) + 1;
        drop(first);
        for envelope in asking.poll_messages(&exchange, limit).await {
            // The poll limit guarantees that a permit is free.
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let (exchange, engine) = (Arc::clone(&exchange), engine.clone());
            tokio::spawn(async move {
                process_envelope(&exchange, &engine, &envelope).await;
                drop(permit);
            });
        }
    }
}

/// Receives answers separately: the turns that fill `MAX_CONCURRENT_MESSAGES` may be waiting for them.
pub async fn run_answers(exchange: Arc<BrokerClient>, engine: Engine) {
    let mut asking = PollLoop::new(true);
    while !engine.is_draining() {
        for envelope in asking.poll_messages(&exchange, POLL_BATCH_SIZE).await {
            let (exchange, engine) = (Arc::clone(&exchange), engine.clone());
            tokio::spawn(async move { process_envelope(&exchange, &engine, &envelope).await });
        }
    }
}

fn start_backoff() -> Backoff {
    BACKOFF.start(fastrand::u64(..))
}

/// Polls the control plane, with a growing pause while it does not respond.
struct PollLoop {
    only_answers: bool,
    word: String,
    backoff: Backoff,
}

impl PollLoop {
    fn new(only_answers: bool) -> Self {
        Self { only_answers, word: random_nonce(), backoff: start_backoff() }
    }

    async fn poll_messages(&mut self, exchange: &BrokerClient, limit: usize) -> Vec<LeasedEnvelope> {
        match exchange.fetch_pending(&self.word, limit, self.only_answers).await {
            Ok(envelopes) => {
                self.backoff.reset();
                self.word = random_nonce();
                envelopes
            }
            Err(failure) => {
                tracing::debug!(error = %failure, "could not fetch messages from the control plane; retrying");
                tokio::time::sleep(self.backoff.next_delay()).await;
                exchange.refresh_control_plane_url();
                Vec::new()
            }
        }
    }
}

/// The result of processing a message.
pub(super) enum EnvelopeOutcome {
    /// The turn that took the message is committed, or nothing has to be done.
    Done,
    /// The message cannot be accepted.
    Refused(String),
    /// This process is ending or the lease is lost. The next receiver continues.
    Released,
}

async fn process_envelope(exchange: &BrokerClient, engine: &Engine, envelope: &LeasedEnvelope) {
    let outcome = match envelope.is_answer() {
        true => answers::process_answer(exchange, engine, envelope).await,
        false => deliver_to_agent(exchange, engine, envelope).await,
    };
    let update = match outcome {
        EnvelopeOutcome::Done => EnvelopeUpdate::Acknowledge,
        EnvelopeOutcome::Refused(error) => {
            tracing::warn!(message.id = envelope.id, error, "message of another instance rejected");
            EnvelopeUpdate::Fail(error)
        }
        EnvelopeOutcome::Released => return,
    };
    if let Err(failure) = report_outcome(exchange, engine, envelope, &update).await {
        // The message is delivered again and recognized as already stored.
        tracing::info!(message.id = envelope.id, error = %failure, "could not report the delivery result to the control plane");
    }
}

/// Reports the result to the control plane, retrying while it is unavailable.
async fn report_outcome(
    exchange: &BrokerClient,
    engine: &Engine,
    envelope: &LeasedEnvelope,
    update: &EnvelopeUpdate,
) -> Result<(), CommandFailure> {
    let mut backoff = start_backoff();
    loop {
        match exchange.update_message(envelope, update).await {
            Err(failure) if failure.exit == FailureExit::Unavailable && !engine.is_draining() => {
                tokio::time::sleep(backoff.next_delay()).await;
            }
            reply => return reply,
        }
    }
}

async fn deliver_to_agent(
    exchange: &BrokerClient,
    engine: &Engine,
    envelope: &LeasedEnvelope,
) -> EnvelopeOutcome {
    let agent = envelope.target_agent().unwrap_or_else(|| engine.settings().default_agent.clone());
    let from = MessageProvenance::Remote(
        agent.clone(),
        envelope.origin(),
        envelope.relay_info(&agent, RelayKind::Begin),
    );
    let how = envelope.to_internal_message(envelope.reply_address(), from);
    match accept_internal_message(exchange, engine, envelope, &envelope.session_key(&agent), how).await {
        Ok(accepted) => {
            send_working_status(exchange, envelope, agent.as_str(), &accepted).await;
            wait_for_turn_end(exchange, engine, envelope, &accepted).await
        }
        Err(outcome) => outcome,
    }
}

/// Reports to the sender of a task that work on it has started.
async fn send_working_status(
    exchange: &BrokerClient,
    envelope: &LeasedEnvelope,
    agent: &str,
    accepted: &AcceptedMessage,
) {
    if envelope.kind != HANDOFF_KIND {
        return;
    }
    let message = NewEnvelopeBody {
        from: None,
        to: envelope.from.clone(),
        r#type: STATUS_KIND.to_owned(),
        payload: json!({ "status": "working", "agent": agent, "turn_id": accepted.turn_id }),
        correlation_id: Some(envelope.thread_id().to_owned()),
        idempotency_key: Some(format!("status:{}", envelope.id)),
        hop_count: 0,
        trace_id: Some(envelope.trace().to_string()),
    };
    if let Err(failure) = exchange.send_message(message).await {
        tracing::debug!(message.id = envelope.id, error = %failure, "could not report that work on a task has started");
    }
}

pub(super) async fn accept_internal_message(
    exchange: &BrokerClient,
    engine: &Engine,
    envelope: &LeasedEnvelope,
    session: &SessionKey,
    how: InternalMessage,
) -> Result<AcceptedMessage, EnvelopeOutcome> {
    loop {
        match engine.inject_message(session, &envelope.text(), how.clone()).await {
            Ok(accepted) => return Ok(accepted),
            Err(Error::Draining) => return Err(EnvelopeOutcome::Released),
            // The message was answered before, and its session has been deleted since.
            Err(Error::Deleted) => return Err(EnvelopeOutcome::Done),
            Err(error) if error.category() == ErrorCategory::Retry => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if !renew_lease(exchange, envelope).await {
                    return Err(EnvelopeOutcome::Released);
                }
            }
            Err(error) => return Err(EnvelopeOutcome::Refused(format!("{} ({})", error, error.code()))),
        }
    }
}

/// Waits for the turn that takes the message to end, renewing the lease meanwhile.
pub(super) async fn wait_for_turn_end(
    exchange: &BrokerClient,
    engine: &Engine,
    envelope: &LeasedEnvelope,
    accepted: &AcceptedMessage,
) -> EnvelopeOutcome {
    loop {
        match engine.wait_for_answer(&accepted.session_key, &accepted.turn_id, LEASE_RENEW_INTERVAL).await {
            Ok(Some(_)) => return EnvelopeOutcome::Done,
            Ok(None) | Err(_) if engine.is_draining() => return EnvelopeOutcome::Released,
            // The session was deleted while the message waited, so no turn will take it.
            Err(Error::UnknownTurn(_)) => return EnvelopeOutcome::Done,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(message.id = envelope.id, %error, "could not read the state of a turn; retrying");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        if !renew_lease(exchange, envelope).await {
            return EnvelopeOutcome::Released;
        }
    }
}

/// Renews the lease. Returns false only if it is known to be lost; other errors count as renewed.
pub(super) async fn renew_lease(exchange: &BrokerClient, envelope: &LeasedEnvelope) -> bool {
    let renewed = exchange.update_message(envelope, &EnvelopeUpdate::Renew).await;
    !matches!(renewed, Err(failure) if ["lease_lost", "unknown_message"].contains(&failure.code.as_str()))
}
