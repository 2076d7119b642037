//! `[tools]`: what tools may do, for all agents together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What tools may do, for all agents together. An agent's own rules can only narrow it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tools {
    /// Lets web tools reach loopback and private addresses. Off, so that no web page can talk an agent into
    /// reading from your network.
    pub allow_private_addresses: bool,
    /// Tools that no agent has, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<String>,
}
