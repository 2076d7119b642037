//! The tools of a turn: which pass the policy filter, for whom, and why the others are refused.

use std::sync::Arc;

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::{ChatAddress, INTERNAL_CHANNEL};
use polyclaw_domain::policy::{self, PolicyAgent, PolicyLayers, ToolPolicyReason};
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::run::{self, SubagentRun};
use polyclaw_domain::session::Session;
use polyclaw_domain::tool::{ToolCall, ToolConsent, ToolEffect, ToolRisk, ToolScope, ToolSpec};
use polyclaw_store::messages::SessionMessage;

use super::TurnContext;
use crate::core::Engine;
use crate::settings::EngineSettings;
use crate::toolbox::subagents;

/// A tool offered in this turn.
pub(crate) struct OfferedTool {
    pub spec: Arc<ToolSpec>,
    /// A person must approve each call.
    pub requires_approval: bool,
}

impl TurnContext {
    /// Applies the policy filter to every available tool.
    pub(super) fn offered_tools(&self, engine: &Engine, settings: &EngineSettings) -> Vec<OfferedTool> {
        let layers = self.policy_layers(settings);
        let listed = engine.tools().list_tools(&self.scope).into_iter();
        let allowed = listed.filter(|tool| policy::allows_tool(tool, &layers));
        allowed
            .map(|spec| OfferedTool { requires_approval: policy::needs_approval(&spec, &layers), spec })
            .collect()
    }

    fn policy_layers<'a>(&'a self, settings: &'a EngineSettings) -> PolicyLayers<'a> {
        PolicyLayers {
            rules: &settings.tools,
            agent: PolicyAgent {
                id: &self.spec.agent_id,
                policy: &self.spec.policy.tools,
                is_default: self.spec.agent_id == settings.default_agent,
                in_config: self.in_config && !settings.is_implicit(&self.spec.agent_id),
            },
            inherited: self.session.inherited.as_ref(),
            spawn_depth: self.session.spawn_depth,
            has_room: self.scope.spawns,
            senders: &self.senders,
            can_ask: self.scope.can_ask,
            awaits_plan: self.awaits_plan,
        }
    }

    /// Returns the lowest authority of everyone this turn works for.
    pub fn authority(&self) -> Authority {
        let own = Authority::lowest_of_senders(&self.senders);
        let inherited_authority = self.session.inherited.as_ref().and_then(|inherited| inherited.authority);
        inherited_authority.map_or(own, |above| above.min(own))
    }

    /// Returns everyone this turn works for, as shown to people.
    pub fn requester_names(&self) -> Vec<&str> {
        Authority::without_marks(&self.senders).collect()
    }

    /// Returns the error for a model that calls a tool it was not offered.
    pub fn tool_refusal(&self, engine: &Engine, call: &ToolCall) -> String {
        let name = call.name.as_str();
        if let Some(refused) = subagents::unusable_tool_reply(&self.spec, &self.session, call, &self.scope) {
            engine
                .delegation_stats
                .count_rejection_by_name(&self.spec.agent_id, call.arguments["agent_id"].as_str());
            return refused;
        }
        let settings = engine.settings();
        let layers = self.policy_layers(&settings);
        let tools = engine.tools().list_tools(&self.scope);
        let tool = tools.iter().find(|tool| tool.name == name);
        let step =
            tool.and_then(|tool| policy::policy_steps(tool, &layers).find(|step| !step.rule.is_allowed()));
        match step {
            Some(step) => ToolPolicyReason::for_step(name, &step, &layers).refusal_text(name),
            None => format!("There is no tool '{}' here.", quote_safely(name)),
        }
    }

    /// Lowers the authority: from now on the turn also works for people who have no more than this.
    pub fn lower_authority(&mut self, engine: &Engine, authority: Authority) {
        if authority < self.authority() {
            self.senders.extend(authority.sender_mark());
            self.scope.authority = self.authority();
            self.refresh_tools(engine);
        }
    }

    /// Lists the tools again, after more tools were discovered or the turn's role or authority changed.
    pub fn refresh_tools(&mut self, engine: &Engine) {
        self.tools = self.offered_tools(engine, &engine.settings());
    }
}

pub(super) fn tool_scope(
    engine: &Engine,
    session: &Session,
    spec: &AgentSpec,
    asked_by: &[&ChatAddress],
) -> ToolScope {
    let can_ask = asked_by.iter().any(|address| can_ask_person(engine, address));
    ToolScope::for_session(spec, session.key.clone(), &engine.agent_workspace(spec), can_ask)
        .for_child_session(spec, session)
}

/// Collects everyone a turn works for, in the form used by sender rules and without duplicates, plus marks for their
/// authority.
pub(crate) fn collect_senders(asked: &[&SessionMessage], run: Option<&SubagentRun>) -> Vec<String> {
    let written = asked.iter().filter_map(|message| message.address.as_ref()).map(ChatAddress::sender_key);
    let marks = asked.iter().filter_map(|message| message_authority(message)?.sender_mark());
    let carried = asked.iter().filter_map(|message| message.meta.as_ref()).flat_map(run::requested_by);
    let runs = run.into_iter().flat_map(|run| run.task.requested_by.iter().cloned());
    let mut senders: Vec<String> = Vec::new();
    for sender in written.chain(marks).chain(carried.map(str::to_owned)).chain(runs) {
        if !senders.contains(&sender) {
            senders.push(sender);
        }
    }
    senders
}

/// Returns the authority of an input's author. Steps of the turn itself have no address, so they return `None`.
pub(crate) fn message_authority(message: &SessionMessage) -> Option<Authority> {
    let address = message.address.as_ref()?;
    let is_local = address.is_pull_channel() || address.channel == INTERNAL_CHANNEL;
    Authority::from_message(&message.origin, message.meta.as_ref(), is_local)
}

/// Returns the conversations that wait for this turn.
pub(super) fn input_addresses<'a>(
    stored: &'a [SessionMessage],
    messages: &'a [SessionMessage],
) -> impl Iterator<Item = &'a ChatAddress> {
    stored.iter().chain(messages).filter_map(|message| message.address.as_ref())
}

/// Whether a person can be asked at this address: in the terminal, in the web UI, and in every channel that can send
/// messages. An API caller is a program.
pub(crate) fn can_ask_person(engine: &Engine, address: &ChatAddress) -> bool {
    match address.channel.as_str() {
        "cli" | "web" => true,
        channel => engine.ports.channels.contains_key(channel),
    }
}

pub(super) fn client_tools(stored: &[SessionMessage]) -> Vec<Arc<ToolSpec>> {
    let listed = stored
        .iter()
        .rev()
        .find_map(|message| message.meta.as_ref()?.get("client_tools")?.as_array().cloned());
    let spec = |tool: serde_json::Value| {
        Some(Arc::new(ToolSpec {
            name: tool.get("name")?.as_str()?.to_owned(),
            description: tool.get("description").and_then(|d| d.as_str()).unwrap_or_default().to_owned(),
            parameters: tool
                .get("parameters")
                .cloned()
                .unwrap_or_else(|| serde_json::json!({ "type": "object" })),
            effect: ToolEffect::Effect,
            risk: ToolRisk::Low,
            consent: ToolConsent::NotNeeded,
            confined: false,
        }))
    };
    listed.unwrap_or_default().into_iter().filter_map(spec).collect()
}
