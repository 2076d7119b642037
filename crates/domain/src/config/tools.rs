//! `[tools]`: rules about tools for all agents.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::key_names;
use super::report::ConfigReport;
use super::secret::Secret;
use crate::channel;
use crate::policy::{self, ApprovalMode, ToolPolicy, ToolProfile, ToolRules};
use crate::relay::AgentToAgent;

/// Rules about tools for all agents. An agent's own rules can only narrow them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// Allows web tools to reach loopback and private addresses. Off by default, so that no web page can trick an agent
    /// into reading from your network.
    pub allow_private_addresses: bool,
    /// Tools that are disabled for every agent, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<String>,
    /// Limits the tools to this profile: `minimal`, `messaging`, `coding` or `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ToolProfile>,
    /// Allowed tools: names, `group:…`, or patterns in which `*` matches any text. If empty, all tools are allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Denied tools. Deny wins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Default approval mode: `always`, `unsafe` (tools that declare themselves unsafe) or `never`. Agents can only
    /// make it stricter. Defaults to `unsafe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalMode>,
    /// Approval mode of single tools, groups or patterns: `approvals = { shell = "always" }`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub approvals: BTreeMap<String, ApprovalMode>,
    /// Restrictions for sub-agent sessions.
    pub subagents: ToolPolicy,
    /// Restrictions by sender: `[tools.senders."webhook:ci:*"]`. The name is a pattern of `channel:account:peer`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub senders: BTreeMap<String, ToolPolicy>,
    /// Whether agents may write into each other's sessions with `sessions_send`.
    pub agent_to_agent: AgentToAgent,
    /// Conversations, other than the current one, to which agents may post with `message`: patterns of
    /// `channel:account:peer`, such as `slack:work:C024BE91L`. If empty, the tool is unavailable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub message_to: Vec<String>,
    /// Agents that may write to other instances of the same control plane, by id; `*` matches any text. The control
    /// plane has its own rules for what instances may send to each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<String>,
    /// The search service of `web_search`. If omitted, the tool is unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_search: Option<WebSearch>,
}

impl ToolsConfig {
    pub fn tool_rules(&self) -> ToolRules {
        ToolRules {
            policy: ToolPolicy {
                profile: self.profile,
                allow: self.allow.clone(),
                deny: self.deny.clone(),
                approval: self.approval,
                approvals: self.approvals.clone(),
            },
            disabled: self.disabled.clone(),
            subagents: self.subagents.clone(),
            senders: self.senders.clone(),
        }
    }

    pub(super) fn report_errors(&self, servers: &[String], report: &mut ConfigReport) {
        let rules = self.tool_rules();
        let disabled = ToolPolicy { deny: rules.disabled, ..ToolPolicy::default() };
        for unknown in policy::find_invalid_entries(&disabled, &[], servers) {
            report.add_error(&unknown.path.replace("deny", "tools.disabled"), unknown.message, unknown.hint);
        }
        report_policy_errors("tools", &rules.policy, servers, report);
        for (at, pattern) in self.message_to.iter().enumerate() {
            let channel = pattern.split(':').next().unwrap_or_default();
            if pattern.matches(':').count() < 2
                || !(channel.contains('*') || channel::known_channels().contains(&channel))
            {
                let message = format!("{pattern:?} does not identify a conversation");
                let hint = "use channel:account:peer, such as \"telegram:default:*\"";
                report.add_error(&format!("tools.message_to[{at}]"), message, hint);
            }
        }
        report_policy_errors("tools.subagents", &rules.subagents, servers, report);
        for (pattern, policy) in &rules.senders {
            report_policy_errors(&key_names::join_key("tools.senders", pattern), policy, servers, report);
        }
        self.web_search.iter().for_each(|search| search.report_errors(report));
    }
}

pub(super) fn report_policy_errors(
    path: &str,
    policy: &ToolPolicy,
    servers: &[String],
    report: &mut ConfigReport,
) {
    for unknown in policy::find_invalid_entries(policy, &[], servers) {
        report.add_error(&format!("{path}.{}", unknown.path), unknown.message, unknown.hint);
    }
}

/// A search service: `[tools.web_search]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearch {
    /// The protocol of the service.
    pub kind: SearchKind,
    /// The URL of the service. Required for SearXNG; other services have a default.
    #[schemars(url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The API key, preferably as a reference: `env:BRAVE_API_KEY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// Your own SearXNG; its settings must allow the format `json`.
    Searxng,
    Brave,
    Tavily,
}

impl WebSearch {
    fn report_errors(&self, report: &mut ConfigReport) {
        match self.kind {
            SearchKind::Searxng if self.url.is_none() => {
                let hint = r#"add it, like url = "http://127.0.0.1:8888""#;
                report.add_error("tools.web_search", "url is missing, and SearXNG has no default URL", hint);
            }
            SearchKind::Brave | SearchKind::Tavily if self.api_key.is_none() => {
                let hint = r#"add it, like api_key = "env:SEARCH_API_KEY""#;
                report.add_error(
                    "tools.web_search",
                    "api_key is missing, and this service requires one",
                    hint,
                );
            }
            _ => {}
        }
    }
}
