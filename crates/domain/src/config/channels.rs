//! `[channels]`: where messages come from and answers go.

mod mapping;
mod platforms;
mod validation;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::AgentsConfig;
use super::key_names;
use super::report::ConfigReport;
use super::secret::Secret;
use crate::admission::AccountAccess;
use crate::channel::WEBHOOK_CHANNEL;
use crate::id::AgentId;

pub use mapping::{WebhookMapping, WebhookPost};
pub use platforms::{DiscordConfig, MatrixConfig, SlackConfig, SlackMode, TelegramConfig, WhatsappConfig};

/// The account of a channel that is used if none is named, if an account has this name or there is no account at all.
pub const DEFAULT_ACCOUNT: &str = "default";

/// Where messages come from and answers go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChannelsConfig {
    /// Programs that post messages to `/hooks/<name>`: `[channels.webhook.<name>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub webhook: BTreeMap<String, WebhookConfig>,
    /// Telegram bots: `[channels.telegram.<account>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub telegram: BTreeMap<String, TelegramConfig>,
    /// Discord bots: `[channels.discord.<account>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub discord: BTreeMap<String, DiscordConfig>,
    /// Slack apps: `[channels.slack.<account>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub slack: BTreeMap<String, SlackConfig>,
    /// WhatsApp numbers of the Cloud API: `[channels.whatsapp.<account>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub whatsapp: BTreeMap<String, WhatsappConfig>,
    /// Matrix users: `[channels.matrix.<account>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub matrix: BTreeMap<String, MatrixConfig>,
    /// The previous default account of each platform. It is no setting: the store remembers it.
    #[serde(skip)]
    remembered: BTreeMap<String, String>,
}

/// Default accounts of platforms as known from the store.
#[derive(Clone, Debug, Default)]
pub struct AccountsInUse {
    /// Default accounts recorded at an earlier start.
    pub recorded: BTreeMap<String, String>,
    /// Accounts whose session keys omit the account, in homes older than that record.
    pub in_use: BTreeMap<String, String>,
}

/// The chosen default account of one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultAccountChoice {
    pub channel: &'static str,
    pub account: String,
    /// There are several accounts, and only alphabetical order selected this one.
    pub is_guessed: bool,
}

/// A program that posts messages to `/hooks/<name>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// Messages must be signed with this secret (HMAC-SHA256).
    pub secret: Secret,
    /// The agent that answers. If omitted, bindings decide, else the default agent answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// URL to which answers are posted. If omitted, answers are only stored in the session.
    #[schemars(url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_url: Option<String>,
    /// Answers are signed with this secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_secret: Option<Secret>,
    /// Whether the receiver deduplicates answers by their key. Only then is an answer posted again after a crash left
    /// its delivery unknown.
    #[serde(default)]
    pub idempotent: bool,
    /// Where the message fields are in the posted JSON. If omitted, a post has `text`, `id`, `peer` and `thread`.
    #[serde(default, skip_serializing_if = "WebhookMapping::is_empty")]
    pub map: WebhookMapping,
}

impl ChannelsConfig {
    /// Returns the access rules of all accounts: channel, account, rules.
    pub fn account_accesses(&self) -> impl Iterator<Item = (&'static str, &str, &AccountAccess)> {
        fn each_account<'a, T>(
            channel: &'static str,
            accounts: &'a BTreeMap<String, T>,
            access: fn(&T) -> &AccountAccess,
        ) -> impl Iterator<Item = (&'static str, &'a str, &'a AccountAccess)> {
            accounts.iter().map(move |(name, account)| (channel, name.as_str(), access(account)))
        }
        each_account("telegram", &self.telegram, |account| &account.access)
            .chain(each_account("discord", &self.discord, |account| &account.access))
            .chain(each_account("slack", &self.slack, |account| &account.access))
            .chain(each_account("whatsapp", &self.whatsapp, |account| &account.access))
            .chain(each_account("matrix", &self.matrix, |account| &account.access))
    }

    pub fn has_account(&self, channel: &str, account: &str) -> bool {
        (channel == "webhook" && self.webhook.contains_key(account))
            || self.account_accesses().any(|(known, name, _)| (known, name) == (channel, account))
    }

    /// Returns the accounts without their access rules, for comparison.
    pub fn without_access(&self) -> Self {
        let mut accounts = self.clone();
        accounts.telegram.values_mut().for_each(|account| account.access = AccountAccess::default());
        accounts.discord.values_mut().for_each(|account| account.access = AccountAccess::default());
        accounts.slack.values_mut().for_each(|account| account.access = AccountAccess::default());
        accounts.whatsapp.values_mut().for_each(|account| account.access = AccountAccess::default());
        accounts.matrix.values_mut().for_each(|account| account.access = AccountAccess::default());
        accounts.remembered.clear();
        accounts
    }

    /// Returns the default account of each platform: the one marked `default`, else the previous default, else
    /// `default`, else the first by name.
    pub fn default_accounts(&self) -> BTreeMap<&'static str, &str> {
        self.accounts_by_channel()
            .into_iter()
            .map(|(channel, names)| (channel, self.choose_default(channel, &names).0))
            .collect()
    }

    /// Applies recorded default accounts, so that a new account never replaces the default of others.
    pub fn apply_default_accounts(&mut self, known: &AccountsInUse) -> Vec<DefaultAccountChoice> {
        self.remembered.clone_from(&known.in_use);
        self.remembered.extend(known.recorded.clone());
        let settled: Vec<DefaultAccountChoice> = self
            .accounts_by_channel()
            .into_iter()
            .map(|(channel, names)| {
                let (account, is_guessed) = self.choose_default(channel, &names);
                DefaultAccountChoice { channel, account: account.to_owned(), is_guessed }
            })
            .collect();
        self.remembered = settled.iter().map(|one| (one.channel.to_owned(), one.account.clone())).collect();
        settled
    }

    /// Returns every account by channel, and whether it is marked `default`.
    fn accounts_by_channel(&self) -> BTreeMap<&'static str, Vec<(&str, bool)>> {
        let mut channels: BTreeMap<&'static str, Vec<(&str, bool)>> = BTreeMap::new();
        let hooks = self.webhook.keys().map(|name| (WEBHOOK_CHANNEL, name.as_str(), false));
        let accounts =
            self.account_accesses().map(|(channel, account, access)| (channel, account, access.default));
        for (channel, account, is_default) in accounts.chain(hooks) {
            channels.entry(channel).or_default().push((account, is_default));
        }
        channels
    }

    /// Returns the account names of each channel that has any.
    pub(super) fn accounts_by_name(&self) -> BTreeMap<&'static str, BTreeSet<&str>> {
        let names = |(channel, accounts): (_, Vec<(_, bool)>)| {
            (channel, accounts.into_iter().map(|(name, _)| name).collect())
        };
        self.accounts_by_channel().into_iter().map(names).collect()
    }

    fn choose_default<'a>(&self, channel: &str, names: &[(&'a str, bool)]) -> (&'a str, bool) {
        let named = |wanted: &str| names.iter().find(|(name, _)| *name == wanted);
        let remembered = self.remembered.get(channel).and_then(|account| named(account));
        let text = names.iter().find(|(_, is_default)| *is_default).or(remembered);
        match text.or_else(|| named(DEFAULT_ACCOUNT)) {
            Some((account, _)) => (account, false),
            None => (names.first().map_or(DEFAULT_ACCOUNT, |(name, _)| name), names.len() > 1),
        }
    }

    pub(super) fn report_errors(&self, agents: &AgentsConfig, report: &mut ConfigReport) {
        self.check_platforms(report);
        for (channel, names) in self.accounts_by_channel() {
            let marked: Vec<&str> =
                names.iter().filter(|(_, is_default)| *is_default).map(|(name, _)| *name).collect();
            if let [_, second, ..] = marked[..] {
                let message = format!("{channel} has more than one default account: {}", marked.join(", "));
                let path = key_names::join_key(&format!("channels.{channel}"), second);
                report.add_error(
                    &format!("{path}.default"),
                    message,
                    "keep default = true in only one of them",
                );
            }
        }
        for (hook, webhook) in &self.webhook {
            let path = key_names::join_key("channels.webhook", hook);
            if hook.is_empty() || !hook.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
                let message = format!("{hook:?} is not valid in the URL /hooks/<name>");
                report.add_error(&path, message, "use letters, digits, '_' and '-'");
            }
            if let Some(agent) = &webhook.agent {
                agents.check_agent_exists(agent, &format!("{path}.agent"), report);
            }
            webhook.map.report_errors(&format!("{path}.map"), report);
            if webhook.reply_secret.is_some() && webhook.reply_url.is_none() {
                let message = "reply_secret is set, but there is no reply_url to post replies to";
                report.add_error(
                    &format!("{path}.reply_secret"),
                    message,
                    "add reply_url, or remove reply_secret",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    fn channels(accounts: &[(&str, &str)]) -> ChannelsConfig {
        let table = |(name, more): &(&str, &str)| {
            format!("[channels.telegram.{name}]\nbot_token = \"1:{name}\"\nallow_from = [\"1\"]\n{more}\n")
        };
        let text: String = accounts.iter().map(table).collect();
        load(&text, "config.toml", &|_| Err("no lookup".to_owned())).unwrap().channels
    }

    fn settled(accounts: &[(&str, &str)], recorded: Option<&str>, in_use: Option<&str>) -> (String, bool) {
        let known = |account: Option<&str>| {
            account.map(|account| ("telegram".to_owned(), account.to_owned())).into_iter().collect()
        };
        let mut channels = channels(accounts);
        let one = channels
            .apply_default_accounts(&AccountsInUse { recorded: known(recorded), in_use: known(in_use) })
            .remove(0);
        assert_eq!(channels.default_accounts()["telegram"], one.account);
        (one.account, one.is_guessed)
    }

    #[test]
    fn added_account_never_becomes_default() {
        let (main, both) = ([("main", "")], [("alerts", ""), ("main", "")]);
        assert_eq!(settled(&main, None, None), ("main".to_owned(), false));
        assert_eq!(settled(&both, Some("main"), None), ("main".to_owned(), false), "what is recorded holds");
        assert_eq!(settled(&both, None, Some("main")), ("main".to_owned(), false), "so does what is in use");
        assert_eq!(settled(&both, Some("gone"), None), ("alerts".to_owned(), true), "a guess says so");
        let marked = [("alerts", "default = true"), ("main", "")];
        assert_eq!(settled(&marked, Some("main"), None), ("alerts".to_owned(), false), "the config decides");
        let named = [("alerts", ""), ("default", "")];
        assert_eq!(settled(&named, None, None), ("default".to_owned(), false));
    }
}
