//! Other instances as a channel: what an agent answers to a message goes back under the same correlation. The outbox
//! sends it, again where it has to; its key makes it one message.

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

/// Letters may take four bytes each, and a payload has 64 KiB.
const MAX_RESPONSE_CHARS: usize = 12_000;

/// Refusals that another attempt does not change.
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
        let mut message = json!({
            "to": address.peer,
            "type": address.account,
            "correlation_id": address.thread,
            "idempotency_key": key,
            "payload": { "text": outgoing.text() },
        });
        let part = key.to_owned();
        Box::pin(async move {
            // Whoever asked can not tell a sentence of ours about a failure from an answer.
            match self.db.read(move |tx: &mut Tx<'_>| turn_error_and_trace(tx, &part)).await {
                Ok((failure, trace)) => {
                    failure.into_iter().for_each(|code| message["payload"]["error"] = code.into());
                    message["trace_id"] = json!(trace);
                }
                Err(error) => return SendOutcome::Retry { reason: error.to_string(), after_ms: None },
            }
            match Self::send_message(self, &message).await {
                Ok(receipt) => {
                    SendOutcome::Accepted { platform_id: receipt["id"].as_str().map(str::to_owned) }
                }
                Err(failure) => send_outcome(failure),
            }
        })
    }
}

/// Why the turn failed that a part is of, where it did, and the trace it belongs to.
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
