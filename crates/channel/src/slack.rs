//! Slack, by its Web API. Events come by a socket that this instance opens, or by requests to it.

mod account;
mod api;
mod called;
mod event;
mod listen;
mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use polyclaw_domain::channel::{Call, CallAnswer, Capabilities, Channel, Inbox, Sent};
use polyclaw_domain::config::{self, SlackMode};
use polyclaw_domain::delivery::Outgoing;
use polyclaw_domain::port::{Clock, Pending};
use serde_json::json;

use crate::client::Clients;
use crate::{Error, Pace, answer, call};
use account::Account;

/// The channel's name in addresses.
pub const NAME: &str = "slack";

/// Slack advises 4,000 and refuses to change a message into a longer one. `&`, `<` and `>` are sent as up to five
/// characters, so there has to be room.
const MAX_CHARS: usize = 3_000;

pub struct Slack {
    accounts: BTreeMap<String, Account>,
    clock: Arc<dyn Clock>,
}

impl Slack {
    pub fn from_config(
        accounts: &BTreeMap<String, config::Slack>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        Self::with_pace(accounts, clock, Pace::default())
    }

    pub fn with_pace(
        accounts: &BTreeMap<String, config::Slack>,
        clock: Arc<dyn Clock>,
        pace: Pace,
    ) -> Result<Self, Error> {
        let clients = Clients::new(pace.patience)?;
        let enabled = accounts.iter().filter(|(_, settings)| settings.access.enabled);
        let account = |(name, settings): (&String, &config::Slack)| {
            Ok((name.clone(), Account::new(name, settings.clone(), &clients, pace)?))
        };
        Ok(Self { accounts: enabled.map(account).collect::<Result<_, _>>()?, clock })
    }

    async fn post(&self, outgoing: &Outgoing) -> Sent {
        let address = outgoing.address();
        let Some(account) = self.accounts.get(&address.account) else { return answer::no_account(address) };
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
        account.send("chat.postMessage", &body).await
    }

    async fn change(&self, platform_id: &str, outgoing: &Outgoing) -> Sent {
        let address = outgoing.address();
        let Some(account) = self.accounts.get(&address.account) else { return answer::no_account(address) };
        let Some((channel, ts)) = platform_id.rsplit_once(':') else {
            return Sent::Rejected { reason: "this is not the id of a Slack message".to_owned() };
        };
        let body = json!({ "channel": channel, "ts": ts, "text": text::write(outgoing.text()) });
        account.send("chat.update", &body).await
    }
}

impl Channel for Slack {
    /// Slack documents no key by which it would know a message again, so a repeat would be shown twice.
    fn capabilities(&self, _: &str) -> Capabilities {
        Capabilities { idempotent_send: false, max_chars: MAX_CHARS, edits: true }
    }

    fn send<'a>(&'a self, _: &'a str, outgoing: &'a Outgoing) -> Pending<'a, Sent> {
        Box::pin(self.post(outgoing))
    }

    fn edit<'a>(&'a self, platform_id: &'a str, outgoing: &'a Outgoing) -> Pending<'a, Sent> {
        Box::pin(self.change(platform_id, outgoing))
    }

    fn receive<'a>(&'a self, inbox: &'a dyn Inbox) -> Pending<'a, ()> {
        let listening = self.accounts.values().filter(|account| account.settings.mode == SlackMode::Socket);
        let listening: Vec<_> = listening.map(|account| account.listen(inbox)).collect();
        Box::pin(async move {
            join_all(listening).await;
        })
    }

    fn called<'a>(&'a self, account: &'a str, call: Call, inbox: &'a dyn Inbox) -> Pending<'a, CallAnswer> {
        Box::pin(async move {
            match self.accounts.get(account) {
                Some(account) => account.called(&call, inbox, self.clock.now()).await,
                None => call::plain(404, ""),
            }
        })
    }
}

impl fmt::Debug for Slack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.accounts.keys()).finish()
    }
}
