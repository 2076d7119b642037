//! What Meta asks of this instance: whether the webhook is there, and to take messages, signed.

use std::collections::BTreeMap;

use polyclaw_domain::channel::{InboundSink, IngestOutcome, WebhookRequest, WebhookResponse};
use polyclaw_domain::time::Millis;

use super::account::WhatsappAccount;
use super::event::{ChangeValue, WhatsappCallback, WhatsappMessage};
use crate::signature;
use crate::webhook_request::{find_header, ingest_response, parse_form, text_response};

/// As long as a platform's id is remembered, so that an old request cannot be played back.
const MAX_MESSAGE_AGE_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Longest word that is repeated to who sets up the webhook.
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
                tracing::warn!(account = self.name, "a request that Meta did not sign is refused");
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
            tracing::warn!(account = self.name, "a request of Meta cannot be read");
            return text_response(200, "");
        };
        for value in callback.message_changes() {
            value.failures().for_each(|(id, code)| {
                tracing::warn!(
                    account = self.name,
                    id,
                    code,
                    "WhatsApp could not deliver a message after all"
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

    /// All numbers of one app are delivered to one address, and signed with one secret.
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
            tracing::warn!(account = self.name, id = message.id(), "a message over a week old is left out");
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
