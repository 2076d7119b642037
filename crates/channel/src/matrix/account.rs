//! One user of a homeserver.

use polyclaw_domain::channel::{Letter, Sent};
use polyclaw_domain::config;
use polyclaw_domain::delivery::Outgoing;
use serde_json::{Value, json};

use super::NAME;
use super::api::{Api, Ask};
use super::event::Event;
use super::session::Login;
use crate::attachment::{self, File};
use crate::client::{self, Clients};
use crate::{Error, Pace};

/// For how long a homeserver shows that somebody writes.
const TYPING_MS: u32 = 20_000;

pub(super) struct Account {
    pub name: String,
    pub settings: config::Matrix,
    pub api: Api,
    pub pace: Pace,
}

impl Account {
    pub fn new(name: &str, settings: config::Matrix, clients: &Clients, pace: Pace) -> Result<Self, Error> {
        let base = client::base(&settings.homeserver).ok_or_else(|| Error::Url {
            channel: NAME,
            account: name.to_owned(),
            setting: "homeserver",
        })?;
        let client = clients.reaching(&base);
        let login = Login::new(name, settings.clone(), client.clone(), base.clone());
        Ok(Self { name: name.to_owned(), settings, api: Api::new(client, base, login), pace })
    }

    pub async fn send(&self, key: &str, outgoing: &Outgoing) -> Sent {
        let address = outgoing.address();
        let mut content = said(outgoing.text());
        if let Some(thread) = &address.thread {
            content["m.relates_to"] = json!({
                "rel_type": "m.thread",
                "event_id": thread,
                // For clients that know no threads.
                "is_falling_back": true,
                "m.in_reply_to": { "event_id": thread },
            });
        }
        self.put(&address.peer, key, &content).await
    }

    /// Each change has a key of its own: one back to an earlier text is a change, too, and twice the same does no harm.
    pub async fn change(&self, event: &str, outgoing: &Outgoing) -> Sent {
        let mut content = said(&format!("* {}", outgoing.text()));
        content["m.new_content"] = said(outgoing.text());
        content["m.relates_to"] = json!({ "rel_type": "m.replace", "event_id": event });
        let key = format!("edit-{:032x}", fastrand::u128(..));
        self.put(&outgoing.address().peer, &key, &content).await
    }

    async fn put(&self, room: &str, key: &str, content: &Value) -> Sent {
        self.api.send(&Ask::put(&["v3", "rooms", room, "send", "m.room.message", key], content)).await
    }

    pub async fn show_typing(&self, room: &str) {
        let body = json!({ "typing": true, "timeout": TYPING_MS });
        let path = ["v3", "rooms", room, "typing", &self.settings.user_id];
        if let Err(trouble) = self.api.ask(&Ask::put(&path, &body)).await {
            tracing::trace!(account = self.name, reason = trouble.reason(), "typing is not shown");
        }
    }

    pub async fn attach(&self, event: &Event, letter: &mut Letter) {
        let Some(name) = event.file_name() else { return };
        let info = &event.content.info;
        let file = File {
            name: name.to_owned(),
            media_type: info.mimetype.clone(),
            size: Some(info.size).filter(|size| *size > 0),
            url: event.content.url.clone(),
        };
        let text = match file.url.as_deref().filter(|_| file.is_short_text()) {
            Some(address) => match self.api.file(address).await {
                Some(request) => attachment::fetch(request).await,
                None => None,
            },
            None => None,
        };
        letter.parts.push(file.into_part(text));
    }
}

fn said(text: &str) -> Value {
    json!({ "msgtype": "m.text", "body": text })
}
