//! One number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::channel::{
    AttachmentRef, ChannelCapabilities, ChatAddress, ConnectionState, InboundMessage, InboundSink, MenuItem,
    SendOutcome, WebhookRequest, WebhookResponse,
};
use polyclaw_domain::config;
use polyclaw_domain::delivery::{CommandButton, OutgoingMessage};
use polyclaw_domain::port::WallClock;
use serde_json::json;

use super::NAME;
use super::api::Api;
use super::event::{Message, Value};
use crate::Error;
use crate::accounts::{self, description};
use crate::attachment::{self, Content};
use crate::client::{self, Clients};
use crate::link::Link;

/// Meta's own limit for the text of one message.
const MAX_CHARS: usize = 4_096;
const API: &str = "https://graph.facebook.com/v23.0";
/// Of how many conversations the last message is remembered.
const MAX_LAST: usize = 1000;
/// Meta's limits for the menu: so many commands, and so many characters about each.
const MAX_COMMANDS: usize = 30;
const MAX_DESCRIPTION: usize = 256;
/// Meta's limit for a text with buttons under it.
const MAX_ASKED: usize = 1_024;

pub struct Account {
    pub(super) name: String,
    pub(super) settings: config::WhatsappConfig,
    pub(super) clock: Arc<dyn WallClock>,
    api: Api,
    link: Link,
    /// The last message of each conversation: the sign that an answer is being written is shown under a message.
    last: Mutex<BTreeMap<String, String>>,
}

impl Account {
    pub(super) fn new(
        name: &str,
        settings: &config::WhatsappConfig,
        clock: Arc<dyn WallClock>,
        clients: &Clients,
    ) -> Result<Self, Error> {
        let url = client::setting(settings.api_url.as_deref().unwrap_or(API), NAME, name, "api_url")?;
        let api = Api::new(clients.reaching(&url), url, settings.access_token.clone());
        let (name, settings) = (name.to_owned(), settings.clone());
        Ok(Self { name, settings, clock, api, link: Link::default(), last: Mutex::default() })
    }

    pub(super) fn letter(&self, value: &Value, message: &Message) -> Option<InboundMessage> {
        let letter = value.letter(&self.name, message)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() >= MAX_LAST {
            last.clear();
        }
        last.insert(letter.address.peer.clone(), letter.platform_id.clone());
        drop(last);
        Some(letter)
    }
}

impl accounts::Account for Account {
    const CHANNEL: &'static str = NAME;
    /// Meta knows no keys of messages, so a repeat would be shown twice; and what was sent cannot be changed.
    const CAPABILITIES: ChannelCapabilities = ChannelCapabilities {
        idempotent_send: false,
        max_chars: MAX_CHARS,
        edits: false,
        acknowledges: true,
    };

    /// There is no connection; whether Meta takes the token is known since it was told the menu.
    fn standing(&self) -> ConnectionState {
        match self.link.standing() {
            ConnectionState::Connected => ConnectionState::WebhookOnly,
            other => other,
        }
    }

    /// A person is a number, a group is not.
    async fn send(&self, _: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let peer = &outgoing.address().peer;
        let is_person = peer.bytes().all(|byte| byte.is_ascii_digit() || byte == b'+');
        let mut body = json!({
            "messaging_product": "whatsapp",
            "recipient_type": if is_person { "individual" } else { "group" },
            "to": peer,
        });
        // Meta offers buttons to single people only.
        match interactive(outgoing).filter(|_| is_person) {
            Some(interactive) => {
                body["type"] = "interactive".into();
                body["interactive"] = interactive;
            }
            None => {
                body["type"] = "text".into();
                // A preview would have Meta fetch what an agent wrote, and so tell its server that it was written.
                body["text"] = json!({ "preview_url": false, "body": outgoing.text() });
            }
        }
        self.api.send(&self.settings.phone_number_id, &body).await
    }

    /// Meta shows it for 25 seconds or until an answer comes, and marks the message as read.
    async fn typing(&self, address: &ChatAddress) {
        let message = self.last.lock().unwrap_or_else(PoisonError::into_inner).get(&address.peer).cloned();
        let Some(message) = message else { return };
        let body = json!({
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": message,
            "typing_indicator": { "type": "text" },
        });
        let sent = self.api.send(&self.settings.phone_number_id, &body).await;
        tracing::trace!(account = self.name, ?sent, "WhatsApp was told that an answer is being written");
    }

    async fn fetch(&self, attached: &AttachmentRef) -> Option<Content> {
        let request = self.api.file(attached.handle.as_ref()?).await?;
        attachment::read(attached, request).await
    }

    async fn menu(&self, items: &[MenuItem]) -> Result<(), String> {
        let command = |item: &MenuItem| {
            let description = description(item, MAX_DESCRIPTION);
            json!({ "command_name": item.command, "command_description": description })
        };
        let commands: Vec<_> = items.iter().take(MAX_COMMANDS).map(command).collect();
        let told = self.api.set_up(&self.settings.phone_number_id, &json!({ "commands": commands })).await;
        match &told {
            Ok(()) => self.link.connected(),
            Err(why) => self.link.apart(format!(
                "WhatsApp does not take what it is told: {why}; look at its access_token and phone_number_id"
            )),
        }
        told
    }

    async fn called(
        &self,
        call: &WebhookRequest,
        inbox: &dyn InboundSink,
        all: &BTreeMap<String, Self>,
    ) -> WebhookResponse {
        self.answer_call(call, inbox, all).await
    }
}

/// A text with buttons. `None` where there are none, or the text is too long for it: it is sent alone then, and names
/// the commands.
fn interactive(outgoing: &OutgoingMessage) -> Option<serde_json::Value> {
    let (text, buttons) = (outgoing.text(), outgoing.buttons());
    if buttons.is_empty() || text.chars().count() > MAX_ASKED {
        return None;
    }
    let button = |button: &CommandButton| json!({ "type": "reply", "reply": { "id": button.command, "title": button.label } });
    let buttons: Vec<_> = buttons.iter().map(button).collect();
    Some(json!({ "type": "button", "body": { "text": text }, "action": { "buttons": buttons } }))
}
