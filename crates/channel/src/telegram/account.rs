//! One bot.

use polyclaw_domain::channel::{
    AttachmentRef, ChannelCapabilities, ChatAddress, ConnectionState, InboundSink, MenuItem, SendOutcome,
};
use polyclaw_domain::config;
use polyclaw_domain::delivery::{CommandButton, OutgoingMessage};
use serde_json::{Value, json};

use super::api::Api;
use super::{NAME, file};
use crate::accounts::{self, description};
use crate::attachment::Content;
use crate::client::{self, Clients};
use crate::link::Link;
use crate::{Error, Pace};

/// Telegram takes 4096 characters. Whether it counts a character outside the basic plane (most emoji) as one or, as
/// its entities do, as two is told differently; half of it fits either way.
const MAX_CHARS: usize = 2048;
const ROOT: &str = "https://api.telegram.org";
/// What Telegram takes of a menu.
const MAX_COMMANDS: usize = 100;
const MAX_DESCRIPTION: usize = 256;
/// What Telegram takes of what a button says when it is pressed, in bytes.
const MAX_PRESSED: usize = 64;

pub struct Account {
    pub(super) name: String,
    pub(super) api: Api,
    pub(super) pace: Pace,
    pub(super) link: Link,
}

impl Account {
    pub(super) fn new(
        name: &str,
        bot: &config::TelegramConfig,
        clients: &Clients,
        pace: Pace,
    ) -> Result<Self, Error> {
        let root = client::setting(bot.api_url.as_deref().unwrap_or(ROOT), NAME, name, "api_url")?;
        let client = clients.reaching(&root);
        let api = Api { root, token: bot.bot_token.clone(), client };
        Ok(Self { name: name.to_owned(), api, pace, link: Link::default() })
    }
}

impl accounts::Account for Account {
    const CHANNEL: &'static str = NAME;
    const CAPABILITIES: ChannelCapabilities =
        ChannelCapabilities { idempotent_send: false, max_chars: MAX_CHARS, edits: true, acknowledges: true };

    fn standing(&self) -> ConnectionState {
        self.link.standing()
    }

    async fn send(&self, _: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let mut body = place(outgoing.address());
        body["text"] = outgoing.text().into();
        quiet(&mut body);
        if let Some(keyboard) = keyboard(outgoing.buttons()) {
            body["reply_markup"] = keyboard;
        }
        self.api.show("sendMessage", &body, false).await
    }

    async fn edit(&self, platform_id: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let mut body = json!({ "chat_id": id(&outgoing.address().peer), "message_id": id(platform_id) });
        body["text"] = outgoing.text().into();
        quiet(&mut body);
        match self.api.show("editMessageText", &body, true).await {
            SendOutcome::Accepted { .. } => {
                SendOutcome::Accepted { platform_id: Some(platform_id.to_owned()) }
            }
            other => other,
        }
    }

    async fn typing(&self, address: &ChatAddress) {
        let mut body = place(address);
        body["action"] = "typing".into();
        if let Err(refusal) = self.api.call("sendChatAction", &body, None).await {
            tracing::debug!(account = self.name, reason = refusal.reason, "Telegram shows nobody typing");
        }
    }

    async fn fetch(&self, attached: &AttachmentRef) -> Option<Content> {
        file::fetch(&self.api, attached).await
    }

    async fn menu(&self, items: &[MenuItem]) -> Result<(), String> {
        let command = |item: &MenuItem| {
            let description = description(item, MAX_DESCRIPTION);
            json!({ "command": item.command, "description": description })
        };
        let commands: Value = items.iter().take(MAX_COMMANDS).map(command).collect();
        let set = self.api.call("setMyCommands", &json!({ "commands": commands }), None).await;
        set.map(|_| ()).map_err(|refusal| refusal.reason)
    }

    fn connects(&self) -> bool {
        true
    }

    async fn receive(&self, inbox: &dyn InboundSink) {
        self.listen(inbox).await;
    }
}

fn place(address: &ChatAddress) -> Value {
    let mut body = json!({ "chat_id": id(&address.peer) });
    if let Some(topic) = &address.thread {
        body["message_thread_id"] = id(topic);
    }
    body
}

/// The buttons in one row. One whose command is longer than Telegram takes would have the message refused.
fn keyboard(buttons: &[CommandButton]) -> Option<Value> {
    let fit = !buttons.is_empty() && buttons.iter().all(|button| button.command.len() <= MAX_PRESSED);
    let button = |button: &CommandButton| json!({ "text": button.label, "callback_data": button.command });
    fit.then(|| json!({ "inline_keyboard": [buttons.iter().map(button).collect::<Vec<_>>()] }))
}

/// Ids are numbers, but for the public names of channels.
fn id(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), Into::into)
}

/// A preview makes Telegram's servers fetch an address because a model wrote it: nobody has asked for that.
fn quiet(body: &mut Value) {
    body["link_preview_options"] = json!({ "is_disabled": true });
}
