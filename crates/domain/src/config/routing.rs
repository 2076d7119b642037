//! `[[bindings]]`, `[broadcast]` and `[routing]`: which agent answers.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::AgentsConfig;
use super::channels::ChannelsConfig;
use super::key_names;
use super::report::ConfigReport;
use crate::channel;
use crate::id::AgentId;
use crate::provider::ModelRef;
use crate::route::{Binding, BindingMatch, WILDCARD};

/// Conversations that several agents answer: `"<peer id>" = ["agent", …]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BroadcastConfig {
    /// Whether the agents answer in parallel or one after the other.
    pub strategy: BroadcastStrategy,
    /// With sequential answers, show each agent the answers before its own.
    pub see_previous: bool,
    /// The agents that answer a conversation, by the platform id of the conversation.
    #[serde(flatten)]
    pub peers: BTreeMap<String, Vec<AgentId>>,
}

impl Default for BroadcastConfig {
    fn default() -> Self {
        Self { strategy: BroadcastStrategy::default(), see_previous: true, peers: BTreeMap::new() }
    }
}

/// Order in which the agents of a broadcast answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BroadcastStrategy {
    /// All in parallel, without knowing of each other.
    #[default]
    Parallel,
    /// One after the other.
    Sequential,
}

/// Routing of messages that no binding matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoutingConfig {
    /// A model that chooses an agent by the text of a message. Disabled unless a model is set.
    pub intent_classifier: IntentClassifierConfig,
}

/// A model that chooses an agent by the text of a message, if otherwise the default agent would answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IntentClassifierConfig {
    /// The model, as `provider/model`. If omitted, there is no classifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Timeout in milliseconds, after which the default agent answers.
    #[schemars(range(min = 50, max = 10_000))]
    pub timeout_ms: u32,
}

impl Default for IntentClassifierConfig {
    fn default() -> Self {
        Self { model: None, timeout_ms: 500 }
    }
}

pub(super) fn check_bindings(
    bindings: &[Binding],
    agents: &AgentsConfig,
    channels: &ChannelsConfig,
    report: &mut ConfigReport,
) {
    let accounts = channels.accounts_by_name();
    for (at, binding) in bindings.iter().enumerate() {
        let path = format!("bindings[{at}]");
        agents.check_agent_exists(&binding.agent_id, &format!("{path}.agent_id"), report);
        let wanted = &binding.match_rule;
        if !channel::known_channels().contains(&&*wanted.channel) {
            let message = format!("{:?} is not a channel", wanted.channel);
            let hint = key_names::suggest_word(&wanted.channel, &channel::known_channels());
            report.add_error(&format!("{path}.match.channel"), message, hint);
        }
        if !wanted.roles.is_empty() && wanted.guild_id.is_none() {
            let message = "roles require a server";
            report.add_error(&format!("{path}.match.roles"), message, "add guild_id");
        }
        check_account_match(wanted, &path, (channels, &accounts), report);
    }
}

/// Checks that a named account exists. Platforms without any account are not checked: one may be added later.
fn check_account_match(
    wanted: &BindingMatch,
    path: &str,
    (channels, accounts): (&ChannelsConfig, &BTreeMap<&'static str, BTreeSet<&str>>),
    report: &mut ConfigReport,
) {
    let Some(named) = wanted.account_id.as_deref().filter(|named| *named != WILDCARD) else { return };
    let hook = channels.webhook.get(named).filter(|_| wanted.channel == channel::WEBHOOK_CHANNEL);
    if hook.is_some_and(|hook| hook.agent.is_some()) {
        let message = format!("the webhook {named:?} already sets its agent: bindings do not apply to it");
        let hint = format!("remove the binding, or remove channels.webhook.{named}.agent");
        report.add_error(&format!("{path}.match.account_id"), message, hint);
    }
    let names = accounts.get(&*wanted.channel).filter(|names| !names.contains(named));
    if let Some(names) = names.filter(|_| report.is_section_sound("channels")) {
        let names: Vec<&str> = names.iter().copied().take(key_names::MAX_COMPARED).collect();
        let message = format!("there is no {} account {named:?}", wanted.channel);
        report.add_error(
            &format!("{path}.match.account_id"),
            message,
            key_names::suggest_word(named, &names),
        );
    }
}

impl BroadcastConfig {
    pub(super) fn report_errors(&self, agents: &AgentsConfig, report: &mut ConfigReport) {
        for (peer, listed) in &self.peers {
            let path = key_names::join_key("broadcast", peer);
            if listed.is_empty() {
                report.add_error(
                    &path,
                    "the list is empty",
                    "list the agents that answer here, or remove it",
                );
            }
            let mut seen = BTreeSet::new();
            for (at, agent) in listed.iter().enumerate() {
                agents.check_agent_exists(agent, &format!("{path}[{at}]"), report);
                if !seen.insert(agent) {
                    let message = format!("\"{agent}\" is listed twice");
                    report.add_error(&format!("{path}[{at}]"), message, "keep one of them");
                }
            }
        }
    }
}
