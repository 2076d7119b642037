//! One Telegram bot.

use polyclaw_domain::channel::{
    AttachmentRef, ChannelCapabilities, ChatAddress, ConnectionState, InboundSink, MenuItem, SendOutcome,
};
use polyclaw_domain::config;
use polyclaw_domain::delivery::{CommandButton, OutgoingMessage};
use serde_json::{Value, json};

use super::api::TelegramApi;
use super::{CHANNEL_NAME, attachments};
use crate::accounts::{self, menu_description};
use crate::attachment::AttachmentContent;
use crate::client::{self, PlatformClients};
use crate::connection_state::ConnectionTracker;
use crate::{Error, RetryTiming};

/// Telegram's limit is 4096 characters. Sources disagree whether a character outside the basic plane (most emoji)
/// counts as one or, as in entities, as two. Half the limit is safe either way.
const MAX_MESSAGE_CHARS: usize = 2048;
const DEFAULT_API_URL: &str = "https://api.telegram.org";
/// Telegram's limits for the command menu.
const MAX_MENU_COMMANDS: usize = 100;
const MAX_COMMAND_DESCRIPTION_CHARS: usize = 256;
/// Telegram's limit for the callback data of a button.
const MAX_CALLBACK_DATA_BYTES: usize = 64;

pub struct TelegramAccount {
    pub(super) name: String,
    pub(super) api: TelegramApi,
    pub(super) retry_timing: RetryTiming,
    pub(super) connection: ConnectionTracker,
}

impl TelegramAccount {
    pub(super) fn new(
        name: &str,
        bot: &config::TelegramConfig,
        clients: &PlatformClients,
        pace: RetryTiming,
    ) -> Result<Self, Error> {
        let root = client::parse_url_setting(
            bot.api_url.as_deref().unwrap_or(DEFAULT_API_URL),
            CHANNEL_NAME,
            name,
            "api_url",
        )?;
        let client = clients.client_for(&root);
        let api = TelegramApi { root, token: bot.bot_token.clone(), client };
        Ok(Self { name: name.to_owned(), api, retry_timing: pace, connection: ConnectionTracker::default() })
    }
}

impl accounts::PlatformAccount for TelegramAccount {
    const CHANNEL: &'static str = CHANNEL_NAME;
    const CAPABILITIES: ChannelCapabilities = ChannelCapabilities {
        idempotent_send: false,
        max_chars: MAX_MESSAGE_CHARS,
        edits: true,
        acknowledges: true,
    };

    fn connection_state(&self) -> ConnectionState {
        self.connection.connection_state()
    }

    async fn send(&self, _: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let mut body = chat_target(outgoing.address());
        body["text"] = outgoing.text().into();
        disable_link_preview(&mut body);
        if let Some(keyboard) = inline_keyboard(outgoing.buttons()) {
            body["reply_markup"] = keyboard;
        }
        self.api.write_message("sendMessage", &body, false).await
    }

    async fn edit(&self, platform_id: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let mut body = json!({ "chat_id": id(&outgoing.address().peer), "message_id": id(platform_id) });
        body["text"] = outgoing.text().into();
        disable_link_preview(&mut body);
        match self.api.write_message("editMessageText", &body, true).await {
            SendOutcome::Accepted { .. } => {
                SendOutcome::Accepted { platform_id: Some(platform_id.to_owned()) }
            }
            other => other,
        }
    }

    async fn send_typing(&self, address: &ChatAddress) {
        let mut body = chat_target(address);
        body["action"] = "typing".into();
        if let Err(refusal) = self.api.call("sendChatAction", &body, None).await {
            tracing::debug!(
                account = self.name,
                reason = refusal.reason,
                "could not show the typing indicator on Telegram"
            );
        }
    }

    async fn fetch_attachment(&self, attached: &AttachmentRef) -> Option<AttachmentContent> {
        attachments::fetch_attachment(&self.api, attached).await
    }

    async fn set_command_menu(&self, items: &[MenuItem]) -> Result<(), String> {
        let command = |item: &MenuItem| {
            let description = menu_description(item, MAX_COMMAND_DESCRIPTION_CHARS);
            json!({ "command": item.command, "description": description })
        };
        let commands: Value = items.iter().take(MAX_MENU_COMMANDS).map(command).collect();
        let set = self.api.call("setMyCommands", &json!({ "commands": commands }), None).await;
        set.map(|_| ()).map_err(|refusal| refusal.reason)
    }

    fn has_receive_loop(&self) -> bool {
        true
    }

    async fn receive_messages(&self, inbox: &dyn InboundSink) {
        self.receive_updates(inbox).await;
    }
}

fn chat_target(address: &ChatAddress) -> Value {
    let mut body = json!({ "chat_id": id(&address.peer) });
    if let Some(topic) = &address.thread {
        body["message_thread_id"] = id(topic);
    }
    body
}

/// Puts the buttons in one row. Returns `None` if a command exceeds the limit, because Telegram would reject the
/// message.
fn inline_keyboard(buttons: &[CommandButton]) -> Option<Value> {
    let fit =
        !buttons.is_empty() && buttons.iter().all(|button| button.command.len() <= MAX_CALLBACK_DATA_BYTES);
    let button = |button: &CommandButton| json!({ "text": button.label, "callback_data": button.command });
    fit.then(|| json!({ "inline_keyboard": [buttons.iter().map(button).collect::<Vec<_>>()] }))
}

/// Ids are numbers, except for public names of channels.
fn id(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), Into::into)
}

/// Turns off the link preview: Telegram's servers must not fetch a URL only because a model wrote it.
fn disable_link_preview(body: &mut Value) {
    body["link_preview_options"] = json!({ "is_disabled": true });
}
