//! Other instances as a channel: what an agent answers to a message goes back under the same correlation. The outbox
//! sends it, again where it has to; its key makes it one message.

use polyclaw_domain::channel::{Capabilities, Channel, Sent};
use polyclaw_domain::delivery::Outgoing;
use polyclaw_domain::envelope::KEY_MS;
use polyclaw_domain::port::Pending;
use serde_json::json;

use super::Exchange;
use crate::client::LOST;
use crate::failure::{Exit, Failure};

/// Letters may take four bytes each, and a payload has 64 KiB.
const MAX_CHARS: usize = 12_000;

/// Refusals that another attempt does not change.
const FINAL: [&str; 3] = ["route_denied", "foreign_sender", "wrong_scope"];

impl Channel for Exchange {
    fn capabilities(&self, _: &str) -> Capabilities {
        Capabilities { idempotent_send: true, max_chars: MAX_CHARS, edits: false }
    }

    fn remembers_ms(&self, _: &str) -> Option<i64> {
        Some(KEY_MS)
    }

    fn send<'a>(&'a self, key: &'a str, outgoing: &'a Outgoing) -> Pending<'a, Sent> {
        let address = outgoing.address();
        let message = json!({
            "to": address.peer,
            "type": address.account,
            "correlation_id": address.thread,
            "idempotency_key": key,
            "payload": { "text": outgoing.text() },
        });
        Box::pin(async move {
            match Self::send(self, &message).await {
                Ok(receipt) => Sent::Accepted { platform_id: receipt["id"].as_str().map(str::to_owned) },
                Err(failure) => outcome(failure),
            }
        })
    }
}

fn outcome(failure: Failure) -> Sent {
    let reason = format!("{} ({})", failure.message, failure.code);
    match failure.exit {
        _ if failure.code == LOST => Sent::Unknown { reason },
        _ if FINAL.contains(&failure.code.as_str()) => Sent::Rejected { reason },
        Exit::Usage | Exit::NotFound | Exit::Conflict => Sent::Rejected { reason },
        Exit::Unavailable | Exit::Failed => Sent::Retry { reason, after_ms: None },
    }
}
