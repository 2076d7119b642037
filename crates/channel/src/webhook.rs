//! The generic channel: answers are posted as JSON to an address of the operator's choice.
//!
//! The body is `{key, peer, thread, text}`. `Idempotency-Key` carries the same key, and
//! `X-Polyclaw-Signature: sha256=<hex>` is the HMAC-SHA256 of the body under the account's secret.

mod account;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use polyclaw_domain::channel::{Capabilities, Channel, Sent};
use polyclaw_domain::config;
use polyclaw_domain::delivery::Outgoing;
use polyclaw_domain::port::Pending;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use serde::Serialize;

pub use account::Account;

use crate::Error;
use crate::answer::{self, Answer};
use crate::client::{Clients, WHOLE};
use crate::signature;

/// The channel's name in addresses.
pub const NAME: &str = "webhook";

/// Longest answer worth reading for the platform's id.
const MAX_BODY: usize = 64 * 1024;

pub struct Webhook {
    accounts: BTreeMap<String, Line>,
}

/// One account with the client that reaches it.
struct Line {
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
        Ok(Self { accounts: accounts.into_iter().map(line).collect::<Result<_, _>>()? })
    }

    /// The accounts of a config that have somewhere to post answers to.
    pub fn from_config(webhooks: &BTreeMap<String, config::Webhook>) -> Result<Self, Error> {
        let account = |(name, webhook): (&String, &config::Webhook)| {
            Account::from_config(webhook).map(|account| (name.clone(), account))
        };
        Self::new(webhooks.iter().filter_map(account))
    }

    async fn post(&self, key: &str, outgoing: &Outgoing) -> Sent {
        let address = outgoing.address();
        let Some(line) = self.accounts.get(&address.account) else {
            return Sent::Rejected { reason: format!("webhook '{}' has no reply_url", address.account) };
        };
        let body =
            Body { key, peer: &address.peer, thread: address.thread.as_deref(), text: outgoing.text() };
        match serde_json::to_vec(&body) {
            Ok(body) => line.post(key, body).await,
            Err(error) => {
                Sent::Rejected { reason: format!("the message cannot be written as JSON: {error}") }
            }
        }
    }
}

impl Line {
    async fn post(&self, key: &str, body: Vec<u8>) -> Sent {
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

impl Channel for Webhook {
    fn capabilities(&self, account: &str) -> Capabilities {
        let line = self.accounts.get(account);
        Capabilities {
            idempotent_send: line.is_some_and(|line| line.account.idempotent),
            max_chars: line.map_or(Account::MAX_CHARS, |line| line.account.max_chars),
            edits: false,
        }
    }

    fn send<'a>(&'a self, key: &'a str, outgoing: &'a Outgoing) -> Pending<'a, Sent> {
        Box::pin(self.post(key, outgoing))
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.accounts.iter().map(|(name, line)| (name, &line.account))).finish()
    }
}
