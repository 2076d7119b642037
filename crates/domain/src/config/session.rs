//! `[session]`: how conversations are separated.

mod dm_sharing;
mod maintenance;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use maintenance::{MaintenanceConfig, MaintenanceMode};

use super::key_names;
use super::report::ConfigReport;
use crate::scope::DmScope;

/// How conversations are separated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionConfig {
    /// The last part of the key of an agent's main conversation: `agent:<id>:<main_key>`.
    pub main_key: String,
    /// How direct conversations are separated. Defaults to `main` while only one person can write, and to
    /// `per-channel-peer` if several can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dm_scope: Option<DmScope>,
    /// Ids of one person on several channels: `alice = ["telegram:123", "discord:456"]`. Their direct messages share a
    /// conversation in scopes with one conversation per person.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub identity_links: BTreeMap<String, Vec<String>>,
    /// Allows several people to share an agent's main conversation, so that each sees what the others write.
    pub allow_shared_dm: bool,
    /// Cleanup of unused conversations.
    pub maintenance: MaintenanceConfig,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            main_key: "main".to_owned(),
            dm_scope: None,
            identity_links: BTreeMap::new(),
            allow_shared_dm: false,
            maintenance: MaintenanceConfig::default(),
        }
    }
}

impl SessionConfig {
    pub(super) fn report_errors(&self, report: &mut ConfigReport) {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if self.main_key.is_empty() || self.main_key.len() > 64 || !self.main_key.chars().all(word) {
            let message = format!("{:?} is not valid in a session key", self.main_key);
            report.add_error("session.main_key", message, "use up to 64 of a-z, 0-9, '_' and '-'");
        }
        self.check_identity_links(report);
    }

    fn check_identity_links(&self, report: &mut ConfigReport) {
        let mut known: BTreeMap<&str, &str> = BTreeMap::new();
        for (person, ids) in &self.identity_links {
            let path = key_names::join_key("session.identity_links", person);
            if person.is_empty() || person.contains(':') {
                let message = format!("{person:?} is not a valid name for a person");
                report.add_error(&path, message, "use a name without ':'");
            }
            for (at, id) in ids.iter().enumerate() {
                let place = format!("{path}[{at}]");
                if !id.split_once(':').is_some_and(|(channel, id)| !channel.is_empty() && !id.is_empty()) {
                    let message = format!("{id:?} does not identify a sender");
                    report.add_error(&place, message, "use channel:id, such as telegram:123");
                }
                if let Some(other) = known.insert(id, person).filter(|other| other != person) {
                    let message = format!("{id:?} is assigned to both {other:?} and {person:?}");
                    report.add_error(&place, message, "keep one of them");
                }
            }
        }
    }
}
