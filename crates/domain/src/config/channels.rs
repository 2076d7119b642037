//! `[channels]`: where messages come from and answers go.

mod check;
mod mapping;
mod platforms;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::Agents;
use super::name;
use super::report::Report;
use super::secret::Secret;
use crate::admission::Access;
use crate::channel::WEBHOOK;
use crate::id::AgentId;

pub use mapping::{Mapping, Post};
pub use platforms::{Discord, Matrix, Slack, SlackMode, Telegram, Whatsapp};

/// The account of a channel that is meant where none is named, if it has one of this name, or none at all.
pub const DEFAULT_ACCOUNT: &str = "default";

/// Where messages come from and answers go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Channels {
    /// Programs that post messages to `/hooks/<name>`: `[channels.webhook.<name>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub webhook: BTreeMap<String, Webhook>,
    /// Telegram bots: `[channels.telegram.<account>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub telegram: BTreeMap<String, Telegram>,
    /// Discord bots: `[channels.discord.<account>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub discord: BTreeMap<String, Discord>,
    /// Slack apps: `[channels.slack.<account>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub slack: BTreeMap<String, Slack>,
    /// WhatsApp numbers of the Cloud API: `[channels.whatsapp.<account>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub whatsapp: BTreeMap<String, Whatsapp>,
    /// Matrix users: `[channels.matrix.<account>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub matrix: BTreeMap<String, Matrix>,
}

/// A program that posts messages to `/hooks/<name>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Messages must be signed with this secret (HMAC-SHA256).
    pub secret: Secret,
    /// The agent that answers. If left out, bindings say it, and else it is the default agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Answers are posted here. Without it they are kept in the session only.
    #[schemars(url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_url: Option<String>,
    /// Answers are signed with this secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_secret: Option<Secret>,
    /// The receiver knows an answer it has seen by its key. Only then may one be posted again when a crash left
    /// it unknown whether it arrived.
    #[serde(default)]
    pub idempotent: bool,
    /// Where the message is in what the program posts. Without it a post is `text`, `id`, `peer` and `thread`.
    #[serde(default, skip_serializing_if = "Mapping::is_empty")]
    pub map: Mapping,
}

impl Channels {
    /// Who may write to each account of each platform: channel, account, rules.
    pub fn access(&self) -> impl Iterator<Item = (&'static str, &str, &Access)> {
        fn each<'a, T>(
            channel: &'static str,
            accounts: &'a BTreeMap<String, T>,
            access: fn(&T) -> &Access,
        ) -> impl Iterator<Item = (&'static str, &'a str, &'a Access)> {
            accounts.iter().map(move |(name, account)| (channel, name.as_str(), access(account)))
        }
        each("telegram", &self.telegram, |account| &account.access)
            .chain(each("discord", &self.discord, |account| &account.access))
            .chain(each("slack", &self.slack, |account| &account.access))
            .chain(each("whatsapp", &self.whatsapp, |account| &account.access))
            .chain(each("matrix", &self.matrix, |account| &account.access))
    }

    pub fn has(&self, channel: &str, account: &str) -> bool {
        (channel == "webhook" && self.webhook.contains_key(account))
            || self.access().any(|(known, name, _)| (known, name) == (channel, account))
    }

    /// The accounts alone, whoever may write to them.
    pub fn without_access(&self) -> Self {
        let mut accounts = self.clone();
        accounts.telegram.values_mut().for_each(|account| account.access = Access::default());
        accounts.discord.values_mut().for_each(|account| account.access = Access::default());
        accounts.slack.values_mut().for_each(|account| account.access = Access::default());
        accounts.whatsapp.values_mut().for_each(|account| account.access = Access::default());
        accounts.matrix.values_mut().for_each(|account| account.access = Access::default());
        accounts
    }

    /// The account of each platform that is meant where none is named: `default`, or else the first by name.
    pub fn default_accounts(&self) -> BTreeMap<&'static str, &str> {
        let mut accounts = BTreeMap::new();
        let hooks = self.webhook.keys().map(|name| (WEBHOOK, name.as_str()));
        for (channel, account) in self.access().map(|(channel, account, _)| (channel, account)).chain(hooks) {
            let first = accounts.entry(channel).or_insert(account);
            if account == DEFAULT_ACCOUNT {
                *first = account;
            }
        }
        accounts
    }

    pub(super) fn check(&self, agents: &Agents, report: &mut Report) {
        self.check_platforms(report);
        for (hook, webhook) in &self.webhook {
            let path = name::join("channels.webhook", hook);
            if hook.is_empty() || !hook.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
                let message = format!("{hook:?} cannot be part of the address /hooks/<name>");
                report.error(&path, message, "use letters, digits, '_' and '-'");
            }
            if let Some(agent) = &webhook.agent {
                agents.check_named(agent, &format!("{path}.agent"), report);
            }
            webhook.map.check(&format!("{path}.map"), report);
            if webhook.reply_secret.is_some() && webhook.reply_url.is_none() {
                let message = "there is a secret to sign answers with, but no reply_url to post them to";
                report.error(&format!("{path}.reply_secret"), message, "add reply_url, or take this out");
            }
        }
    }
}
