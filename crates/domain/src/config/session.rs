//! `[session]`: how conversations are kept apart.

mod maintenance;
mod shared;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use maintenance::{Maintenance, Mode};

use super::name;
use super::report::Report;
use crate::scope::DmScope;

/// How conversations are kept apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// The last part of the key of an agent's main conversation: `agent:<id>:<main_key>`.
    pub main_key: String,
    /// How conversations with single persons are kept apart. Left out: `main` while one person alone can write, and
    /// `per-channel-peer` once several can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dm_scope: Option<DmScope>,
    /// Who is the same person on several channels: `alice = ["telegram:123", "discord:456"]`. Their direct messages
    /// are one conversation where each person has one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub identity_links: BTreeMap<String, Vec<String>>,
    /// Lets several people share an agent's main conversation: each sees what the others write.
    pub allow_shared_dm: bool,
    /// What becomes of conversations that nobody uses any more.
    pub maintenance: Maintenance,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            main_key: "main".to_owned(),
            dm_scope: None,
            identity_links: BTreeMap::new(),
            allow_shared_dm: false,
            maintenance: Maintenance::default(),
        }
    }
}

impl Session {
    pub(super) fn check(&self, report: &mut Report) {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if self.main_key.is_empty() || self.main_key.len() > 64 || !self.main_key.chars().all(word) {
            let message = format!("{:?} cannot be part of a session key", self.main_key);
            report.error("session.main_key", message, "use up to 64 of a-z, 0-9, '_' and '-'");
        }
        self.check_links(report);
    }

    fn check_links(&self, report: &mut Report) {
        let mut known: BTreeMap<&str, &str> = BTreeMap::new();
        for (person, ids) in &self.identity_links {
            let path = name::join("session.identity_links", person);
            if person.is_empty() || person.contains(':') {
                let message = format!("{person:?} cannot be a person's name");
                report.error(&path, message, "use a word without ':'");
            }
            for (at, id) in ids.iter().enumerate() {
                let place = format!("{path}[{at}]");
                if !id.split_once(':').is_some_and(|(channel, id)| !channel.is_empty() && !id.is_empty()) {
                    let message = format!("{id:?} names no sender");
                    report.error(&place, message, "write channel:id, such as telegram:123");
                }
                if let Some(other) = known.insert(id, person).filter(|other| other != person) {
                    let message = format!("{id:?} is both {other:?} and {person:?}");
                    report.error(&place, message, "keep one of them");
                }
            }
        }
    }
}
