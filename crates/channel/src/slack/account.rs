//! One app in one workspace.

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

use super::NAME;
use super::api::{Api, blaming};
use super::event::{Callback, Command, Identity};
use super::press::{Press, blocks};
use super::text;
use crate::accounts;
use crate::attachment::{self, Content};
use crate::client::{self, Clients};
use crate::link::Link;
use crate::{Error, Pace};

/// Slack advises 4,000 and refuses to change a message into a longer one. `&`, `<` and `>` are sent as up to five
/// characters, so there has to be room.
const MAX_CHARS: usize = 3_000;
const API: &str = "https://slack.com/api";

pub struct Account {
    pub(super) name: String,
    pub(super) settings: config::SlackConfig,
    pub(super) api: Api,
    pub(super) clock: Arc<dyn WallClock>,
    pub(super) pace: Pace,
    pub(super) link: Link,
    identity: OnceCell<Identity>,
}

/// What Slack delivered.
pub(super) enum Delivery {
    Callback(Box<Callback>),
    Command(Command),
    Press(Press),
}

impl Delivery {
    /// Nothing where it is of another kind, or not as it should be: having it delivered again would not help.
    pub fn read(kind: &str, payload: &Value) -> Option<Self> {
        match kind {
            "events_api" => {
                Callback::deserialize(payload).ok().map(|callback| Self::Callback(Box::new(callback)))
            }
            "slash_commands" => Command::deserialize(payload).ok().map(Self::Command),
            "interactive" => Press::deserialize(payload).ok().map(Self::Press),
            _ => None,
        }
    }

    fn letter(&self, me: &Identity) -> Option<InboundMessage> {
        match self {
            Self::Callback(callback) => callback.event.letter(me, callback.team_id.as_deref()),
            Self::Command(command) => command.letter(me),
            Self::Press(press) => press.letter(me),
        }
    }

    /// It is for another workspace that has the same app: this account's token could not answer it.
    fn is_foreign(&self, me: &Identity) -> bool {
        match self {
            Self::Callback(callback) => callback.is_foreign(me),
            Self::Command(command) => command.is_foreign(me),
            Self::Press(press) => press.is_foreign(me),
        }
    }

    fn team(&self) -> Option<&str> {
        match self {
            Self::Callback(callback) => callback.team_id.as_deref(),
            Self::Command(command) => command.team_id.as_deref(),
            Self::Press(press) => press.team(),
        }
    }
}

impl Account {
    pub(super) fn new(
        name: &str,
        settings: &config::SlackConfig,
        clock: Arc<dyn WallClock>,
        clients: &Clients,
        pace: Pace,
    ) -> Result<Self, Error> {
        let url = client::setting(settings.api_url.as_deref().unwrap_or(API), NAME, name, "api_url")?;
        let api = Api::new(clients.reaching(&url), url);
        let (name, settings) = (name.to_owned(), settings.clone());
        Ok(Self { name, settings, api, clock, pace, link: Link::default(), identity: OnceCell::new() })
    }

    async fn show(&self, method: &str, body: &Value) -> SendOutcome {
        self.api.send(method, &self.settings.bot_token, body).await
    }

    /// Who it is. Slack is asked once.
    pub(super) async fn identity(&self) -> Result<&Identity, String> {
        let ask = || async {
            let answer = self.api.ask("auth.test", &self.settings.bot_token, &json!({})).await;
            let answer = answer.map_err(|reason| blaming(reason, "bot_token"))?;
            let text = |name: &str| answer[name].as_str().map(str::to_owned);
            let user = text("user_id").ok_or("Slack does not say who this app is")?;
            let name = text("user").unwrap_or_default();
            Ok(Identity { account: self.name.clone(), user, name, team: text("team_id") })
        };
        self.identity.get_or_try_init(ask).await
    }

    /// Puts the letter in it into the inbox. What is no letter is done with.
    pub(super) async fn take(
        &self,
        me: &Identity,
        delivery: &Delivery,
        inbox: &dyn InboundSink,
    ) -> IngestOutcome {
        if delivery.is_foreign(me) {
            let (account, team) = (&self.name, delivery.team());
            tracing::warn!(account, team, "what came from another workspace is left out");
            return IngestOutcome::Done;
        }
        match delivery.letter(me) {
            Some(letter) => inbox.ingest_message(letter).await,
            None => IngestOutcome::Done,
        }
    }
}

impl accounts::Account for Account {
    const CHANNEL: &'static str = NAME;
    /// Slack documents no key by which it would know a message again, so a repeat would be shown twice. To apps that hear
    /// events it has no sign of typing.
    const CAPABILITIES: ChannelCapabilities = ChannelCapabilities {
        idempotent_send: false,
        max_chars: MAX_CHARS,
        edits: true,
        acknowledges: false,
    };

    fn standing(&self) -> ConnectionState {
        match self.settings.mode {
            SlackMode::Socket => self.link.standing(),
            SlackMode::Events => ConnectionState::WebhookOnly,
        }
    }

    async fn send(&self, _: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let address = outgoing.address();
        // Links are not looked up by Slack: fetching what an agent wrote would tell its server that it was written.
        let mut body = json!({
            "channel": address.peer,
            "text": text::write(outgoing.text()),
            "unfurl_links": false,
            "unfurl_media": false,
        });
        if let Some(thread) = &address.thread {
            body["thread_ts"] = json!(thread);
        }
        if let Some(blocks) = blocks(&text::write(outgoing.text()), outgoing.buttons()) {
            body["blocks"] = blocks;
        }
        self.show("chat.postMessage", &body).await
    }

    async fn edit(&self, platform_id: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let Some((channel, ts)) = platform_id.rsplit_once(':') else {
            return SendOutcome::Rejected { reason: "this is not the id of a Slack message".to_owned() };
        };
        let body = json!({ "channel": channel, "ts": ts, "text": text::write(outgoing.text()) });
        self.show("chat.update", &body).await
    }

    /// The token goes to Slack's own servers only, whatever an event says where a file is.
    async fn fetch(&self, attached: &AttachmentRef) -> Option<Content> {
        let request = self.api.file(attached.handle.as_ref()?, &self.settings.bot_token)?;
        attachment::read(attached, request).await
    }

    fn connects(&self) -> bool {
        self.settings.mode == SlackMode::Socket
    }

    async fn receive(&self, inbox: &dyn InboundSink) {
        self.listen(inbox).await;
    }

    async fn called(
        &self,
        call: &WebhookRequest,
        inbox: &dyn InboundSink,
        _: &BTreeMap<String, Self>,
    ) -> WebhookResponse {
        self.answer_call(call, inbox).await
    }
}
