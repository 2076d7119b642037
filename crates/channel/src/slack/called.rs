//! The Events API: Slack posts to `/channels/slack/<account>`, signed.

use polyclaw_domain::channel::{InboundSink, WebhookRequest, WebhookResponse};
use polyclaw_domain::config::SlackMode;
use polyclaw_domain::time::Millis;
use serde_json::{Map, Value};

use super::account::{Account, Delivery};
use crate::call::{fields, header, plain, taken};
use crate::signature;

/// A request that is older, or newer, is somebody's copy of it.
const MAX_AGE_MS: i64 = 5 * 60 * 1000;

impl Account {
    pub(super) async fn answer_call(
        &self,
        call: &WebhookRequest,
        inbox: &dyn InboundSink,
    ) -> WebhookResponse {
        if self.settings.mode != SlackMode::Events {
            return plain(404, "");
        }
        if call.method != "POST" {
            return plain(405, "");
        }
        if !self.is_genuine(call, self.clock.now()) {
            tracing::warn!(account = self.name, "a request that Slack did not sign is refused");
            return plain(401, "");
        }
        match read(call) {
            Some(Delivery::Callback(callback)) if callback.kind == "url_verification" => {
                plain(200, &callback.challenge)
            }
            Some(delivery) => self.deliver(&delivery, inbox).await,
            None => plain(200, ""),
        }
    }

    async fn deliver(&self, delivery: &Delivery, inbox: &dyn InboundSink) -> WebhookResponse {
        match self.identity().await {
            Ok(me) => taken(&self.take(me, delivery, inbox).await),
            Err(reason) => {
                tracing::warn!(account = self.name, reason, "Slack has to deliver an event again");
                plain(503, "")
            }
        }
    }

    fn is_genuine(&self, call: &WebhookRequest, now: Millis) -> bool {
        let Some(secret) = &self.settings.signing_secret else { return false };
        let Some(at) = header(call, "x-slack-request-timestamp") else { return false };
        let Some(given) = header(call, "x-slack-signature").and_then(|given| given.strip_prefix("v0="))
        else {
            return false;
        };
        let signed_ms = at.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1000));
        signed_ms.is_some_and(|signed| now.since(Millis(signed)).saturating_abs() <= MAX_AGE_MS)
            && signature::is_genuine(secret, &[b"v0:", at.as_bytes(), b":", &call.body], given)
    }
}

/// Events are JSON, commands are forms.
fn read(call: &WebhookRequest) -> Option<Delivery> {
    let media_type = header(call, "content-type").unwrap_or_default();
    if media_type.starts_with("application/x-www-form-urlencoded") {
        let form = fields(std::str::from_utf8(&call.body).ok()?);
        if let Some((_, payload)) = form.iter().find(|(name, _)| name == "payload") {
            return Delivery::read("interactive", &serde_json::from_str(payload).ok()?);
        }
        let form: Map<_, _> = form.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        return Delivery::read("slash_commands", &Value::Object(form));
    }
    Delivery::read("events_api", &serde_json::from_slice(&call.body).ok()?)
}
