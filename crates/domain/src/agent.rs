//! AgentSpec: capability. Resolved on every turn, so an edit takes effect at the next one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::provider::ModelRef;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    pub agent_id: AgentId,
    /// Unique among the agents of an instance.
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub defaults: Defaults,
    #[serde(default)]
    pub policy: Policy,
    /// Folder of its files, below the instance's workspace unless absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// `provider/model`; the instance's default where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Tried in order when the model fails.
    #[serde(default)]
    pub fallbacks: Vec<ModelRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    #[serde(default)]
    pub tools: ToolPolicy,
}

/// Deny wins; an empty allow list allows everything the instance offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolPolicy {
    #[serde(default)]
    pub allow: Vec<String>,
    #[serde(default)]
    pub deny: Vec<String>,
}

impl ToolPolicy {
    pub fn allows(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == tool || name == "*");
        !named(&self.deny) && (self.allow.is_empty() || named(&self.allow))
    }
}

impl AgentSpec {
    pub fn named(agent_id: AgentId) -> Self {
        Self {
            name: agent_id.to_string(),
            agent_id,
            description: String::new(),
            defaults: Defaults::default(),
            policy: Policy::default(),
            workspace: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_wins_and_an_empty_allow_list_allows() {
        let policy = |allow: &[&str], deny: &[&str]| ToolPolicy {
            allow: allow.iter().map(|s| (*s).to_owned()).collect(),
            deny: deny.iter().map(|s| (*s).to_owned()).collect(),
        };
        assert!(policy(&[], &[]).allows("shell"));
        assert!(!policy(&["shell"], &["shell"]).allows("shell"));
        assert!(!policy(&["read_file"], &[]).allows("shell"));
        assert!(!policy(&[], &["*"]).allows("read_file"));
    }
}
