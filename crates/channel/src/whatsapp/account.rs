//! One WhatsApp number.

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

use super::CHANNEL_NAME;
use super::api::WhatsappApi;
use super::event::{ChangeValue, WhatsappMessage};
use crate::Error;
use crate::accounts::{self, menu_description};
use crate::attachment::{self, AttachmentContent};
use crate::client::{self, PlatformClients};
use crate::connection_state::ConnectionTracker;

/// Meta's limit for the text of a message.
const MAX_MESSAGE_CHARS: usize = 4_096;
const DEFAULT_API_URL: &str = "https://graph.facebook.com/v23.0";
/// Maximum conversations whose last message is remembered.
const MAX_REMEMBERED_CONVERSATIONS: usize = 1000;
/// Meta's limits for the command menu: commands, and characters per description.
const MAX_MENU_COMMANDS: usize = 30;
const MAX_COMMAND_DESCRIPTION_CHARS: usize = 256;
/// Meta's limit for a text with buttons.
const MAX_BUTTON_TEXT_CHARS: usize = 1_024;

pub struct WhatsappAccount {
    pub(super) name: String,
    pub(super) settings: config::WhatsappConfig,
    pub(super) clock: Arc<dyn WallClock>,
    api: WhatsappApi,
    connection: ConnectionTracker,
    /// The last message of each conversation, because the typing indicator is attached to a message.
    last: Mutex<BTreeMap<String, String>>,
}

impl WhatsappAccount {
    pub(super) fn new(
        name: &str,
        settings: &config::WhatsappConfig,
        clock: Arc<dyn WallClock>,
        clients: &PlatformClients,
    ) -> Result<Self, Error> {
        let url = client::parse_url_setting(
            settings.api_url.as_deref().unwrap_or(DEFAULT_API_URL),
            CHANNEL_NAME,
            name,
            "api_url",
        )?;
        let api = WhatsappApi::new(clients.client_for(&url), url, settings.access_token.clone());
        let (name, settings) = (name.to_owned(), settings.clone());
        Ok(Self {
            name,
            settings,
            clock,
            api,
            connection: ConnectionTracker::default(),
            last: Mutex::default(),
        })
    }

    pub(super) fn inbound_from_message(
        &self,
        value: &ChangeValue,
        message: &WhatsappMessage,
    ) -> Option<InboundMessage> {
        let inbound = value.to_inbound(&self.name, message)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() >= MAX_REMEMBERED_CONVERSATIONS {
            last.clear();
        }
        last.insert(inbound.address.peer.clone(), inbound.platform_id.clone());
        drop(last);
        Some(inbound)
    }
}

impl accounts::PlatformAccount for WhatsappAccount {
    const CHANNEL: &'static str = CHANNEL_NAME;
    /// Meta has no idempotency keys, so a repeat would be shown twice. Sent messages cannot be edited.
    const CAPABILITIES: ChannelCapabilities = ChannelCapabilities {
        idempotent_send: false,
        max_chars: MAX_MESSAGE_CHARS,
        edits: false,
        acknowledges: true,
    };

    /// There is no connection. Setting the command menu has shown whether Meta accepts the token.
    fn connection_state(&self) -> ConnectionState {
        match self.connection.connection_state() {
            ConnectionState::Connected => ConnectionState::WebhookOnly,
            other => other,
        }
    }

    /// A person's id is a phone number, a group's is not.
    async fn send(&self, _: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let peer = &outgoing.address().peer;
        let is_person = peer.bytes().all(|byte| byte.is_ascii_digit() || byte == b'+');
        let mut body = json!({
            "messaging_product": "whatsapp",
            "recipient_type": if is_person { "individual" } else { "group" },
            "to": peer,
        });
        // Meta allows buttons only in conversations with one person.
        match interactive_body(outgoing).filter(|_| is_person) {
            Some(interactive) => {
                body["type"] = "interactive".into();
                body["interactive"] = interactive;
            }
            None => {
                body["type"] = "text".into();
                // Link previews are off: Meta would fetch a URL that an agent wrote and so tell that server about it.
                body["text"] = json!({ "preview_url": false, "body": outgoing.text() });
            }
        }
        self.api.send_message(&self.settings.phone_number_id, &body).await
    }

    /// Meta shows the indicator for 25 seconds or until a reply arrives, and marks the message as read.
    async fn send_typing(&self, address: &ChatAddress) {
        let message = self.last.lock().unwrap_or_else(PoisonError::into_inner).get(&address.peer).cloned();
        let Some(message) = message else { return };
        let body = json!({
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": message,
            "typing_indicator": { "type": "text" },
        });
        let sent = self.api.send_message(&self.settings.phone_number_id, &body).await;
        tracing::trace!(account = self.name, ?sent, "sent the typing indicator to WhatsApp");
    }

    async fn fetch_attachment(&self, attached: &AttachmentRef) -> Option<AttachmentContent> {
        let request = self.api.file_request(attached.handle.as_ref()?).await?;
        attachment::read_attachment(attached, request).await
    }

    async fn set_command_menu(&self, items: &[MenuItem]) -> Result<(), String> {
        let command = |item: &MenuItem| {
            let description = menu_description(item, MAX_COMMAND_DESCRIPTION_CHARS);
            json!({ "command_name": item.command, "command_description": description })
        };
        let commands: Vec<_> = items.iter().take(MAX_MENU_COMMANDS).map(command).collect();
        let result =
            self.api.configure_number(&self.settings.phone_number_id, &json!({ "commands": commands })).await;
        match &result {
            Ok(()) => self.connection.set_connected(),
            Err(why) => self.connection.set_disconnected(format!(
                "WhatsApp rejected the phone number settings: {why}; check the access_token and phone_number_id"
            )),
        }
        result
    }

    async fn handle_webhook(
        &self,
        call: &WebhookRequest,
        inbox: &dyn InboundSink,
        all: &BTreeMap<String, Self>,
    ) -> WebhookResponse {
        self.answer_webhook(call, inbox, all).await
    }
}

/// Builds the body of a text with buttons. Returns `None` if there are no buttons or the text is too long. The text is
/// then sent alone and names the commands.
fn interactive_body(outgoing: &OutgoingMessage) -> Option<serde_json::Value> {
    let (text, buttons) = (outgoing.text(), outgoing.buttons());
    if buttons.is_empty() || text.chars().count() > MAX_BUTTON_TEXT_CHARS {
        return None;
    }
    let button = |button: &CommandButton| json!({ "type": "reply", "reply": { "id": button.command, "title": button.label } });
    let buttons: Vec<_> = buttons.iter().map(button).collect();
    Some(json!({ "type": "button", "body": { "text": text }, "action": { "buttons": buttons } }))
}
