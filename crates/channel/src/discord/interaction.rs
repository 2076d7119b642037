//! Slash commands and button presses. Discord shows an error unless it gets a response within three seconds, so the
//! response is deferred first and then confirmed to the user with the command that was recognised.

use polyclaw_domain::channel::InboundMessage;
use reqwest::Method;
use serde_json::{Value, json};

use super::account::{DiscordAccount, MAX_MESSAGE_CHARS};
use super::event::DiscordInteraction;
use super::inbound::{self, DiscordLocation};

const APPLICATION_COMMAND: u64 = 2;
const MESSAGE_COMPONENT: u64 = 3;
const DEFERRED_RESPONSE: u64 = 5;
/// Only the user who gave the command sees the response.
const EPHEMERAL: u64 = 1 << 6;

impl DiscordInteraction {
    /// Whether the interaction is a slash command or a press of a button under a message of this bot.
    pub fn is_command(&self) -> bool {
        matches!(self.kind, APPLICATION_COMMAND | MESSAGE_COMPONENT)
    }

    /// Returns the command as the user would type it.
    fn command_line(&self) -> Option<String> {
        if self.kind == MESSAGE_COMPONENT {
            return self.data.get("custom_id").and_then(Value::as_str).map(str::to_owned);
        }
        let command = self.data.get("name").and_then(Value::as_str)?;
        let options = self.data.get("options").and_then(Value::as_array).map(Vec::as_slice);
        let values = options.unwrap_or_default().iter().filter_map(|option| option.get("value")?.as_str());
        Some(values.fold(format!("/{command}"), |text, value| format!("{text} {value}")))
    }
}

impl DiscordAccount {
    /// Defers the response. Returns false if Discord no longer waits; the command is processed anyway.
    pub(super) async fn defer_interaction(&self, interaction: &DiscordInteraction) -> bool {
        let path = ["interactions", &interaction.id, &interaction.token, "callback"];
        let body = json!({ "type": DEFERRED_RESPONSE, "data": { "flags": EPHEMERAL } });
        self.api.call(Method::POST, &path, Some(&body)).await.is_ok()
    }

    /// Replaces "thinking" with the command. The answer is sent as a message of its own.
    pub(super) async fn confirm_interaction(&self, interaction: &DiscordInteraction, text: &str) {
        let path = ["webhooks", &interaction.application_id, &interaction.token, "messages", "@original"];
        let text: String = text.chars().take(MAX_MESSAGE_CHARS).collect();
        let body = json!({ "content": text, "allowed_mentions": { "parse": [] } });
        if let Err(refusal) = self.api.call(Method::PATCH, &path, Some(&body)).await {
            tracing::debug!(
                account = self.name,
                reason = refusal.reason,
                "could not confirm a Discord command to the user"
            );
        }
    }
}

/// Converts an interaction to an inbound `/name text` message that mentions the bot.
pub(super) fn inbound_from_interaction(
    interaction: &DiscordInteraction,
    place: &DiscordLocation,
    account: &str,
) -> Option<InboundMessage> {
    let member = interaction.member.as_ref();
    let user = member.and_then(|member| member.user.as_ref()).or(interaction.user.as_ref())?;
    let text = interaction.command_line()?;
    let roles = member.map(|member| member.roles.clone()).unwrap_or_default();
    Some(InboundMessage {
        context: place.inbound_context(account, &user.id, roles),
        address: place.reply_address(account),
        platform_id: interaction.id.clone(),
        text,
        attachments: Vec::new(),
        mentioned: true,
        sender_name: Some(inbound::display_name(user, member)),
    })
}
