//! `[session]`: how conversations are kept apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::Report;

/// How conversations are kept apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// The last part of the key of an agent's main conversation: `agent:<id>:<main_key>`.
    pub main_key: String,
}

impl Default for Session {
    fn default() -> Self {
        Self { main_key: "main".to_owned() }
    }
}

impl Session {
    pub(super) fn check(&self, report: &mut Report) {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if self.main_key.is_empty() || self.main_key.len() > 64 || !self.main_key.chars().all(word) {
            let message = format!("{:?} cannot be part of a session key", self.main_key);
            report.error("session.main_key", message, "use up to 64 of a-z, 0-9, '_' and '-'");
        }
    }
}
