//! One Discord bot.

use polyclaw_domain::channel::{
    AttachmentRef, ChannelCapabilities, ChatAddress, ConnectionState, InboundSink, MenuItem, SendOutcome,
};
use polyclaw_domain::config;
use polyclaw_domain::delivery::{CommandButton, OutgoingMessage};
use polyclaw_domain::hex::encode_hex;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::api::DiscordApi;
use super::{CHANNEL_NAME, attachments};
use crate::accounts::{self, menu_description};
use crate::attachment::AttachmentContent;
use crate::client::{self, PlatformClients};
use crate::connection_state::ConnectionTracker;
use crate::{Error, RetryTiming, socket};

/// Discord counts Unicode code points, as the engine does.
pub(super) const MAX_MESSAGE_CHARS: usize = 2000;
/// Discord recognises a nonce "for a few minutes". Two minutes are safely below that.
const NONCE_DEDUP_WINDOW_MS: i64 = 2 * 60 * 1000;
const DEFAULT_API_URL: &str = "https://discord.com/api/v10";
/// Discord's limits for the command menu.
const MAX_MENU_COMMANDS: usize = 100;
const MAX_COMMAND_DESCRIPTION_CHARS: usize = 100;
/// Discord's limit for the length of a nonce.
const NONCE_CHARS: usize = 25;
/// Message flag that turns off link previews: Discord must not fetch a URL only because a model wrote it.
const SUPPRESS_EMBEDS: u64 = 1 << 2;

pub struct DiscordAccount {
    pub(super) name: String,
    pub(super) api: DiscordApi,
    /// Replaces the gateway URL that Discord returns.
    pub(super) gateway: Option<String>,
    pub(super) retry_timing: RetryTiming,
    pub(super) connection: ConnectionTracker,
}

impl DiscordAccount {
    pub(super) fn new(
        name: &str,
        bot: &config::DiscordConfig,
        clients: &PlatformClients,
        pace: RetryTiming,
    ) -> Result<Self, Error> {
        let root = client::parse_url_setting(
            bot.api_url.as_deref().unwrap_or(DEFAULT_API_URL),
            CHANNEL_NAME,
            name,
            "api_url",
        )?;
        if bot.gateway_url.as_deref().is_some_and(|url| !socket::is_websocket_url(url)) {
            return Err(Error::Url {
                channel: CHANNEL_NAME,
                account: name.to_owned(),
                setting: "gateway_url",
            });
        }
        let client = clients.client_for(&root);
        let (name, gateway) = (name.to_owned(), bot.gateway_url.clone());
        let api = DiscordApi { root, token: bot.bot_token.clone(), client };
        Ok(Self { name, api, gateway, retry_timing: pace, connection: ConnectionTracker::default() })
    }
}

impl accounts::PlatformAccount for DiscordAccount {
    const CHANNEL: &'static str = CHANNEL_NAME;
    const CAPABILITIES: ChannelCapabilities = ChannelCapabilities {
        idempotent_send: true,
        max_chars: MAX_MESSAGE_CHARS,
        edits: true,
        acknowledges: true,
    };
    const IDEMPOTENCY_WINDOW_MS: Option<i64> = Some(NONCE_DEDUP_WINDOW_MS);

    fn connection_state(&self) -> ConnectionState {
        self.connection.connection_state()
    }

    /// Sends with a nonce, which Discord deduplicates for a few minutes. A failed request is therefore reported as
    /// unknown, and the engine, which knows the age of the message, decides whether to repeat it.
    async fn send(&self, key: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let mut body = message_body(outgoing.text());
        body["nonce"] = nonce_from_key(key).into();
        body["enforce_nonce"] = true.into();
        if !outgoing.buttons().is_empty() {
            body["components"] = action_row(outgoing.buttons());
        }
        let path = ["channels", target_channel(outgoing.address()), "messages"];
        self.api.write_message(Method::POST, &path, &body, false).await
    }

    async fn edit(&self, platform_id: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let path = ["channels", target_channel(outgoing.address()), "messages", platform_id];
        self.api.write_message(Method::PATCH, &path, &message_body(outgoing.text()), true).await
    }

    async fn send_typing(&self, address: &ChatAddress) {
        let path = ["channels", target_channel(address), "typing"];
        if let Err(refusal) = self.api.call(Method::POST, &path, Some(&json!({}))).await {
            tracing::debug!(
                account = self.name,
                reason = refusal.reason,
                "could not show the typing indicator on Discord"
            );
        }
    }

    async fn fetch_attachment(&self, attached: &AttachmentRef) -> Option<AttachmentContent> {
        attachments::fetch_attachment(&self.api, attached).await
    }

    async fn set_command_menu(&self, items: &[MenuItem]) -> Result<(), String> {
        let application = self.api.get(&["applications", "@me"], &[], self.retry_timing.backoff()).await;
        let application = application.map_err(|refusal| refusal.reason)?;
        let id = application
            .get("id")
            .and_then(Value::as_str)
            .ok_or("Discord did not return the application id")?;
        let commands: Value = items.iter().take(MAX_MENU_COMMANDS).map(command_definition).collect();
        let set = self.api.call(Method::PUT, &["applications", id, "commands"], Some(&commands)).await;
        set.map(|_| ()).map_err(|refusal| refusal.reason)
    }

    fn has_receive_loop(&self) -> bool {
        true
    }

    async fn receive_messages(&self, inbox: &dyn InboundSink) {
        self.receive_events(inbox).await;
    }
}

/// Returns the channel to write to. A thread is a channel of its own.
fn target_channel(address: &ChatAddress) -> &str {
    address.thread.as_ref().unwrap_or(&address.peer)
}

/// Builds the body of a message. Mentions are disabled, so that text of a model cannot ping people, roles or everyone.
fn message_body(text: &str) -> Value {
    json!({ "content": text, "allowed_mentions": { "parse": [] }, "flags": SUPPRESS_EMBEDS })
}

/// Puts the buttons in one row. The first one approves, so it is green.
fn action_row(buttons: &[CommandButton]) -> Value {
    /// Discord's codes for component types and button styles.
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

fn nonce_from_key(key: &str) -> String {
    let mut nonce = encode_hex(&Sha256::digest(key.as_bytes()));
    nonce.truncate(NONCE_CHARS);
    nonce
}

/// Defines a slash command with one optional text argument.
fn command_definition(item: &MenuItem) -> Value {
    let text = json!({ "type": 3, "name": "text", "description": "your message", "required": false });
    json!({ "type": 1, "name": item.command, "description": menu_description(item, MAX_COMMAND_DESCRIPTION_CHARS), "options": [text] })
}
