//! Checks of accounts that are possible without calling the platform.

use std::collections::HashMap;
use std::hash::Hash;

use super::ChannelsConfig;
use crate::admission::AccountAccess;
use crate::config::key_names;
use crate::config::report::ConfigReport;

impl ChannelsConfig {
    pub(super) fn check_platforms(&self, report: &mut ConfigReport) {
        for (channel, account, access) in self.account_accesses() {
            let path = key_names::join_key(&format!("channels.{channel}"), account);
            check_account_name(account, &path, report);
            check_sender_ids(channel, access, &path, report);
        }
        for (account, slack) in &self.slack {
            slack.report_errors(&key_names::join_key("channels.slack", account), report);
        }
        for (account, matrix) in &self.matrix {
            matrix.report_errors(&key_names::join_key("channels.matrix", account), report);
        }
        self.check_duplicate_accounts(report);
    }

    /// Reports platform accounts that are configured twice: each entry would receive messages meant for the other.
    fn check_duplicate_accounts(&self, report: &mut ConfigReport) {
        let telegram = self.telegram.iter().map(|(account, bot)| (account, bot.bot_token.expose()));
        report_duplicates("telegram", "bot_token", telegram, report);
        let discord = self.discord.iter().map(|(account, bot)| (account, bot.bot_token.expose()));
        report_duplicates("discord", "bot_token", discord, report);
        let slack = self.slack.iter().map(|(account, app)| (account, app.bot_token.expose()));
        report_duplicates("slack", "bot_token", slack, report);
        let numbers = self.whatsapp.iter().map(|(account, number)| (account, &number.phone_number_id));
        report_duplicates("whatsapp", "phone_number_id", numbers, report);
        let users = self.matrix.iter().map(|(account, user)| (account, &user.user_id));
        report_duplicates("matrix", "user_id", users, report);
    }
}

fn report_duplicates<'a, T: Eq + Hash>(
    channel: &str,
    setting: &str,
    accounts: impl Iterator<Item = (&'a String, T)>,
    report: &mut ConfigReport,
) {
    let mut seen: HashMap<T, &String> = HashMap::new();
    for (account, identity) in accounts {
        match seen.get(&identity) {
            Some(first) => {
                let path =
                    format!("{}.{setting}", key_names::join_key(&format!("channels.{channel}"), account));
                let message = format!("account {first:?} has the same {setting}");
                report.add_error(&path, message, "remove one of the accounts");
            }
            None => drop(seen.insert(identity, account)),
        }
    }
}

fn check_account_name(account: &str, path: &str, report: &mut ConfigReport) {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if account.is_empty() || account.len() > 64 || !account.chars().all(word) {
        let message = format!("{account:?} is not a valid account name");
        report.add_error(path, message, "use up to 64 of a-z, 0-9, '_' and '-'");
    }
}

/// Reports names in place of ids. Senders are matched by platform id, so a name would admit nobody, and anybody could
/// take it.
fn check_sender_ids(channel: &str, access: &AccountAccess, path: &str, report: &mut ConfigReport) {
    for (setting, people) in [("owners", &access.owners), ("allow_from", &access.allow_from)] {
        for (at, person) in people.iter().enumerate() {
            let (is_name, hint) = match channel {
                "matrix" => {
                    (!is_matrix_user_id(person) && person != "*", "use the full id, like @ann:example.org")
                }
                _ => (
                    person.starts_with('@'),
                    "`polyclaw pairing list` shows the ids of people who have sent a \
                                                message",
                ),
            };
            if is_name {
                let message = format!("{person:?} is a name, but people are identified by their ids");
                report.add_error(&format!("{path}.{setting}[{at}]"), message, hint);
            }
        }
    }
}

/// Returns whether the text has the form `@name:server`.
pub(super) fn is_matrix_user_id(id: &str) -> bool {
    let parts = id.strip_prefix('@').and_then(|rest| rest.split_once(':'));
    parts.is_some_and(|(name, server)| !name.is_empty() && !server.is_empty())
}
