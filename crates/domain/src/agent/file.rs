//! An agent spec as a file for Git: `agents/<id>/agent.toml`.

use super::AgentSpec;
use crate::nesting;

/// Returns the whole spec as TOML. [`from_toml`] parses it back.
pub fn to_toml(spec: &AgentSpec) -> Result<String, toml::ser::Error> {
    let body = toml::to_string_pretty(spec)?;
    Ok(format!(
        "# Written by Polyclaw whenever this agent changes. Edits have no effect: the agent is stored in the \
         database.\n{body}"
    ))
}

pub fn from_toml(text: &str) -> Result<AgentSpec, toml::de::Error> {
    nesting::check_toml(text).map_err(serde::de::Error::custom)?;
    toml::from_str(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn full_agent_spec_round_trips_through_toml() {
        let spec: AgentSpec = serde_json::from_value(json!({
            "agent_id": "ops", "name": "Ops \"x\"\nline", "description": "# [not] a = \"table\"",
            "defaults": {
                "model": { "provider": "p", "model": "a/b", "temperature": 0.3, "fallbacks": ["p/c"] },
                "max_tokens": 7, "reasoning_effort": "high", "system_prompt": "'''\n\"\"\"\n\\u0041\u{1f99e}",
            },
            "policy": {
                "tools": { "profile": "coding", "allow": ["group:fs"], "deny": ["*"], "approval": "always",
                           "approvals": { "group:web": "never" } },
                "skills": { "allow": ["a*"], "deny": ["b"] },
            },
            "context_policy": { "memory": false, "scope": "session", "recall_budget_tokens": 5, "kinds": ["fact"] },
            "workspace": { "dir": "/srv/x", "overlay": false },
            "identity": { "name": "N", "emoji": "🦞", "avatar": "a.png" },
            "isolation": "process",
            "sandbox": { "mode": "strict", "memory_mb": 64, "cpu_seconds": 1, "processes": 2, "file_mb": 3 },
            "budget": { "tokens_per_day": 1, "usd_per_day": 0.5, "usd_per_turn": 0.25 },
            "mcp": ["everything"],
        }))
        .unwrap();
        assert_eq!(from_toml(&to_toml(&spec).unwrap()).unwrap(), spec);
    }

    proptest! {
        #[test]
        fn text_of_any_content_round_trips(name in any::<String>(), prompt in any::<String>(), entry in any::<String>()) {
            let mut spec = AgentSpec::with_id(crate::id::AgentId::main());
            spec.name = name;
            spec.defaults.system_prompt = Some(prompt);
            spec.policy.tools.deny = vec![entry.clone()];
            spec.policy.tools.approvals.insert(entry, crate::policy::ApprovalMode::Always);
            prop_assert_eq!(from_toml(&to_toml(&spec).unwrap()).unwrap(), spec);
        }
    }
}
