//! One Matrix user.

use polyclaw_domain::channel::{
    AttachmentRef, ChannelCapabilities, ChatAddress, ConnectionState, InboundSink, SendOutcome,
};
use polyclaw_domain::config;
use polyclaw_domain::delivery::OutgoingMessage;
use serde_json::{Value, json};

use super::CHANNEL_NAME;
use super::api::{MatrixApi, MatrixRequest};
use super::session::MatrixLogin;
use crate::accounts;
use crate::attachment::{self, AttachmentContent};
use crate::client::{self, PlatformClients};
use crate::connection_state::ConnectionTracker;
use crate::{Error, RetryTiming};

/// An event has at most 65,536 bytes. JSON needs up to six bytes per character, and an edit contains the text twice.
const MAX_MESSAGE_CHARS: usize = 5_000;

/// Lower bound of how long a homeserver remembers transaction ids. Synapse keeps them for a day, others in memory for
/// at least half an hour.
const TRANSACTION_DEDUP_WINDOW_MS: i64 = 30 * 60 * 1000;

/// How long a homeserver shows the typing indicator.
const TYPING_TIMEOUT_MS: u32 = 20_000;

pub struct MatrixAccount {
    pub(super) name: String,
    pub(super) settings: config::MatrixConfig,
    pub(super) api: MatrixApi,
    pub(super) retry_timing: RetryTiming,
    pub(super) connection: ConnectionTracker,
}

impl MatrixAccount {
    pub(super) fn new(
        name: &str,
        settings: &config::MatrixConfig,
        clients: &PlatformClients,
        pace: RetryTiming,
    ) -> Result<Self, Error> {
        let base = client::parse_url_setting(&settings.homeserver, CHANNEL_NAME, name, "homeserver")?;
        let client = clients.client_for(&base);
        let login = MatrixLogin::new(name, settings.clone(), client.clone(), base.clone());
        Ok(Self {
            name: name.to_owned(),
            settings: settings.clone(),
            api: MatrixApi::new(client, base, login),
            retry_timing: pace,
            connection: ConnectionTracker::default(),
        })
    }

    async fn put_message(&self, room: &str, key: &str, content: &Value) -> SendOutcome {
        self.api
            .send_message(&MatrixRequest::put(&["v3", "rooms", room, "send", "m.room.message", key], content))
            .await
    }
}

impl accounts::PlatformAccount for MatrixAccount {
    const CHANNEL: &'static str = CHANNEL_NAME;
    /// A homeserver recognises a transaction id and returns the event that it created for it.
    const CAPABILITIES: ChannelCapabilities = ChannelCapabilities {
        idempotent_send: true,
        max_chars: MAX_MESSAGE_CHARS,
        edits: true,
        acknowledges: true,
    };
    const IDEMPOTENCY_WINDOW_MS: Option<i64> = Some(TRANSACTION_DEDUP_WINDOW_MS);

    fn connection_state(&self) -> ConnectionState {
        self.connection.connection_state()
    }

    async fn send(&self, key: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let address = outgoing.address();
        let mut content = text_message_content(outgoing.text());
        if let Some(thread) = &address.thread {
            content["m.relates_to"] = json!({
                "rel_type": "m.thread",
                "event_id": thread,
                // For clients without thread support.
                "is_falling_back": true,
                "m.in_reply_to": { "event_id": thread },
            });
        }
        self.put_message(&address.peer, key, &content).await
    }

    /// Each edit uses a new key: going back to an earlier text is an edit too, and a repeated edit does no harm.
    async fn edit(&self, event: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let mut content = text_message_content(&format!("* {}", outgoing.text()));
        content["m.new_content"] = text_message_content(outgoing.text());
        content["m.relates_to"] = json!({ "rel_type": "m.replace", "event_id": event });
        let key = format!("edit-{:032x}", fastrand::u128(..));
        self.put_message(&outgoing.address().peer, &key, &content).await
    }

    async fn send_typing(&self, address: &ChatAddress) {
        let body = json!({ "typing": true, "timeout": TYPING_TIMEOUT_MS });
        let path = ["v3", "rooms", &address.peer, "typing", &self.settings.user_id];
        if let Err(trouble) = self.api.request_json(&MatrixRequest::put(&path, &body)).await {
            tracing::trace!(
                account = self.name,
                reason = trouble.into_reason(),
                "could not show the typing indicator on Matrix"
            );
        }
    }

    async fn fetch_attachment(&self, attached: &AttachmentRef) -> Option<AttachmentContent> {
        let request = self.api.file_request(attached.handle.as_ref()?).await?;
        attachment::read_attachment(attached, request).await
    }

    fn has_receive_loop(&self) -> bool {
        true
    }

    async fn receive_messages(&self, inbox: &dyn InboundSink) {
        self.receive_events(inbox).await;
    }
}

fn text_message_content(text: &str) -> Value {
    json!({ "msgtype": "m.text", "body": text })
}
