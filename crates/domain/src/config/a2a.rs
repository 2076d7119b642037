//! `[a2a]`: agents exposed over A2A, and remote agents that agents here may call.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::AgentsConfig;
use super::key_names;
use super::report::ConfigReport;
use super::secret::Secret;
use crate::mcp::is_server_name;

/// Agent2Agent (A2A): which agents are exposed to others, and which remote agents can be called. Nothing is exposed or
/// called unless listed here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct A2aConfig {
    /// Agents that have a card and can be called at `/a2a/<agent>` with the instance's token. `*` is every agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expose: Vec<String>,
    /// The public URL of this instance for agent cards: `https://agents.example.com`. Defaults to the host of the
    /// request.
    #[schemars(url)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Remote agents, by a name of your choice: `[a2a.remote.billing]`. Agents whose `delegation.allow_agents` contains
    /// `a2a:billing` may delegate to it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub remote: BTreeMap<String, RemoteAgentConfig>,
}

/// A remote agent that speaks A2A (JSON-RPC).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteAgentConfig {
    /// The URL in its card. The token is sent only there.
    #[schemars(url)]
    pub url: String,
    /// Sent as `Authorization: Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// Whether it deduplicates messages by `messageId`, as Polyclaw does. Only then is a call repeated after a crash.
    #[serde(default)]
    pub idempotent: bool,
}

impl A2aConfig {
    pub(super) fn report_errors(&self, agents: &AgentsConfig, report: &mut ConfigReport) {
        agents.check_agent_list(self.expose.iter().enumerate(), "a2a.expose", report);
        for name in self.remote.keys().filter(|name| !is_server_name(name)) {
            let hint = "use up to 32 lower-case letters, digits and -, starting with a letter";
            let path = key_names::join_key("a2a.remote", name);
            report.add_error(&path, format!("{name:?} is not a valid name for a remote agent"), hint);
        }
        let known: Vec<&str> = self.remote.keys().take(key_names::MAX_COMPARED).map(String::as_str).collect();
        for (index, agent) in agents.list.iter().enumerate() {
            let named = agent.delegation.iter().flat_map(|rules| rules.allow_agents.iter().enumerate());
            for (at, entry) in named {
                let Some(name) =
                    crate::a2a::remote_agent_name(entry).filter(|name| !self.remote.contains_key(*name))
                else {
                    continue;
                };
                let path = format!("agents.list[{index}].delegation.allow_agents[{at}]");
                let message = format!("there is no remote agent {name:?}");
                report.add_error(&path, message, key_names::suggest_word(name, &known));
            }
        }
    }
}
