//! Message buttons and the deliveries of their presses.

use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::delivery::CommandButton;
use serde::Deserialize;
use serde_json::{Value, json};

use super::event::{SlackIdentity, inbound_context, is_foreign, reply_address};

/// Slack's limit for the text of a block.
const MAX_BLOCK_TEXT_CHARS: usize = 3_000;

/// Builds the blocks of a text with buttons. Returns `None` if there are no buttons or the text is too long. The text
/// is then sent alone and names the commands.
pub(super) fn message_blocks(text: &str, buttons: &[CommandButton]) -> Option<Value> {
    if buttons.is_empty() || text.chars().count() > MAX_BLOCK_TEXT_CHARS {
        return None;
    }
    let button = |(at, button): (usize, &CommandButton)| {
        let mut block = json!({
            "type": "button",
            "action_id": format!("button-{at}"),
            "text": { "type": "plain_text", "text": button.label },
            "value": button.command,
        });
        if at == 0 {
            block["style"] = "primary".into();
        }
        block
    };
    let buttons: Vec<Value> = buttons.iter().enumerate().map(button).collect();
    let reply = json!({ "type": "section", "text": { "type": "mrkdwn", "text": text, "verbatim": true } });
    Some(json!([reply, { "type": "actions", "elements": buttons }]))
}

/// A press of a button.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SlackInteraction {
    #[serde(rename = "type")]
    kind: String,
    user: SlackObject,
    /// The workspace of the app; `None` if it is installed for a whole organisation.
    team: Option<SlackObject>,
    is_enterprise_install: Value,
    channel: SlackObject,
    /// The message with the button.
    message: InteractionMessage,
    actions: Vec<BlockAction>,
    /// The unique id of this press.
    trigger_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SlackObject {
    id: String,
    /// Set for users.
    username: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InteractionMessage {
    ts: String,
    thread_ts: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BlockAction {
    value: String,
}

impl SlackInteraction {
    pub fn team_id(&self) -> Option<&str> {
        self.team.as_ref().map(|team| team.id.as_str())
    }

    pub fn is_foreign(&self, me: &SlackIdentity) -> bool {
        is_foreign(me, self.team_id(), &self.is_enterprise_install)
    }

    /// Converts the press to an inbound message with the button's command, from the user who pressed it.
    pub fn to_inbound(&self, me: &SlackIdentity) -> Option<InboundMessage> {
        let command = self.actions.first().map(|action| action.value.as_str()).unwrap_or_default();
        let ids = [command, &self.user.id, &self.channel.id, &self.trigger_id];
        if self.kind != "block_actions" || ids.iter().any(|id| id.is_empty()) {
            return None;
        }
        let thread = self.message.thread_ts.as_deref().filter(|thread| *thread != self.message.ts);
        Some(InboundMessage {
            context: inbound_context(me, &self.channel.id, &self.user.id, self.team_id(), thread),
            address: reply_address(me, &self.channel.id, thread),
            platform_id: format!("press:{}", self.trigger_id),
            text: command.to_owned(),
            attachments: Vec::new(),
            mentioned: true,
            sender_name: self.user.username.clone(),
        })
    }
}
