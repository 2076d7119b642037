//! One Slack app in one workspace.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyclaw_domain::channel::{
    AttachmentRef, ChannelCapabilities, ConnectionState, InboundMessage, InboundSink, IngestOutcome,
    SendOutcome, WebhookRequest, WebhookResponse,
};
use polyclaw_domain::config::{self, SlackMode};
use polyclaw_domain::delivery::OutgoingMessage;
use polyclaw_domain::port::WallClock;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::CHANNEL_NAME;
use super::api::{SlackApi, with_setting_hint};
use super::event::{EventCallback, SlackIdentity, SlashCommand};
use super::interaction::{SlackInteraction, message_blocks};
use super::text;
use crate::accounts;
use crate::attachment::{self, AttachmentContent};
use crate::client::{self, PlatformClients};
use crate::connection_state::ConnectionTracker;
use crate::{Error, RetryTiming};

/// Slack recommends 4,000 and rejects an edit that makes a message longer than that. `&`, `<` and `>` are sent as up to
/// five characters, so some room is left.
const MAX_MESSAGE_CHARS: usize = 3_000;
const DEFAULT_API_URL: &str = "https://slack.com/api";

pub struct SlackAccount {
    pub(super) name: String,
    pub(super) settings: config::SlackConfig,
    pub(super) api: SlackApi,
    pub(super) clock: Arc<dyn WallClock>,
    pub(super) retry_timing: RetryTiming,
    pub(super) connection: ConnectionTracker,
    identity: OnceCell<SlackIdentity>,
}

/// A delivery from Slack.
pub(super) enum SlackDelivery {
    Callback(Box<EventCallback>),
    Command(SlashCommand),
    Press(SlackInteraction),
}

impl SlackDelivery {
    /// Returns `None` for other kinds and malformed payloads: a redelivery would not help.
    pub fn from_payload(kind: &str, payload: &Value) -> Option<Self> {
        match kind {
            "events_api" => {
                EventCallback::deserialize(payload).ok().map(|callback| Self::Callback(Box::new(callback)))
            }
            "slash_commands" => SlashCommand::deserialize(payload).ok().map(Self::Command),
            "interactive" => SlackInteraction::deserialize(payload).ok().map(Self::Press),
            _ => None,
        }
    }

    fn to_inbound(&self, me: &SlackIdentity) -> Option<InboundMessage> {
        match self {
            Self::Callback(callback) => callback.event.to_inbound(me, callback.team_id.as_deref()),
            Self::Command(command) => command.to_inbound(me),
            Self::Press(press) => press.to_inbound(me),
        }
    }

    /// Whether the delivery is for another workspace with the same app. This account's token could not answer it.
    fn is_foreign(&self, me: &SlackIdentity) -> bool {
        match self {
            Self::Callback(callback) => callback.is_foreign(me),
            Self::Command(command) => command.is_foreign(me),
            Self::Press(press) => press.is_foreign(me),
        }
    }

    fn team_id(&self) -> Option<&str> {
        match self {
            Self::Callback(callback) => callback.team_id.as_deref(),
            Self::Command(command) => command.team_id.as_deref(),
            Self::Press(press) => press.team_id(),
        }
    }
}

impl SlackAccount {
    pub(super) fn new(
        name: &str,
        settings: &config::SlackConfig,
        clock: Arc<dyn WallClock>,
        clients: &PlatformClients,
        pace: RetryTiming,
    ) -> Result<Self, Error> {
        let url = client::parse_url_setting(
            settings.api_url.as_deref().unwrap_or(DEFAULT_API_URL),
            CHANNEL_NAME,
            name,
            "api_url",
        )?;
        let api = SlackApi::new(clients.client_for(&url), url);
        let (name, settings) = (name.to_owned(), settings.clone());
        Ok(Self {
            name,
            settings,
            api,
            clock,
            retry_timing: pace,
            connection: ConnectionTracker::default(),
            identity: OnceCell::new(),
        })
    }

    async fn write_message(&self, method: &str, body: &Value) -> SendOutcome {
        self.api.send_message(method, &self.settings.bot_token, body).await
    }

    /// Returns the identity of the app. Slack is asked once.
    pub(super) async fn identity(&self) -> Result<&SlackIdentity, String> {
        let ask = || async {
            let answer = self.api.query("auth.test", &self.settings.bot_token, &json!({})).await;
            let answer = answer.map_err(|reason| with_setting_hint(reason, "bot_token"))?;
            let text = |name: &str| answer[name].as_str().map(str::to_owned);
            let user = text("user_id").ok_or("Slack did not return the app's user id")?;
            let name = text("user").unwrap_or_default();
            Ok(SlackIdentity { account: self.name.clone(), user, name, team: text("team_id") })
        };
        self.identity.get_or_try_init(ask).await
    }

    /// Passes the message in a delivery to the inbox. A delivery without a message is done.
    pub(super) async fn ingest_delivery(
        &self,
        me: &SlackIdentity,
        delivery: &SlackDelivery,
        inbox: &dyn InboundSink,
    ) -> IngestOutcome {
        if delivery.is_foreign(me) {
            let (account, team) = (&self.name, delivery.team_id());
            tracing::warn!(account, team, "ignoring a delivery for another Slack workspace");
            return IngestOutcome::Done;
        }
        match delivery.to_inbound(me) {
            Some(message) => inbox.ingest_message(message).await,
            None => IngestOutcome::Done,
        }
    }
}

impl accounts::PlatformAccount for SlackAccount {
    const CHANNEL: &'static str = CHANNEL_NAME;
    /// Slack documents no idempotency key, so a repeat would be shown twice. Apps that receive events cannot show a
    /// typing indicator.
    const CAPABILITIES: ChannelCapabilities = ChannelCapabilities {
        idempotent_send: false,
        max_chars: MAX_MESSAGE_CHARS,
        edits: true,
        acknowledges: false,
    };

    fn connection_state(&self) -> ConnectionState {
        match self.settings.mode {
            SlackMode::Socket => self.connection.connection_state(),
            SlackMode::Events => ConnectionState::WebhookOnly,
        }
    }

    async fn send(&self, _: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let address = outgoing.address();
        // Link previews are off: fetching a URL that an agent wrote would tell that server about it.
        let mut body = json!({
            "channel": address.peer,
            "text": text::escape_text(outgoing.text()),
            "unfurl_links": false,
            "unfurl_media": false,
        });
        if let Some(thread) = &address.thread {
            body["thread_ts"] = json!(thread);
        }
        if let Some(blocks) = message_blocks(&text::escape_text(outgoing.text()), outgoing.buttons()) {
            body["blocks"] = blocks;
        }
        self.write_message("chat.postMessage", &body).await
    }

    async fn edit(&self, platform_id: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let Some((channel, ts)) = platform_id.rsplit_once(':') else {
            return SendOutcome::Rejected { reason: "this is not a Slack message id".to_owned() };
        };
        let body = json!({ "channel": channel, "ts": ts, "text": text::escape_text(outgoing.text()) });
        self.write_message("chat.update", &body).await
    }

    /// Sends the token only to Slack's file host and the configured API, whatever URL an event contains.
    async fn fetch_attachment(&self, attached: &AttachmentRef) -> Option<AttachmentContent> {
        let request = self.api.file_request(attached.handle.as_ref()?, &self.settings.bot_token)?;
        attachment::read_attachment(attached, request).await
    }

    fn has_receive_loop(&self) -> bool {
        self.settings.mode == SlackMode::Socket
    }

    async fn receive_messages(&self, inbox: &dyn InboundSink) {
        self.receive_events(inbox).await;
    }

    async fn handle_webhook(
        &self,
        call: &WebhookRequest,
        inbox: &dyn InboundSink,
        _: &BTreeMap<String, Self>,
    ) -> WebhookResponse {
        self.answer_webhook(call, inbox).await
    }
}
