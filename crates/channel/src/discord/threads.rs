//! Tracks which channels are threads and of which parent. Messages do not say, so it comes from the channel list of the
//! server or from a REST lookup.

use std::collections::HashMap;

use serde::Deserialize;

use super::account::DiscordAccount;
use super::event::{DiscordChannel, DiscordGuild};
use super::inbound::DiscordLocation;

/// The parent of each known channel; `None` if the channel is not a thread.
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
                // Treated as a channel without a parent, so it gets no permissions from a parent.
                Err(refusal) => {
                    tracing::warn!(
                        account = self.name,
                        reason = refusal.reason,
                        "could not look up a Discord channel; treating it as a channel without a parent"
                    );
                }
            }
        }
        let parent = guild.and_then(|_| places.0.get(channel).cloned()).flatten();
        DiscordLocation { channel: channel.to_owned(), guild: guild.map(str::to_owned), parent }
    }
}
