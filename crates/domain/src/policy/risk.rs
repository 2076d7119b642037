//! The built-in tools of high risk, by name: a question about an agent begins with those that it may use.

use super::{ToolPolicy, explicit_entry, policy_rule};

/// In the order in which a person is told of them.
pub const HIGH_RISK: [&str; 11] = [
    "shell",
    "agent_create",
    "agent_update",
    "http_fetch",
    "web_search",
    "message",
    "instance_send",
    "delegate_to_instance",
    "cron_add",
    "cron_remove",
    "cron_run",
];

/// Those that a policy lets its agent use. The agent by default may use what is not refused.
pub fn high_risk_tools(policy: &ToolPolicy, is_default: bool) -> impl Iterator<Item = &'static str> {
    let is_meant = move |tool: &str| {
        let in_profile = policy.profile.is_some_and(|profile| profile.includes_tool(tool));
        is_default || in_profile || explicit_entry(policy, tool).is_some()
    };
    HIGH_RISK.into_iter().filter(move |tool| policy_rule(tool, policy).is_allowed() && is_meant(tool))
}
