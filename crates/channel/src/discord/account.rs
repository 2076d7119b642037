//! One bot.

use polyclaw_domain::channel::{
    AttachmentRef, ChannelCapabilities, ChatAddress, ConnectionState, InboundSink, MenuItem, SendOutcome,
};
use polyclaw_domain::config;
use polyclaw_domain::delivery::{CommandButton, OutgoingMessage};
use polyclaw_domain::hex::encode_hex;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::api::Api;
use super::{NAME, attached};
use crate::accounts::{self, description};
use crate::attachment::Content;
use crate::client::{self, Clients};
use crate::link::Link;
use crate::{Error, Pace, socket};

/// Discord counts code points, and so does the engine.
pub(super) const MAX_CHARS: usize = 2000;
/// Discord recognises a nonce "for a few minutes". This is surely less.
const REMEMBERED_MS: i64 = 2 * 60 * 1000;
const ROOT: &str = "https://discord.com/api/v10";
/// What Discord takes of a menu.
const MAX_COMMANDS: usize = 100;
const MAX_DESCRIPTION: usize = 100;
/// What Discord takes of a nonce.
const NONCE_CHARS: usize = 25;
/// Addresses in a message are not fetched by Discord to be shown: nobody but a model has asked for that.
const SUPPRESS_EMBEDS: u64 = 1 << 2;

pub struct Account {
    pub(super) name: String,
    pub(super) api: Api,
    /// In place of the one that Discord names.
    pub(super) gateway: Option<String>,
    pub(super) pace: Pace,
    pub(super) link: Link,
}

impl Account {
    pub(super) fn new(
        name: &str,
        bot: &config::DiscordConfig,
        clients: &Clients,
        pace: Pace,
    ) -> Result<Self, Error> {
        let root = client::setting(bot.api_url.as_deref().unwrap_or(ROOT), NAME, name, "api_url")?;
        if bot.gateway_url.as_deref().is_some_and(|url| !socket::is_address(url)) {
            return Err(Error::Url { channel: NAME, account: name.to_owned(), setting: "gateway_url" });
        }
        let client = clients.reaching(&root);
        let (name, gateway) = (name.to_owned(), bot.gateway_url.clone());
        let api = Api { root, token: bot.bot_token.clone(), client };
        Ok(Self { name, api, gateway, pace, link: Link::default() })
    }
}

impl accounts::Account for Account {
    const CHANNEL: &'static str = NAME;
    const CAPABILITIES: ChannelCapabilities =
        ChannelCapabilities { idempotent_send: true, max_chars: MAX_CHARS, edits: true, acknowledges: true };
    const REMEMBERED_MS: Option<i64> = Some(REMEMBERED_MS);

    fn standing(&self) -> ConnectionState {
        self.link.standing()
    }

    /// Discord shows a nonce once for a few minutes. So what is unknown stays unknown here, and the engine, which
    /// knows how old the message is, decides about a repeat.
    async fn send(&self, key: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let mut body = content(outgoing.text());
        body["nonce"] = nonce(key).into();
        body["enforce_nonce"] = true.into();
        if !outgoing.buttons().is_empty() {
            body["components"] = row(outgoing.buttons());
        }
        let path = ["channels", place(outgoing.address()), "messages"];
        self.api.show(Method::POST, &path, &body, false).await
    }

    async fn edit(&self, platform_id: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let path = ["channels", place(outgoing.address()), "messages", platform_id];
        self.api.show(Method::PATCH, &path, &content(outgoing.text()), true).await
    }

    async fn typing(&self, address: &ChatAddress) {
        let path = ["channels", place(address), "typing"];
        if let Err(refusal) = self.api.call(Method::POST, &path, Some(&json!({}))).await {
            tracing::debug!(account = self.name, reason = refusal.reason, "Discord shows nobody typing");
        }
    }

    async fn fetch(&self, attached: &AttachmentRef) -> Option<Content> {
        attached::fetch(&self.api, attached).await
    }

    async fn menu(&self, items: &[MenuItem]) -> Result<(), String> {
        let application = self.api.get(&["applications", "@me"], &[], self.pace.backoff()).await;
        let application = application.map_err(|refusal| refusal.reason)?;
        let id =
            application.get("id").and_then(Value::as_str).ok_or("Discord does not say which app this is")?;
        let commands: Value = items.iter().take(MAX_COMMANDS).map(command).collect();
        let set = self.api.call(Method::PUT, &["applications", id, "commands"], Some(&commands)).await;
        set.map(|_| ()).map_err(|refusal| refusal.reason)
    }

    fn connects(&self) -> bool {
        true
    }

    async fn receive(&self, inbox: &dyn InboundSink) {
        self.listen(inbox).await;
    }
}

/// A thread is a channel of its own.
fn place(address: &ChatAddress) -> &str {
    address.thread.as_ref().unwrap_or(&address.peer)
}

/// Names of people, roles and everybody in a text are only text: nobody is called by what a model wrote.
fn content(text: &str) -> Value {
    json!({ "content": text, "allowed_mentions": { "parse": [] }, "flags": SUPPRESS_EMBEDS })
}

/// The buttons in one row: the first is the one that allows.
fn row(buttons: &[CommandButton]) -> Value {
    /// Discord's numbers for what a component is and how a button looks.
    const ROW: u8 = 1;
    const BUTTON: u8 = 2;
    const GREY: u8 = 2;
    const GREEN: u8 = 3;
    let button = |(at, button): (usize, &CommandButton)| {
        let style = if at == 0 { GREEN } else { GREY };
        json!({ "type": BUTTON, "style": style, "label": button.label, "custom_id": button.command })
    };
    let buttons: Vec<Value> = buttons.iter().enumerate().map(button).collect();
    json!([{ "type": ROW, "components": buttons }])
}

fn nonce(key: &str) -> String {
    let mut nonce = encode_hex(&Sha256::digest(key.as_bytes()));
    nonce.truncate(NONCE_CHARS);
    nonce
}

/// A command with room for whatever is to be said after it.
fn command(item: &MenuItem) -> Value {
    let text = json!({ "type": 3, "name": "text", "description": "what to say", "required": false });
    json!({ "type": 1, "name": item.command, "description": description(item, MAX_DESCRIPTION), "options": [text] })
}
