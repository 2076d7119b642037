//! Handles answers to requests that agents of this instance sent to others. A waiting tool call gets the answer;
//! otherwise it becomes a message in the session that asked. Nothing is sent back automatically.

use std::time::Duration;

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::envelope::STATUS_KIND;
use polyclaw_engine::Engine;
use polyclaw_engine::ingress::{MessageProvenance, RelayInfo, RelayKind};
use polyclaw_store::Tx;

use super::envelope::LeasedEnvelope;
use super::receive::{EnvelopeOutcome, accept_internal_message, renew_lease, wait_for_turn_end};
use super::task::{self, AskingCall};
use super::{BrokerClient, tools};

/// Interval between checks whether the waiting call has stored its answer.
const CALL_RESULT_POLL_INTERVAL: Duration = Duration::from_millis(200);
const POLLS_PER_LEASE_RENEWAL: u32 = 100;

pub(super) async fn process_answer(
    exchange: &BrokerClient,
    engine: &Engine,
    envelope: &LeasedEnvelope,
) -> EnvelopeOutcome {
    let mut looks = 0_u32;
    loop {
        // A task status is only for a waiting call; no turn starts because of it.
        if envelope.kind == STATUS_KIND {
            exchange.waiters.notify_progress(envelope);
            return EnvelopeOutcome::Done;
        }
        let asked = match read_asking_call(exchange, envelope).await {
            Ok(Some(asked)) => asked,
            Ok(None) => return deliver_unasked_answer(exchange, engine, envelope).await,
            Err(error) => return EnvelopeOutcome::Refused(error.to_string()),
        };
        let waits = asked.is_open && tools::waits_for_answer(&asked.call);
        if !waits {
            // The call's result already holds this answer, so no message is needed.
            return match asked.answer_id.as_ref() == Some(&envelope.id) {
                true => EnvelopeOutcome::Done,
                false => deliver_to_asker(exchange, engine, envelope, asked).await,
            };
        }
        // After a restart the call may not wait yet. Keep the message leased and try again.
        exchange.waiters.deliver_answer(envelope);
        if engine.is_draining() {
            return EnvelopeOutcome::Released;
        }
        tokio::time::sleep(CALL_RESULT_POLL_INTERVAL).await;
        looks += 1;
        if looks.is_multiple_of(POLLS_PER_LEASE_RENEWAL) && !renew_lease(exchange, envelope).await {
            return EnvelopeOutcome::Released;
        }
    }
}

async fn read_asking_call(
    exchange: &BrokerClient,
    envelope: &LeasedEnvelope,
) -> polyclaw_store::Result<Option<AskingCall>> {
    let envelope = envelope.clone();
    exchange.db.read(move |tx: &mut Tx<'_>| task::find_asking_call(tx, &envelope)).await
}

/// Delivers an answer that no turn here asked for, because an operator wrote in this instance's name. The agent reads
/// it, and nothing is sent out.
async fn deliver_unasked_answer(
    exchange: &BrokerClient,
    engine: &Engine,
    envelope: &LeasedEnvelope,
) -> EnvelopeOutcome {
    let agent = engine.settings().default_agent.clone();
    let relayed = envelope.relay_info(&agent, RelayKind::Begin);
    let how = envelope.to_internal_message(
        ChatAddress::internal(),
        MessageProvenance::Remote(agent.clone(), envelope.origin(), relayed),
    );
    match accept_internal_message(exchange, engine, envelope, &envelope.session_key(&agent), how).await {
        Ok(accepted) => wait_for_turn_end(exchange, engine, envelope, &accepted).await,
        Err(outcome) => outcome,
    }
}

/// Delivers the answer to the session that asked. It continues there and replies where the request came from.
async fn deliver_to_asker(
    exchange: &BrokerClient,
    engine: &Engine,
    envelope: &LeasedEnvelope,
    asked: AskingCall,
) -> EnvelopeOutcome {
    let job = asked.job;
    let place = match engine.reply_address(&job.turn).await {
        // An answer to a request from another instance is not sent back automatically.
        Ok(place) => place.filter(|place| !place.is_remote()),
        Err(error) => return EnvelopeOutcome::Refused(error.to_string()),
    };
    let own = envelope.relay_info(&job.agent, RelayKind::Send);
    let relayed = RelayInfo { hop: own.hop.max(job.hop + 1), trace: job.trace.clone(), ..own };
    let from = MessageProvenance::Remote(job.agent.clone(), envelope.origin(), relayed);
    let how = envelope.to_internal_message(place.unwrap_or_else(ChatAddress::internal), from);
    match accept_internal_message(exchange, engine, envelope, &job.session, how).await {
        Ok(accepted) => wait_for_turn_end(exchange, engine, envelope, &accepted).await,
        Err(outcome) => outcome,
    }
}
