//! The one filter: which tools a turn has, and which rule decided. The list a model is shown, the calls the
//! dispatcher runs and `tools explain` all come from [`steps`], so they can not disagree.
//!
//! Layers narrow only: a tool is there if no layer refuses it. Inside a layer deny wins.

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
    /// Its own list of things to do, and a look at the models and agents there are.
    Minimal,
    /// Minimal, and talking: memory, messages, other sessions.
    Messaging,
    /// Minimal, and working: files, programs, web, memory.
    Coding,
    /// Every tool there is.
    Full,
}

/// Whether a person is asked before a tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// Nobody is asked, but for what makes or changes agents.
    Never,
    /// Tools that call themselves unsafe ask.
    Unsafe,
    /// Every call asks.
    Always,
}

/// Which tools there are and which of them ask first. Deny wins; an empty allow list allows everything that is
/// not refused elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolPolicy {
    /// Only the tools of this profile: `minimal`, `messaging`, `coding` or `full`. The lists narrow it further.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ToolProfile>,
    /// Tools, `group:…`, or patterns in which `*` stands for any text. Tools of high risk must be named by more
    /// than a bare `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The same, for what is never there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Whether a person is asked before a tool runs: `always`, `unsafe` or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalMode>,
    /// The same for single tools, groups or patterns.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub approvals: BTreeMap<String, ApprovalMode>,
}

/// What an instance says about tools, for all of its agents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolRules {
    pub policy: ToolPolicy,
    /// Tools that no agent has.
    pub disabled: Vec<String>,
    /// For sessions that another session spawned.
    pub subagents: ToolPolicy,
    /// By who asks: patterns of `channel:account:peer`.
    pub senders: BTreeMap<String, ToolPolicy>,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug)]
pub struct PolicyAgent<'a> {
    pub id: &'a AgentId,
    pub policy: &'a ToolPolicy,
    pub is_default: bool,
    /// Its spec is in the config file, not in the database alone.
    pub in_config: bool,
}

/// Everything that decides about the tools of one turn.
#[derive(Clone, Debug)]
pub struct PolicyLayers<'a> {
    pub rules: &'a ToolRules,
    pub agent: PolicyAgent<'a>,
    /// What the turn that began this session could use; none where a person began it.
    pub inherited: Option<&'a InheritedTools>,
    /// How many sessions above this one spawned each other.
    pub spawn_depth: u32,
    /// It is not so deep that it could spawn none of its own.
    pub has_room: bool,
    /// Everyone whose message this turn answers, as `channel:account:peer`.
    pub senders: &'a [String],
    /// There is a conversation in which a person can be asked.
    pub can_ask: bool,
    /// A member of a team whose plan is not approved yet.
    pub awaits_plan: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

/// What one layer says about one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStep<'a> {
    pub layer: PolicyLayer,
    pub rule: PolicyRule<'a>,
    /// The pattern of the sender's rule.
    pub sender: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyRule<'a> {
    /// Nothing is said, so nothing is refused.
    Open,
    /// An entry of the allow list.
    Allowed(&'a str),
    /// The profile lists it.
    InProfile(ToolProfile),
    Disabled(&'a str),
    Denied(&'a str),
    NotInProfile(ToolProfile),
    /// There is an allow list, and it is not on it.
    NotListed,
    /// Of high risk, and nobody allowed it here by name, group or profile.
    NotGranted,
    /// The turn that began this session did not have it.
    NotInherited,
    /// It does more than read, and the lead of the team has not approved the session's plan.
    PlanNotApproved,
    /// A session that another spawned never has it.
    NeverInChild,
    /// A session that another spawned has it only where it is allowed by name.
    NotInChild,
    /// It spawns, and there is no room below.
    NoRoom,
    /// It asks a person, and there is none here to be asked.
    NobodyToAsk,
}

impl PolicyRule<'_> {
    pub fn is_allowed(self) -> bool {
        matches!(self, Self::Open | Self::Allowed(_) | Self::InProfile(_))
    }
}

/// Sessions that another session spawned never have these, whatever the lists say.
const NEVER_IN_CHILD: [&str; 4] = ["agent_create", "agent_update", "cron_*", "message"];

/// Sessions that another session spawned have these only where they are allowed by name.
const NOT_IN_CHILD: [&str; 1] = ["sessions_send"];
/// And these, unless there is room for sessions of their own that they would look after.
const NOT_IN_LEAF: [&str; 2] = ["sessions_list", "sessions_history"];
const SPAWN_TOOL: &str = "sessions_spawn";

/// Every layer's word on a tool, in order. The first that refuses decides.
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

/// Whether the turn has the tool: asked once for each, for the list and for the calls alike.
pub fn allows_tool(tool: &ToolSpec, layers: &PolicyLayers<'_>) -> bool {
    policy_steps(tool, layers).all(|step| step.rule.is_allowed())
}

/// Whether a person must agree before each call of it. What the tool says call by call comes on top.
///
/// An agent can be stricter than the instance, the rules for children and those for senders; it can only be
/// laxer where none of them says anything. What was lent with the question is had with it.
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

/// The strictest word on this tool by name, else the word on all.
fn approval_mode(tool: &ToolSpec, policy: &ToolPolicy) -> Option<ApprovalMode> {
    named_mode(&tool.name, policy).or(policy.approval)
}

/// The strictest word on this tool by name.
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

/// What is of high risk must have been meant: in a child, and for every agent but the default one.
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

/// Reading, and the mail by which the plan is sent.
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

/// The entry that allows a tool by more than a bare star.
fn explicit_entry<'a>(policy: &'a ToolPolicy, tool: &str) -> Option<&'a str> {
    policy.allow.iter().map(String::as_str).find(|entry| *entry != "*" && entry_covers_tool(entry, tool))
}

fn approval_rule(tool: &ToolSpec, layers: &PolicyLayers<'_>) -> PolicyRule<'static> {
    let may_ask = tool.consent == ToolConsent::ByCall || needs_approval(tool, layers);
    if may_ask && !layers.can_ask { PolicyRule::NobodyToAsk } else { PolicyRule::Open }
}
