//! The generic channel: replies are posted as JSON to a configured URL.
//!
//! The body is `{key, peer, thread, text}`. `Idempotency-Key` carries the same key, and `X-Polyclaw-Signature:
//! sha256=<hex>` is the HMAC-SHA256 of the body under the account's secret.

mod account;

use std::collections::BTreeMap;
use std::time::Duration;

use polyclaw_domain::channel::{ChannelCapabilities, SendOutcome};
use polyclaw_domain::config;
use polyclaw_domain::delivery::OutgoingMessage;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use serde::Serialize;

pub use account::WebhookAccount;

use crate::Error;
use crate::accounts::{self, PlatformAccounts};
use crate::client::{PlatformClients, REQUEST_TIMEOUT};
use crate::response::{self, PlatformResponse};
use crate::signature;

/// The channel's name in addresses.
pub const CHANNEL_NAME: &str = "webhook";

/// Maximum response size that is read to find the platform's message id.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

pub type WebhookAdapter = PlatformAccounts<WebhookTarget>;

/// A webhook account with the client that reaches it.
pub struct WebhookTarget {
    account: WebhookAccount,
    url: Url,
    client: Client,
}

#[derive(Serialize)]
struct WebhookBody<'a> {
    key: &'a str,
    peer: &'a str,
    thread: Option<&'a str>,
    text: &'a str,
}

impl WebhookAdapter {
    pub fn new(accounts: impl IntoIterator<Item = (String, WebhookAccount)>) -> Result<Self, Error> {
        Self::with_send_timeout(accounts, REQUEST_TIMEOUT)
    }

    /// `timeout`: total timeout of a send.
    pub fn with_send_timeout(
        accounts: impl IntoIterator<Item = (String, WebhookAccount)>,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let clients = PlatformClients::new(timeout)?;
        let line = |(name, account): (String, WebhookAccount)| {
            let url = account.parse_reply_url().ok_or_else(|| Error::ReplyUrl { account: name.clone() })?;
            let client = clients.client_for(&url);
            Ok((name, WebhookTarget { account, url, client }))
        };
        accounts.into_iter().map(line).collect()
    }

    /// Opens the accounts of the config that have a reply URL.
    pub fn from_config(webhooks: &BTreeMap<String, config::WebhookConfig>) -> Result<Self, Error> {
        let account = |(name, webhook): (&String, &config::WebhookConfig)| {
            WebhookAccount::from_config(webhook).map(|account| (name.clone(), account))
        };
        Self::new(webhooks.iter().filter_map(account))
    }
}

impl WebhookTarget {
    async fn post_reply(&self, key: &str, body: Vec<u8>) -> SendOutcome {
        let mut request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        request = request.header("Idempotency-Key", key);
        if let Some(secret) = &self.account.reply_secret {
            request =
                request.header(signature::SIGNATURE_HEADER, signature::signature_header_value(secret, &body));
        }
        match request.body(body).send().await {
            Ok(response) => {
                let answer = PlatformResponse::read(response, MAX_RESPONSE_BYTES).await;
                answer.send_outcome(self.account.idempotent, |body| body.get("id"))
            }
            Err(error) => response::send_failure(error),
        }
    }
}

impl accounts::PlatformAccount for WebhookTarget {
    const CHANNEL: &'static str = CHANNEL_NAME;
    const CAPABILITIES: ChannelCapabilities = ChannelCapabilities {
        idempotent_send: false,
        max_chars: WebhookAccount::DEFAULT_MAX_CHARS,
        edits: false,
        acknowledges: true,
    };
    const NOT_FOUND_REASON: &'static str = "has no reply_url";

    fn capabilities(&self) -> ChannelCapabilities {
        let WebhookAccount { idempotent, max_chars, .. } = self.account;
        ChannelCapabilities { idempotent_send: idempotent, max_chars, edits: false, acknowledges: true }
    }

    async fn send(&self, key: &str, outgoing: &OutgoingMessage) -> SendOutcome {
        let address = outgoing.address();
        let body = WebhookBody {
            key,
            peer: &address.peer,
            thread: address.thread.as_deref(),
            text: outgoing.text(),
        };
        match serde_json::to_vec(&body) {
            Ok(body) => self.post_reply(key, body).await,
            Err(error) => {
                SendOutcome::Rejected { reason: format!("cannot serialize the message to JSON: {error}") }
            }
        }
    }
}
