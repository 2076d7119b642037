//! Tool policy: decides which tools a turn has, and names the rule that decided. The tool list shown to a model, the
//! calls that the dispatcher runs and `tools explain` all use [`policy_steps`], so they cannot disagree.
//!
//! Each layer can only remove tools, never add them. Within a layer, deny wins.

mod approver;
mod explain;
mod inherited;
mod patterns;
mod risk;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::glob::glob_matches;
use crate::id::AgentId;
use crate::team::tools::SEND_MESSAGE;
use crate::tool::{ToolConsent, ToolEffect, ToolRisk, ToolSpec};
pub use approver::{RequiredApprover, required_approver, writes_instructions};
pub use explain::ToolPolicyReason;
pub use inherited::InheritedTools;
pub use patterns::{InvalidPolicyEntry, entry_covers_tool, find_invalid_entries};
pub use risk::{HIGH_RISK, high_risk_tools};

/// A named list of tools to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolProfile {
    /// The agent's own todo list, plus listing models and agents.
    Minimal,
    /// `Minimal` plus communication: memory, messages, other sessions.
    Messaging,
    /// `Minimal` plus work: files, programs, web, memory.
    Coding,
    /// All tools.
    Full,
}

/// When a tool call needs approval by a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// Asks nobody, except before tools that create or change agents.
    Never,
    /// Asks before tools that declare themselves unsafe.
    Unsafe,
    /// Asks before every call.
    Always,
}

/// Which tools are available and which of them need approval. Deny wins; an empty allow list allows every tool that is
/// not denied elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolPolicy {
    /// Limits the tools to this profile: `minimal`, `messaging`, `coding` or `full`. The lists narrow it further.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ToolProfile>,
    /// Allowed tools: names, `group:…`, or patterns in which `*` matches any text. High-risk tools need an entry that
    /// is more specific than a bare `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Denied tools, written like `allow`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Default approval mode: `always`, `unsafe` or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalMode>,
    /// Approval mode of single tools, groups or patterns.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub approvals: BTreeMap<String, ApprovalMode>,
}

/// Tool rules of an instance, for all of its agents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolRules {
    pub policy: ToolPolicy,
    /// Tools that are disabled for every agent.
    pub disabled: Vec<String>,
    /// Policy for sub-agent sessions.
    pub subagents: ToolPolicy,
    /// Policies by sender: the keys are patterns of `channel:account:peer`.
    pub senders: BTreeMap<String, ToolPolicy>,
}

/// The agent whose turn it is.
#[derive(Clone, Copy, Debug)]
pub struct PolicyAgent<'a> {
    pub id: &'a AgentId,
    pub policy: &'a ToolPolicy,
    pub is_default: bool,
    /// The agent is defined in the config file, not only in the database.
    pub in_config: bool,
}

/// All inputs of the tool policy for one turn.
#[derive(Clone, Debug)]
pub struct PolicyLayers<'a> {
    pub rules: &'a ToolRules,
    pub agent: PolicyAgent<'a>,
    /// Tools of the turn that spawned this session. `None` for a session that a person started.
    pub inherited: Option<&'a InheritedTools>,
    /// Number of spawning sessions above this one.
    pub spawn_depth: u32,
    /// The session may spawn sub-agents: its depth is below the maximum.
    pub has_room: bool,
    /// Senders of all messages that this turn answers, as `channel:account:peer`.
    pub senders: &'a [String],
    /// The session has a conversation in which a person can be asked.
    pub can_ask: bool,
    /// The agent is a team member whose plan is not approved yet.
    pub awaits_plan: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyLayer {
    Instance,
    Agent,
    Risk,
    Inherited,
    Plan,
    Subagents,
    Sender,
    Approval,
}

/// The decision of one layer about one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStep<'a> {
    pub layer: PolicyLayer,
    pub rule: PolicyRule<'a>,
    /// The pattern of the sender rule that matched.
    pub sender: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyRule<'a> {
    /// No rule matches, so nothing is denied.
    Open,
    /// An entry of the allow list matches.
    Allowed(&'a str),
    /// The profile lists the tool.
    InProfile(ToolProfile),
    Disabled(&'a str),
    Denied(&'a str),
    NotInProfile(ToolProfile),
    /// The layer has an allow list that does not list the tool.
    NotListed,
    /// The tool is high-risk, and no name, group or profile allows it here.
    NotGranted,
    /// The turn that spawned this session did not have the tool.
    NotInherited,
    /// The tool does more than read, and the team lead has not approved the session's plan.
    PlanNotApproved,
    /// Sub-agent sessions never have this tool.
    NeverInChild,
    /// Sub-agent sessions have this tool only if it is allowed by name.
    NotInChild,
    /// The tool spawns sub-agents, and the session is at the maximum depth.
    NoRoom,
    /// The tool needs approval, and the session has no conversation in which a person can be asked.
    NobodyToAsk,
}

impl PolicyRule<'_> {
    pub fn is_allowed(self) -> bool {
        matches!(self, Self::Open | Self::Allowed(_) | Self::InProfile(_))
    }
}

/// Tools that sub-agent sessions never have, whatever the lists say.
const NEVER_IN_CHILD: [&str; 4] = ["agent_create", "agent_update", "cron_*", "message"];

/// Tools that sub-agent sessions have only if they are allowed by name.
const NOT_IN_CHILD: [&str; 1] = ["sessions_send"];
/// Tools that sub-agent sessions at the maximum depth have only if they are allowed by name: they have no children.
const NOT_IN_LEAF: [&str; 2] = ["sessions_list", "sessions_history"];
const SPAWN_TOOL: &str = "sessions_spawn";

/// Returns the decision of every layer about a tool, in order. The first denial wins.
pub fn policy_steps<'a>(
    tool: &'a ToolSpec,
    layers: &'a PolicyLayers<'a>,
) -> impl Iterator<Item = PolicyStep<'a>> {
    let step = |layer, rule| PolicyStep { layer, rule, sender: None };
    let senders = layers
        .rules
        .senders
        .iter()
        .filter(|(pattern, _)| layers.senders.iter().any(|sender| glob_matches(pattern, sender)));
    [
        step(PolicyLayer::Instance, instance_rule(tool, layers.rules)),
        step(PolicyLayer::Agent, policy_rule(&tool.name, layers.agent.policy)),
        step(PolicyLayer::Risk, risk_rule(tool, layers)),
        step(PolicyLayer::Inherited, inherited::inherited_rule(tool, layers)),
        step(PolicyLayer::Plan, plan_rule(tool, layers)),
        step(PolicyLayer::Subagents, child_rule(tool, layers)),
    ]
    .into_iter()
    .chain(senders.map(|(pattern, policy)| PolicyStep {
        layer: PolicyLayer::Sender,
        rule: policy_rule(&tool.name, policy),
        sender: Some(pattern),
    }))
    .chain(std::iter::once_with(move || step(PolicyLayer::Approval, approval_rule(tool, layers))))
}

/// Returns whether the turn has the tool. The tool list and the dispatcher both call this.
pub fn allows_tool(tool: &ToolSpec, layers: &PolicyLayers<'_>) -> bool {
    policy_steps(tool, layers).all(|step| step.rule.is_allowed())
}

/// Returns whether every call of the tool needs approval. A tool can also ask for single calls.
///
/// An agent can be stricter than the instance, the sub-agent rules and the sender rules. It can be laxer only if none
/// of them sets a mode. An inherited tool keeps the approval requirement it was inherited with.
pub fn needs_approval(tool: &ToolSpec, layers: &PolicyLayers<'_>) -> bool {
    if inherited::requires_inherited_approval(tool, layers) || approver::lacks_authority(tool, layers) {
        return true;
    }
    let senders = layers
        .rules
        .senders
        .iter()
        .filter(|(pattern, _)| layers.senders.iter().any(|sender| glob_matches(pattern, sender)));
    let child = (layers.spawn_depth > 0).then_some(&layers.rules.subagents);
    let others = std::iter::once(&layers.rules.policy).chain(child).chain(senders.map(|(_, policy)| policy));
    let floor = others.filter_map(|policy| approval_mode(tool, policy)).max();
    let own = approval_mode(tool, layers.agent.policy);
    let mode = match (floor, own) {
        (Some(floor), Some(own)) => floor.max(own),
        (floor, own) => floor.or(own).unwrap_or(ApprovalMode::Unsafe),
    };
    match tool.consent {
        ToolConsent::NotNeeded | ToolConsent::ByCall => mode == ApprovalMode::Always,
        ToolConsent::AskPerson => mode != ApprovalMode::Never,
    }
}

/// Returns the strictest mode that names this tool, else the mode for all tools.
fn approval_mode(tool: &ToolSpec, policy: &ToolPolicy) -> Option<ApprovalMode> {
    named_mode(&tool.name, policy).or(policy.approval)
}

/// Returns the strictest mode that names this tool.
pub fn named_mode(tool: &str, policy: &ToolPolicy) -> Option<ApprovalMode> {
    policy.approvals.iter().filter(|(entry, _)| entry_covers_tool(entry, tool)).map(|(_, mode)| *mode).max()
}

fn instance_rule<'a>(tool: &ToolSpec, rules: &'a ToolRules) -> PolicyRule<'a> {
    match patterns::first_matching_entry(&rules.disabled, &tool.name) {
        Some(entry) => PolicyRule::Disabled(entry),
        None => policy_rule(&tool.name, &rules.policy),
    }
}

fn policy_rule<'a>(tool: &str, policy: &'a ToolPolicy) -> PolicyRule<'a> {
    if let Some(entry) = patterns::first_matching_entry(&policy.deny, tool) {
        return PolicyRule::Denied(entry);
    }
    if let Some(profile) = policy.profile.filter(|profile| !profile.includes_tool(tool)) {
        return PolicyRule::NotInProfile(profile);
    }
    match (patterns::first_matching_entry(&policy.allow, tool), policy.profile) {
        (Some(entry), _) => PolicyRule::Allowed(entry),
        (None, _) if !policy.allow.is_empty() => PolicyRule::NotListed,
        (None, Some(profile)) => PolicyRule::InProfile(profile),
        (None, None) => PolicyRule::Open,
    }
}

/// Requires an explicit grant of high-risk tools, except for the default agent in a session that was not spawned.
fn risk_rule<'a>(tool: &ToolSpec, layers: &PolicyLayers<'a>) -> PolicyRule<'a> {
    let trusted = layers.agent.is_default && layers.spawn_depth == 0;
    if tool.risk == ToolRisk::Low || trusted {
        return PolicyRule::Open;
    }
    let policy = layers.agent.policy;
    match (explicit_entry(policy, &tool.name), policy.profile) {
        (Some(entry), _) => PolicyRule::Allowed(entry),
        (None, Some(profile)) if profile.includes_tool(&tool.name) => PolicyRule::InProfile(profile),
        (None, _) => PolicyRule::NotGranted,
    }
}

/// Allows tools that only read, and the message tool that submits the plan.
fn plan_rule(tool: &ToolSpec, layers: &PolicyLayers<'_>) -> PolicyRule<'static> {
    let is_harmless = tool.effect == ToolEffect::Pure || tool.name == SEND_MESSAGE;
    if layers.awaits_plan && !is_harmless { PolicyRule::PlanNotApproved } else { PolicyRule::Open }
}

fn child_rule<'a>(tool: &ToolSpec, layers: &PolicyLayers<'a>) -> PolicyRule<'a> {
    let (name, policy) = (tool.name.as_str(), &layers.rules.subagents);
    if layers.spawn_depth == 0 {
        return PolicyRule::Open;
    }
    if NEVER_IN_CHILD.iter().any(|entry| glob_matches(entry, name)) {
        return PolicyRule::NeverInChild;
    }
    if name == SPAWN_TOOL && !layers.has_room {
        return PolicyRule::NoRoom;
    }
    let is_lost = NOT_IN_CHILD.contains(&name) || (NOT_IN_LEAF.contains(&name) && !layers.has_room);
    match policy_rule(name, policy) {
        rule if rule.is_allowed() && is_lost && explicit_entry(policy, name).is_none() => {
            PolicyRule::NotInChild
        }
        rule => rule,
    }
}

/// Returns the entry that allows the tool, ignoring a bare `*`.
fn explicit_entry<'a>(policy: &'a ToolPolicy, tool: &str) -> Option<&'a str> {
    policy.allow.iter().map(String::as_str).find(|entry| *entry != "*" && entry_covers_tool(entry, tool))
}

fn approval_rule(tool: &ToolSpec, layers: &PolicyLayers<'_>) -> PolicyRule<'static> {
    let may_ask = tool.consent == ToolConsent::ByCall || needs_approval(tool, layers);
    if may_ask && !layers.can_ask { PolicyRule::NobodyToAsk } else { PolicyRule::Open }
}
