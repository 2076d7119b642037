//! The Events API: Slack sends signed POST requests to `/channels/slack/<account>`.

use polyclaw_domain::channel::{InboundSink, WebhookRequest, WebhookResponse};
use polyclaw_domain::config::SlackMode;
use polyclaw_domain::time::Millis;
use serde_json::{Map, Value};

use super::account::{SlackAccount, SlackDelivery};
use crate::signature;
use crate::webhook_request::{find_header, ingest_response, parse_form, text_response};

/// Maximum clock difference of a request. Anything beyond it is treated as a replay.
const MAX_REQUEST_AGE_MS: i64 = 5 * 60 * 1000;

impl SlackAccount {
    pub(super) async fn answer_webhook(
        &self,
        call: &WebhookRequest,
        inbox: &dyn InboundSink,
    ) -> WebhookResponse {
        if self.settings.mode != SlackMode::Events {
            return text_response(404, "");
        }
        if call.method != "POST" {
            return text_response(405, "");
        }
        if !self.is_genuine(call, self.clock.now()) {
            tracing::warn!(account = self.name, "rejected a webhook request without a valid Slack signature");
            return text_response(401, "");
        }
        match parse_delivery(call) {
            Some(SlackDelivery::Callback(callback)) if callback.kind == "url_verification" => {
                text_response(200, &callback.challenge)
            }
            Some(delivery) => self.ingest_webhook(&delivery, inbox).await,
            None => text_response(200, ""),
        }
    }

    async fn ingest_webhook(&self, delivery: &SlackDelivery, inbox: &dyn InboundSink) -> WebhookResponse {
        match self.identity().await {
            Ok(me) => ingest_response(&self.ingest_delivery(me, delivery, inbox).await),
            Err(reason) => {
                tracing::warn!(
                    account = self.name,
                    reason,
                    "could not look up the Slack app; Slack will redeliver the event"
                );
                text_response(503, "")
            }
        }
    }

    fn is_genuine(&self, call: &WebhookRequest, now: Millis) -> bool {
        let Some(secret) = &self.settings.signing_secret else { return false };
        let Some(at) = find_header(call, "x-slack-request-timestamp") else { return false };
        let Some(given) = find_header(call, "x-slack-signature").and_then(|given| given.strip_prefix("v0="))
        else {
            return false;
        };
        let signed_ms = at.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1000));
        signed_ms.is_some_and(|signed| now.since(Millis(signed)).saturating_abs() <= MAX_REQUEST_AGE_MS)
            && signature::is_genuine(secret, &[b"v0:", at.as_bytes(), b":", &call.body], given)
    }
}

/// Parses the delivery. Events are JSON; commands and button presses are forms.
fn parse_delivery(call: &WebhookRequest) -> Option<SlackDelivery> {
    let media_type = find_header(call, "content-type").unwrap_or_default();
    if media_type.starts_with("application/x-www-form-urlencoded") {
        let form = parse_form(std::str::from_utf8(&call.body).ok()?);
        if let Some((_, payload)) = form.iter().find(|(name, _)| name == "payload") {
            return SlackDelivery::from_payload("interactive", &serde_json::from_str(payload).ok()?);
        }
        let form: Map<_, _> = form.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        return SlackDelivery::from_payload("slash_commands", &Value::Object(form));
    }
    SlackDelivery::from_payload("events_api", &serde_json::from_slice(&call.body).ok()?)
}
