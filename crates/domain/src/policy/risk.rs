//! High-risk built-in tools by name: an approval request about an agent lists first which of them it may use.

use super::{ToolPolicy, explicit_entry, policy_rule};

/// In the order in which they are shown.
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

/// Returns the high-risk tools that a policy allows. The default agent may use all that are not denied.
pub fn high_risk_tools(policy: &ToolPolicy, is_default: bool) -> impl Iterator<Item = &'static str> {
    let is_meant = move |tool: &str| {
        let in_profile = policy.profile.is_some_and(|profile| profile.includes_tool(tool));
        is_default || in_profile || explicit_entry(policy, tool).is_some()
    };
    HIGH_RISK.into_iter().filter(move |tool| policy_rule(tool, policy).is_allowed() && is_meant(tool))
}
