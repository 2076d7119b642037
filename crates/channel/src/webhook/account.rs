//! Settings of one reply receiver.

use std::fmt;

use polyclaw_domain::config::{self, Secret};
use reqwest::Url;

use crate::client;

#[derive(Clone)]
pub struct WebhookAccount {
    /// May contain a secret in its path or query, so it is never shown.
    pub reply_url: String,
    pub reply_secret: Option<Secret>,
    /// The receiver deduplicates by idempotency key.
    pub idempotent: bool,
    pub max_chars: usize,
}

impl WebhookAccount {
    /// Default maximum characters per message.
    pub const DEFAULT_MAX_CHARS: usize = 16_000;

    pub fn from_config(webhook: &config::WebhookConfig) -> Option<Self> {
        Some(Self {
            reply_url: webhook.reply_url.clone()?,
            reply_secret: webhook.reply_secret.clone(),
            idempotent: webhook.idempotent,
            max_chars: Self::DEFAULT_MAX_CHARS,
        })
    }

    pub(super) fn parse_reply_url(&self) -> Option<Url> {
        client::parse_base_url(&self.reply_url)
    }
}

impl fmt::Debug for WebhookAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.parse_reply_url().and_then(|url| url.host_str().map(str::to_owned));
        f.debug_struct("Account")
            .field("host", &host)
            .field("signed", &self.reply_secret.is_some())
            .field("idempotent", &self.idempotent)
            .field("max_chars", &self.max_chars)
            .finish()
    }
}
