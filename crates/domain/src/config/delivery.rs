//! `[delivery]`: how answers leave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How answers leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeliveryConfig {
    /// An answer older than this is not sent by itself after a restart; the operator is asked.
    #[schemars(range(min = 1))]
    pub ttl_minutes: u32,
}

impl Default for DeliveryConfig {
    fn default() -> Self {
        Self { ttl_minutes: 15 }
    }
}
