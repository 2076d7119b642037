//! Other instances as a channel: an agent's reply to a message goes back under the same correlation ID. The outbox
//! sends it and retries; its idempotency key prevents duplicates.

use polyclaw_api::control::messages::NewEnvelopeBody;
use polyclaw_domain::channel::{ChannelAdapter, ChannelCapabilities, SendOutcome};
use polyclaw_domain::delivery::OutgoingMessage;
use polyclaw_domain::envelope::IDEMPOTENCY_KEY_TTL_MS;
use polyclaw_domain::id::TraceId;
use polyclaw_domain::message::MessageRole;
use polyclaw_domain::port::BoxFuture;
use polyclaw_store::{Tx, jobs, messages, outbox};
use serde_json::json;

use super::BrokerClient;
use crate::client::CONNECTION_LOST_CODE;
use crate::failure::{CommandFailure, FailureExit};

/// A character may take four bytes, and a payload is limited to 64 KiB.
const MAX_RESPONSE_CHARS: usize = 12_000;

/// Refusals that a retry cannot change.
const PERMANENT_REFUSALS: [&str; 3] = ["route_denied", "sender_mismatch", "wrong_scope"];

impl ChannelAdapter for BrokerClient {
    fn capabilities(&self, _: &str) -> ChannelCapabilities {
        ChannelCapabilities {
            idempotent_send: true,
            max_chars: MAX_RESPONSE_CHARS,
            edits: false,
            acknowledges: true,
        }
    }

    fn idempotency_window_ms(&self, _: &str) -> Option<i64> {
        Some(IDEMPOTENCY_KEY_TTL_MS)
    }

    fn send<'a>(&'a self, key: &'a str, outgoing: &'a OutgoingMessage) -> BoxFuture<'a, SendOutcome> {
        let address = outgoing.address();
        let mut message = NewEnvelopeBody {
            from: None,
            to: address.peer.clone(),
            r#type: address.account.clone(),
            payload: json!({ "text": outgoing.text() }),
            correlation_id: address.thread.clone(),
            idempotency_key: Some(key.to_owned()),
            hop_count: 0,
            trace_id: None,
        };
        let part = key.to_owned();
        Box::pin(async move {
            // Marks failures explicitly: the receiver cannot tell an error message from an answer.
            match self.db.read(move |tx: &mut Tx<'_>| turn_error_and_trace(tx, &part)).await {
                Ok((failure, trace)) => {
                    failure.into_iter().for_each(|code| message.payload["error"] = code.into());
                    message.trace_id = trace.map(String::from);
                }
                Err(error) => return SendOutcome::Retry { reason: error.to_string(), after_ms: None },
            }
            match Self::send_message(self, message).await {
                Ok(receipt) => SendOutcome::Accepted { platform_id: Some(receipt.id) },
                Err(failure) => send_outcome(failure),
            }
        })
    }
}

/// Returns the error of the turn that a message part belongs to, if it failed, and the turn's trace.
fn turn_error_and_trace(
    tx: &mut Tx<'_>,
    part: &str,
) -> polyclaw_store::Result<(Option<String>, Option<TraceId>)> {
    let Some(turn) = outbox::find_turn(tx, part)? else { return Ok((None, None)) };
    let steps = messages::list_by_turn(tx, &turn)?;
    let answer = steps.iter().rev().find(|step| step.role == MessageRole::Assistant);
    let failure = answer.and_then(|answer| answer.meta.as_ref()?["error"].as_str().map(str::to_owned));
    Ok((failure, jobs::get(tx, &turn)?.map(|job| job.trace)))
}

fn send_outcome(failure: CommandFailure) -> SendOutcome {
    let reason = format!("{} ({})", failure.message, failure.code);
    match failure.exit {
        _ if failure.code == CONNECTION_LOST_CODE => SendOutcome::Unknown { reason },
        _ if PERMANENT_REFUSALS.contains(&failure.code.as_str()) => SendOutcome::Rejected { reason },
        FailureExit::Usage | FailureExit::NotFound | FailureExit::Conflict => {
            SendOutcome::Rejected { reason }
        }
        FailureExit::Unavailable | FailureExit::Failed => SendOutcome::Retry { reason, after_ms: None },
    }
}
