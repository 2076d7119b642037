//! `[delivery]`: delivery of answers, and the language of replies and notices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::locale::LanguageSetting;

/// Delivery of answers, and the language of replies and notices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeliveryConfig {
    /// Maximum age of an answer that is sent automatically after a restart, in minutes. For older ones the operator is
    /// asked.
    #[schemars(range(min = 1))]
    pub ttl_minutes: u32,
    /// Language of command replies, notices and questions of the instance: `auto`, `en` or `zh`. `auto` is the language of
    /// the person's newest message that decides it, else English. `/language` sets it for one conversation.
    pub language: LanguageSetting,
}

impl Default for DeliveryConfig {
    fn default() -> Self {
        Self { ttl_minutes: 15, language: LanguageSetting::Auto }
    }
}
