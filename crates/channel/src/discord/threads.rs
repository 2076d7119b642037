//! Which channels are threads, and of what. A message does not say; the server's list does, and so does a question.

use std::collections::HashMap;

use serde::Deserialize;

use super::account::DiscordAccount;
use super::event::{DiscordChannel, DiscordGuild};
use super::inbound::DiscordLocation;

/// The parent of each channel that is known: none, if it is no thread.
#[derive(Default)]
pub(super) struct ThreadParents(HashMap<String, Option<String>>);

impl ThreadParents {
    pub fn record_guild(&mut self, guild: &DiscordGuild) {
        guild.channels.iter().chain(&guild.threads).for_each(|channel| self.record_channel(channel));
    }

    pub fn record_channel(&mut self, channel: &DiscordChannel) {
        let parent = channel.parent_id.clone().filter(|_| channel.is_thread());
        self.0.insert(channel.id.clone(), parent);
    }
}

impl DiscordAccount {
    pub(super) async fn resolve_location(
        &self,
        places: &mut ThreadParents,
        channel: &str,
        guild: Option<&str>,
    ) -> DiscordLocation {
        if guild.is_some() && !places.0.contains_key(channel) {
            match self.api.get(&["channels", channel], &[], self.retry_timing.backoff()).await {
                Ok(found) => {
                    if let Ok(found) = DiscordChannel::deserialize(found) {
                        places.record_channel(&found);
                    }
                }
                // It is then taken for a channel without a parent, which nothing is granted to by its parent.
                Err(refusal) => {
                    tracing::warn!(
                        account = self.name,
                        reason = refusal.reason,
                        "a channel of Discord is not known"
                    );
                }
            }
        }
        let parent = guild.and_then(|_| places.0.get(channel).cloned()).flatten();
        DiscordLocation { channel: channel.to_owned(), guild: guild.map(str::to_owned), parent }
    }
}
