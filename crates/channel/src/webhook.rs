//! The generic channel: answers are posted as JSON to an address of the operator's choice.
//!
//! The body is `{key, peer, thread, text}`. `Idempotency-Key` carries the same key, and
//! `X-Polyclaw-Signature: sha256=<hex>` is the HMAC-SHA256 of the body under the account's secret.

mod account;

use std::collections::BTreeMap;
use std::time::Duration;

use polyclaw_domain::channel::{ChannelCapabilities, SendOutcome};
use polyclaw_domain::config;
use polyclaw_domain::delivery::OutgoingMessage;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use serde::Serialize;

pub use account::Account;

use crate::Error;
use crate::accounts::{self, Accounts};
use crate::answer::{self, Answer};
use crate::client::{Clients, WHOLE};
use crate::signature;

/// The channel's name in addresses.
pub const NAME: &str = "webhook";

/// Longest answer worth reading for the platform's id.
const MAX_BODY: usize = 64 * 1024;

pub type Webhook = Accounts<Line>;

/// One account with the client that reaches it.
pub struct Line {
    account: Account,
    url: Url,
    client: Client,
}

#[derive(Serialize)]
struct Body<'a> {
    key: &'a str,
    peer: &'a str,
    thread: Option<&'a str>,
    text: &'a str,
}

impl Webhook {
    pub fn new(accounts: impl IntoIterator<Item = (String, Account)>) -> Result<Self, Error> {
        Self::with_patience(accounts, WHOLE)
    }

    /// `patience`: how long a send may take in all.
    pub fn with_patience(
        accounts: impl IntoIterator<Item = (String, Account)>,
        patience: Duration,
    ) -> Result<Self, Error> {
        let clients = Clients::new(patience)?;
        let line = |(name, account): (String, Account)| {
            let url = account.url().ok_or_else(|| Error::ReplyUrl { account: name.clone() })?;
            let client = clients.reaching(&url);
            Ok((name, Line { account, url, client }))
        };
        accounts.into_iter().map(line).collect()
    }

    /// The accounts of a config that have somewhere to post answers to.
    pub fn from_config(webhooks: &BTreeMap<String, config::WebhookConfig>) -> Result<Self, Error> {
        let account = |(name, webhook): (&String, &config::WebhookConfig)| {
            Account::from_config(webhook).map(|account| (name.clone(), account))
        };
        Self::new(webhooks.iter().filter_map(account))
    }
}

impl Line {
    async fn post(&self, key: &str, body: Vec<u8>) -> SendOutcome {
        let mut request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        request = request.header("Idempotency-Key", key);
        if let Some(secret) = &self.account.reply_secret {
            request = request.header(signature::OURS, signature::ours(secret, &body));
        }
        match request.body(body).send().await {
            Ok(response) => {
                let answer = Answer::read(response, MAX_BODY).await;
                answer.sent(self.account.idempotent, |body| body.get("id"))
            }
            Err(error) => answer::failure(error),
        }
    }
}

impl accounts::Account for Line {
    const CHANNEL: &'static str = NAME;
    const CAPABILITIES: ChannelCapabilities = ChannelCapabilities {
        idempotent_send: false,
        max_chars: Account::MAX_CHARS,
        edits: false,
        acknowledges: true,
    };
    const ABSENT: &'static str = "has no reply_url";

    fn capabilities(&self) -> ChannelCapabilities {
        let Account { idempotent, max_chars, .. } = self.account;
        ChannelCapabilities { idempotent_send: idempotent, max_chars, edits: false, acknowledges: true }
    }

    async fn send(&self, key: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let address = outgoing.address();
        let body =
            Body { key, peer: &address.peer, thread: address.thread.as_deref(), text: outgoing.text() };
        match serde_json::to_vec(&body) {
            Ok(body) => self.post(key, body).await,
            Err(error) => {
                SendOutcome::Rejected { reason: format!("the message cannot be written as JSON: {error}") }
            }
        }
    }
}
