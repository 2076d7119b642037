//! Meta's webhook requests: verification of the subscription, and signed deliveries of messages.

use std::collections::BTreeMap;

use polyclaw_domain::channel::{InboundSink, IngestOutcome, WebhookRequest, WebhookResponse};
use polyclaw_domain::time::Millis;

use super::account::WhatsappAccount;
use super::event::{ChangeValue, WhatsappCallback, WhatsappMessage};
use crate::signature;
use crate::webhook_request::{find_header, ingest_response, parse_form, text_response};

/// Maximum age of a message. Equal to the retention of platform ids, so that an old request cannot be replayed.
const MAX_MESSAGE_AGE_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Maximum length of a challenge that is echoed.
const MAX_CHALLENGE_LEN: usize = 256;

impl WhatsappAccount {
    pub(super) async fn answer_webhook(
        &self,
        call: &WebhookRequest,
        inbox: &dyn InboundSink,
        all: &BTreeMap<String, Self>,
    ) -> WebhookResponse {
        match call.method.as_str() {
            "GET" => self.verify_subscription(call),
            "POST" if self.is_genuine(call) => self.ingest_webhook(call, inbox, all).await,
            "POST" => {
                tracing::warn!(
                    account = self.name,
                    "rejected a webhook request without a valid Meta signature"
                );
                text_response(401, "")
            }
            _ => text_response(405, ""),
        }
    }

    async fn ingest_webhook(
        &self,
        call: &WebhookRequest,
        inbox: &dyn InboundSink,
        all: &BTreeMap<String, Self>,
    ) -> WebhookResponse {
        let Some(callback) = WhatsappCallback::from_body(&call.body) else {
            tracing::warn!(account = self.name, "could not parse a webhook request of Meta; skipped");
            return text_response(200, "");
        };
        for value in callback.message_changes() {
            value.failures().for_each(|(id, code)| {
                tracing::warn!(
                    account = self.name,
                    id,
                    code,
                    "WhatsApp failed to deliver a message that it had accepted"
                );
            });
            let Some(owner) = all.values().find(|account| account.owns_change(value, self)) else { continue };
            for message in value.messages() {
                if let later @ IngestOutcome::Retry { .. } =
                    owner.ingest_message(value, &message, inbox).await
                {
                    return ingest_response(&later);
                }
            }
        }
        text_response(200, "")
    }

    /// Whether the change is for this account. All numbers of an app are delivered to one URL and signed with one
    /// secret.
    fn owns_change(&self, value: &ChangeValue, called: &Self) -> bool {
        self.settings.phone_number_id == value.metadata.phone_number_id
            && self.settings.app_secret == called.settings.app_secret
    }

    async fn ingest_message(
        &self,
        value: &ChangeValue,
        message: &WhatsappMessage,
        inbox: &dyn InboundSink,
    ) -> IngestOutcome {
        let now = self.clock.now();
        if now.since(message.written_ms().map_or(now, Millis)) > MAX_MESSAGE_AGE_MS {
            tracing::warn!(
                account = self.name,
                id = message.id(),
                "ignoring a WhatsApp message that is over a week old"
            );
            return IngestOutcome::Done;
        }
        match self.inbound_from_message(value, message) {
            Some(inbound) => inbox.ingest_message(inbound).await,
            None => IngestOutcome::Done,
        }
    }

    fn verify_subscription(&self, call: &WebhookRequest) -> WebhookResponse {
        let fields = parse_form(&call.query);
        let field =
            |name: &str| fields.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str());
        let is_known = field("hub.mode") == Some("subscribe")
            && field("hub.verify_token")
                .is_some_and(|given| signature::matches_secret(&self.settings.verify_token, given));
        match field("hub.challenge").filter(|challenge| is_known && challenge.len() <= MAX_CHALLENGE_LEN) {
            Some(challenge) => text_response(200, challenge),
            None => text_response(403, ""),
        }
    }

    fn is_genuine(&self, call: &WebhookRequest) -> bool {
        let given = find_header(call, "x-hub-signature-256").and_then(|given| given.strip_prefix("sha256="));
        given.is_some_and(|given| signature::is_genuine(&self.settings.app_secret, &[&call.body], given))
    }
}
