//! Reads messages over REST that were written while no gateway session existed. Discord reports the last message of
//! each channel of a server, so only channels with missing messages are read. It does not list direct messages, so all
//! known ones are read.

use serde::Deserialize;
use serde_json::Value;

use super::account::DiscordAccount;
use super::event::{DiscordGuild, DiscordMessage, GuildMember};
use super::receive::GatewaySession;

/// Maximum pages read per channel.
const MAX_BACKFILL_PAGES: usize = 5;
const BACKFILL_PAGE_SIZE: usize = 100;

impl DiscordAccount {
    pub(super) async fn backfill_guild(&self, guild: &DiscordGuild, life: &mut GatewaySession<'_>) {
        for channel in guild.channels.iter().chain(&guild.threads).filter(|channel| channel.has_messages()) {
            let last = channel.last_message_id.as_ref().and_then(|id| id.parse::<u64>().ok());
            let seen = life.seen.get(&channel.id).map_or(life.begin, |(id, _)| *id);
            if last.is_some_and(|last| last > seen) {
                self.backfill_channel(&channel.id, Some(guild.id.clone()), seen, life).await;
            }
        }
    }

    pub(super) async fn backfill_dms(&self, life: &mut GatewaySession<'_>) {
        let known = life.seen.iter().filter(|(_, (_, guild))| guild.is_none());
        let known: Vec<(String, u64)> = known.map(|(channel, (seen, _))| (channel.clone(), *seen)).collect();
        for (channel, seen) in known {
            self.backfill_channel(&channel, None, seen, life).await;
        }
    }

    async fn backfill_channel(
        &self,
        channel: &str,
        guild: Option<String>,
        mut seen: u64,
        life: &mut GatewaySession<'_>,
    ) {
        for _ in 0..MAX_BACKFILL_PAGES {
            let Some(page) = self.fetch_page(channel, seen).await else { return };
            let is_last = page.len() < BACKFILL_PAGE_SIZE;
            for message in page.into_iter().filter_map(|message| DiscordMessage::deserialize(message).ok()) {
                seen = seen.max(message.id.parse().unwrap_or_default());
                let message = self.with_member(message, guild.as_deref()).await;
                self.handle_message(&message, guild.clone(), life).await;
            }
            if is_last {
                return;
            }
        }
        tracing::warn!(
            account = self.name,
            channel,
            "backfill of a Discord channel reached its page limit; newer messages are skipped"
        );
    }

    /// Fetches the next page of messages, oldest first.
    async fn fetch_page(&self, channel: &str, after: u64) -> Option<Vec<Value>> {
        let (after, limit) = (after.to_string(), BACKFILL_PAGE_SIZE.to_string());
        let query = [("after", after.as_str()), ("limit", limit.as_str())];
        match self.api.get(&["channels", channel, "messages"], &query, self.retry_timing.backoff()).await {
            Ok(Value::Array(mut page)) => {
                page.reverse();
                Some(page)
            }
            Ok(_) => None,
            // The bot may not read this channel, so nothing was missed there.
            Err(refusal) if !refusal.is_transient() => None,
            Err(refusal) => {
                let reason = refusal.reason;
                tracing::warn!(
                    account = self.name,
                    channel,
                    reason,
                    "could not read missed messages of a Discord channel; they are skipped"
                );
                None
            }
        }
    }

    /// Adds the author's member data, such as roles, which REST messages lack.
    async fn with_member(&self, mut message: DiscordMessage, guild: Option<&str>) -> DiscordMessage {
        if let Some(guild) = guild.filter(|_| !message.author.bot) {
            let path = ["guilds", guild, "members", message.author.id.as_str()];
            let found = self.api.get(&path, &[], self.retry_timing.backoff()).await.ok();
            message.member = found.and_then(|found| GuildMember::deserialize(found).ok());
        }
        message
    }
}
