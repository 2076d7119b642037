//! One user of a homeserver.

use polyclaw_domain::channel::{
    AttachmentRef, ChannelCapabilities, ChatAddress, ConnectionState, InboundSink, SendOutcome,
};
use polyclaw_domain::config;
use polyclaw_domain::delivery::OutgoingMessage;
use serde_json::{Value, json};

use super::NAME;
use super::api::{Api, Ask};
use super::session::Login;
use crate::accounts;
use crate::attachment::{self, Content};
use crate::client::{self, Clients};
use crate::link::Link;
use crate::{Error, Pace};

/// An event has at most 65,536 bytes. A character takes up to six in JSON, and a changed message holds its text
/// twice.
const MAX_CHARS: usize = 5_000;

/// Synapse keeps keys for a day, others in memory for half an hour at least.
const REMEMBERED_MS: i64 = 30 * 60 * 1000;

/// For how long a homeserver shows that somebody writes.
const TYPING_MS: u32 = 20_000;

pub struct Account {
    pub(super) name: String,
    pub(super) settings: config::MatrixConfig,
    pub(super) api: Api,
    pub(super) pace: Pace,
    pub(super) link: Link,
}

impl Account {
    pub(super) fn new(
        name: &str,
        settings: &config::MatrixConfig,
        clients: &Clients,
        pace: Pace,
    ) -> Result<Self, Error> {
        let base = client::setting(&settings.homeserver, NAME, name, "homeserver")?;
        let client = clients.reaching(&base);
        let login = Login::new(name, settings.clone(), client.clone(), base.clone());
        Ok(Self {
            name: name.to_owned(),
            settings: settings.clone(),
            api: Api::new(client, base, login),
            pace,
            link: Link::default(),
        })
    }

    async fn put(&self, room: &str, key: &str, content: &Value) -> SendOutcome {
        self.api.send(&Ask::put(&["v3", "rooms", room, "send", "m.room.message", key], content)).await
    }
}

impl accounts::Account for Account {
    const CHANNEL: &'static str = NAME;
    /// A homeserver knows a key again and answers with the message it made of it.
    const CAPABILITIES: ChannelCapabilities =
        ChannelCapabilities { idempotent_send: true, max_chars: MAX_CHARS, edits: true, acknowledges: true };
    const REMEMBERED_MS: Option<i64> = Some(REMEMBERED_MS);

    fn standing(&self) -> ConnectionState {
        self.link.standing()
    }

    async fn send(&self, key: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let address = outgoing.address();
        let mut content = said(outgoing.text());
        if let Some(thread) = &address.thread {
            content["m.relates_to"] = json!({
                "rel_type": "m.thread",
                "event_id": thread,
                // For clients that know no threads.
                "is_falling_back": true,
                "m.in_reply_to": { "event_id": thread },
            });
        }
        self.put(&address.peer, key, &content).await
    }

    /// Each change has a key of its own: one back to an earlier text is a change, too, and twice the same does no harm.
    async fn edit(&self, event: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let mut content = said(&format!("* {}", outgoing.text()));
        content["m.new_content"] = said(outgoing.text());
        content["m.relates_to"] = json!({ "rel_type": "m.replace", "event_id": event });
        let key = format!("edit-{:032x}", fastrand::u128(..));
        self.put(&outgoing.address().peer, &key, &content).await
    }

    async fn typing(&self, address: &ChatAddress) {
        let body = json!({ "typing": true, "timeout": TYPING_MS });
        let path = ["v3", "rooms", &address.peer, "typing", &self.settings.user_id];
        if let Err(trouble) = self.api.ask(&Ask::put(&path, &body)).await {
            tracing::trace!(account = self.name, reason = trouble.reason(), "typing is not shown");
        }
    }

    async fn fetch(&self, attached: &AttachmentRef) -> Option<Content> {
        let request = self.api.file(attached.handle.as_ref()?).await?;
        attachment::read(attached, request).await
    }

    fn connects(&self) -> bool {
        true
    }

    async fn receive(&self, inbox: &dyn InboundSink) {
        self.listen(inbox).await;
    }
}

fn said(text: &str) -> Value {
    json!({ "msgtype": "m.text", "body": text })
}
