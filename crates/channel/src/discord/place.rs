//! Which channels are threads, and of what. A message does not say; the server's list does, and so does a question.

use std::collections::HashMap;

use serde::Deserialize;

use super::account::Account;
use super::event::{Channel, Guild};
use super::letter::Place;

/// The parent of each channel that is known: none, if it is no thread.
#[derive(Default)]
pub(super) struct Places(HashMap<String, Option<String>>);

impl Places {
    pub fn learn(&mut self, guild: &Guild) {
        guild.channels.iter().chain(&guild.threads).for_each(|channel| self.learn_one(channel));
    }

    pub fn learn_one(&mut self, channel: &Channel) {
        let parent = channel.parent_id.clone().filter(|_| channel.is_thread());
        self.0.insert(channel.id.clone(), parent);
    }
}

impl Account {
    pub(super) async fn place(&self, places: &mut Places, channel: &str, guild: Option<&str>) -> Place {
        if guild.is_some() && !places.0.contains_key(channel) {
            match self.api.get(&["channels", channel], &[], self.pace.backoff()).await {
                Ok(found) => {
                    if let Ok(found) = Channel::deserialize(found) {
                        places.learn_one(&found);
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
        Place { channel: channel.to_owned(), guild: guild.map(str::to_owned), parent }
    }
}
