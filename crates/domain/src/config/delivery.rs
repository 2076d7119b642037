//! `[delivery]`: delivery of answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Delivery of answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeliveryConfig {
    /// Maximum age of an answer that is sent automatically after a restart, in minutes. For older ones the operator is
    /// asked.
    #[schemars(range(min = 1))]
    pub ttl_minutes: u32,
}

impl Default for DeliveryConfig {
    fn default() -> Self {
        Self { ttl_minutes: 15 }
    }
}
