//! Answers to what agents of this instance asked of others. A call that waits gets them; else the session that asked
//! does, as a message of its own. Nothing is sent back by itself.

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

/// How often it is looked whether a call that waits has stored what it was given.
const CALL_RESULT_POLL_INTERVAL: Duration = Duration::from_millis(200);
const POLLS_PER_LEASE_RENEWAL: u32 = 100;

pub(super) async fn process_answer(
    exchange: &BrokerClient,
    engine: &Engine,
    envelope: &LeasedEnvelope,
) -> EnvelopeOutcome {
    let mut looks = 0_u32;
    loop {
        // Where a task stands is for whoever waits for it; nobody goes on from it.
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
            // What a call was given is in its result: it needs no message besides.
            return match asked.answer_id.as_ref() == Some(&envelope.id) {
                true => EnvelopeOutcome::Done,
                false => deliver_to_asker(exchange, engine, envelope, asked).await,
            };
        }
        // It may not have come so far yet, after a restart: it is waited for, with the message in hand.
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

/// An answer that no turn here asked for: an operator wrote in this instance's name. It is read, and nothing leaves.
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

/// The session that asked goes on with it, and answers where it was asked.
async fn deliver_to_asker(
    exchange: &BrokerClient,
    engine: &Engine,
    envelope: &LeasedEnvelope,
    asked: AskingCall,
) -> EnvelopeOutcome {
    let job = asked.job;
    let place = match engine.reply_address(&job.turn).await {
        // What came from another instance is not answered by an answer.
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
