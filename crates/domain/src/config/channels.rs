//! `[channels]`: where messages come from and answers go.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::Agents;
use super::name;
use super::report::Report;
use super::secret::Secret;
use crate::id::AgentId;

/// Where messages come from and answers go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Channels {
    /// Programs that post messages to `/hooks/<name>`: `[channels.webhook.<name>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub webhook: BTreeMap<String, Webhook>,
}

/// A program that posts messages to `/hooks/<name>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Messages must be signed with this secret (HMAC-SHA256).
    pub secret: Secret,
    /// The agent that answers. The default agent if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Answers are posted here. Without it they are kept in the session only.
    #[schemars(url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_url: Option<String>,
    /// Answers are signed with this secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_secret: Option<Secret>,
    /// The receiver knows an answer it has seen by its key. Only then may one be posted again when a crash left
    /// it unknown whether it arrived.
    #[serde(default)]
    pub idempotent: bool,
}

impl Channels {
    pub(super) fn check(&self, agents: &Agents, report: &mut Report) {
        for (hook, webhook) in &self.webhook {
            let path = name::join("channels.webhook", hook);
            if hook.is_empty() || !hook.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
                let message = format!("{hook:?} cannot be part of the address /hooks/<name>");
                report.error(&path, message, "use letters, digits, '_' and '-'");
            }
            if let Some(agent) = &webhook.agent {
                agents.check_named(agent, &format!("{path}.agent"), report);
            }
            if webhook.reply_secret.is_some() && webhook.reply_url.is_none() {
                let message = "there is a secret to sign answers with, but no reply_url to post them to";
                report.error(&format!("{path}.reply_secret"), message, "add reply_url, or take this out");
            }
        }
    }
}
