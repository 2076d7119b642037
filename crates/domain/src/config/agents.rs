//! `[agents]`: the agents of the instance and their settings.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::key_names;
use super::providers::{ProviderConfig, check_model};
use super::report::ConfigReport;
use super::tools::report_policy_errors;
use crate::agent::{
    AgentBudget, AgentIdentity, AgentPolicy, AgentSpec, AgentWorkspace, ContextPolicy, DelegationPolicy,
    ModelChoice, ModelSettings, OVERLAP_HINT, SandboxSettings, SkillPolicy, SubagentPolicy, ToolIsolation,
    ToolPolicy, WorkspaceOverlap, find_overlaps,
};
use crate::command::{self, menu_name};
use crate::id::AgentId;
use crate::provider::{ModelRef, ReasoningEffort};

/// The agents of the instance. Without a list there is one agent, `main`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentsConfig {
    /// The agent that answers messages that no rule assigns to another. Required if several agents are listed and none
    /// has `default = true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<AgentId>,
    pub defaults: AgentDefaults,
    /// The agents: `[[agents.list]]`, or `[agents.entries.<id>]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<AgentConfig>,
}

/// Settings of agents that do not set their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentDefaults {
    /// The model, as `provider/model` or a table. If omitted, the best model found at startup is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// The models to try, in this order, if the first one fails.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<ModelRef>,
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Sampling temperature, from 0 (most deterministic) to 2. If omitted, the provider's default applies.
    #[schemars(range(min = 0.0, max = 2.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Maximum tokens of one model answer. If omitted, the provider's default applies.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How much the model reasons before it answers, if it supports that: `low`, `medium` or `high`. If omitted, the
    /// provider's default applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Where tools run: `in_process`, or in a separate worker `process`.
    pub isolation: ToolIsolation,
    /// Sandbox of the programs that agents run.
    pub sandbox: SandboxSettings,
    /// Rules and limits for sub-agents.
    pub subagents: SubagentPolicy,
}

/// One agent: `[[agents.list]]`. Omitted settings are taken from `agents.defaults`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// A lower-case id. It is part of session keys and of the agent's chat command.
    pub id: AgentId,
    /// The display name. Defaults to the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// One sentence on what this agent is for. Other agents and the router read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether this agent answers messages that no rule assigns to another.
    #[serde(default)]
    pub default: bool,
    /// The model, as `provider/model` or a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// The models to try if the first one fails. An empty list disables fallbacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallbacks: Option<Vec<ModelRef>>,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Sampling temperature, from 0 (most deterministic) to 2.
    #[schemars(range(min = 0.0, max = 2.0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How much the model reasons before it answers, if it supports that: `low`, `medium` or `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Which tools it may use.
    #[serde(default)]
    pub tools: ToolPolicy,
    /// Which skills are listed in its prompt.
    #[serde(default)]
    pub skills: SkillPolicy,
    /// What it remembers, and which memories are added to a turn.
    #[serde(default)]
    pub context_policy: ContextPolicy,
    /// The folder for its files: absolute, or relative to the instance's workspace, which is `.` itself. If omitted,
    /// the default agent uses the instance's workspace and every other agent a folder of its own.
    #[serde(default)]
    pub workspace: AgentWorkspace,
    /// Its name and picture in chats.
    #[serde(default)]
    pub identity: AgentIdentity,
    /// Where its tools run: `in_process`, or in a separate worker `process`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<ToolIsolation>,
    /// Sandbox of the programs it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSettings>,
    /// Its spending limits.
    #[serde(default)]
    pub budget: AgentBudget,
    /// Names of the MCP servers whose tools it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<String>,
    /// Rules and limits for its sub-agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagents: Option<SubagentPolicy>,
    /// Agents to which it may delegate with `delegate_to_agent`. If omitted, it cannot delegate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<DelegationPolicy>,
    /// Among turns that wait in a lane, those of agents with a higher priority start first. A turn that has waited for
    /// half a minute gets the highest priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -100, max = 100))]
    pub priority: Option<i32>,
}

/// Merges the tables of `agents.defaults` into each agent's tables, key by key: setting one limit keeps the default of
/// the others.
pub(super) fn inherit_defaults(config: &mut Value) {
    for table in ["sandbox", "subagents"] {
        let shared = config.pointer(&format!("/agents/defaults/{table}"));
        let Some(shared) = shared.and_then(Value::as_object).cloned() else { continue };
        let agents = config.pointer_mut("/agents/list").and_then(Value::as_array_mut);
        for agent in agents.into_iter().flatten() {
            let Some(own) = agent.get_mut(table).and_then(Value::as_object_mut) else { continue };
            for (key, value) in &shared {
                own.entry(key.as_str()).or_insert_with(|| value.clone());
            }
        }
    }
}

impl AgentConfig {
    fn display_name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.id.as_str())
    }
}

impl AgentsConfig {
    /// Returns the agent that answers messages that no rule assigns to another.
    pub fn default_agent_id(&self) -> AgentId {
        let marked = self.list.iter().find(|agent| agent.default).or(self.list.first());
        self.default.clone().or_else(|| marked.map(|agent| agent.id.clone())).unwrap_or_else(AgentId::main)
    }

    /// Returns all agents with the defaults filled in. Never empty.
    pub fn agent_specs(&self) -> Vec<AgentSpec> {
        if let Some(main) = self.implicit_agent() {
            return vec![main];
        }
        self.list.iter().map(|agent| self.build_spec(agent)).collect()
    }

    /// The workspace of every agent there is, for an instance with this one.
    pub fn workspace_folders(&self, instance: &Path) -> BTreeMap<AgentId, PathBuf> {
        let default = self.default_agent_id();
        let specs = self.agent_specs().into_iter();
        specs.map(|spec| (spec.agent_id.clone(), spec.workspace_folder(instance, &default))).collect()
    }

    /// Where the file says what makes two workspaces overlap.
    pub fn overlap_path(&self, overlap: &WorkspaceOverlap) -> String {
        let is_named = |agent: &&AgentConfig| agent.workspace.dir.is_some();
        let find = |id: &AgentId| self.list.iter().position(|agent| agent.id == *id && is_named(&agent));
        let index = find(&overlap.inner).or_else(|| find(&overlap.outer));
        index.map_or_else(|| "agents".to_owned(), |index| format!("agents.list[{index}].workspace"))
    }

    /// Returns the implicit agent `main`, built from the defaults, if no agent is configured.
    pub fn implicit_agent(&self) -> Option<AgentSpec> {
        self.list
            .is_empty()
            .then(|| AgentSpec { defaults: self.default_model_settings(), ..self.base_spec() })
    }

    /// Returns the template of agents created at run time: isolation, sandbox and sub-agent limits. Their model and
    /// prompt defaults are looked up on each turn.
    pub fn base_spec(&self) -> AgentSpec {
        AgentSpec {
            isolation: self.defaults.isolation,
            sandbox: self.defaults.sandbox.clone(),
            subagents: self.defaults.subagents.clone(),
            ..AgentSpec::with_id(AgentId::main())
        }
    }

    fn build_spec(&self, agent: &AgentConfig) -> AgentSpec {
        let shared = self.default_model_settings();
        AgentSpec {
            agent_id: agent.id.clone(),
            name: agent.display_name().to_owned(),
            description: agent.description.clone().unwrap_or_default(),
            defaults: ModelSettings {
                fallbacks: own_fallbacks(agent).unwrap_or(shared.fallbacks),
                temperature: own_temperature(agent).or(shared.temperature),
                model: agent.model.as_ref().map(|choice| choice.model.clone()).or(shared.model),
                max_tokens: shared.max_tokens,
                reasoning_effort: agent.reasoning_effort.or(shared.reasoning_effort),
                system_prompt: agent.system_prompt.clone().or(shared.system_prompt),
            },
            policy: AgentPolicy { tools: agent.tools.clone(), skills: agent.skills.clone() },
            context_policy: agent.context_policy.clone(),
            workspace: agent.workspace.clone(),
            identity: agent.identity.clone(),
            isolation: agent.isolation.unwrap_or(self.defaults.isolation),
            sandbox: agent.sandbox.clone().unwrap_or_else(|| self.defaults.sandbox.clone()),
            budget: agent.budget.clone(),
            mcp: agent.mcp.clone(),
            subagents: agent.subagents.clone().unwrap_or_else(|| self.defaults.subagents.clone()),
            delegation: agent.delegation.clone(),
            priority: agent.priority.unwrap_or_default(),
        }
    }

    fn default_model_settings(&self) -> ModelSettings {
        let AgentDefaults {
            model,
            mut fallbacks,
            system_prompt,
            temperature,
            max_tokens,
            reasoning_effort,
            ..
        } = self.defaults.clone();
        let inside = model.as_ref().and_then(|choice| choice.fallbacks.clone());
        if fallbacks.is_empty() {
            fallbacks = inside.unwrap_or_default();
        }
        let temperature = temperature.or(model.as_ref().and_then(|choice| choice.temperature));
        let model = model.map(|choice| choice.model);
        ModelSettings { model, fallbacks, temperature, max_tokens, reasoning_effort, system_prompt }
    }

    /// Reports an agent id in a rule that is neither in the file nor created at run time.
    pub(super) fn check_agent_exists(&self, id: &AgentId, path: &str, report: &mut ConfigReport) {
        if let Some(hint) = self.missing_agent_hint(id, report).filter(|_| report.is_section_sound("agents"))
        {
            report.add_unknown_agent(id, path, hint);
        }
    }

    /// Returns the ids of the agents in the file, or `main` without a list.
    pub(super) fn ids(&self) -> Vec<AgentId> {
        if self.list.is_empty() {
            return vec![AgentId::main()];
        }
        self.list.iter().map(|agent| agent.id.clone()).collect()
    }

    /// Returns a suggestion if the file has no agent with this id.
    fn missing_agent_hint(&self, id: &AgentId, report: &ConfigReport) -> Option<String> {
        if report.knows_agent(id) {
            return None;
        }
        let main = AgentId::main();
        let listed = self.list.iter().map(|agent| &agent.id);
        let mut names: Vec<&str> = listed.take(key_names::MAX_COMPARED).map(AgentId::as_str).collect();
        if names.is_empty() {
            names.push(main.as_str());
        }
        Some(key_names::suggest_word(id.as_str(), &names))
    }

    pub(super) fn report_errors(
        &self,
        providers: &BTreeMap<String, ProviderConfig>,
        report: &mut ConfigReport,
    ) {
        self.check_unique(report);
        self.check_default(report);
        for (path, model) in self.models_with_paths() {
            check_model(model, &path, providers, report);
        }
        self.check_duplicate_settings(report);
        for (index, agent) in self.list.iter().enumerate() {
            if command::is_reserved_id(&agent.id) {
                let message = format!("/{} is a command, so no agent can have this id", agent.id);
                report.add_error(&format!("agents.list[{index}].id"), message, "use another id");
            }
            report_policy_errors(&format!("agents.list[{index}].tools"), &agent.tools, &agent.mcp, report);
            self.check_child_agents(agent, &format!("agents.list[{index}]"), report);
            for (field, message) in agent.identity.find_problems() {
                report.add_error(&format!("agents.list[{index}].identity.{field}"), message, "");
            }
            if let Some((message, hint)) = agent.workspace.find_problem() {
                report.add_error(&format!("agents.list[{index}].workspace"), message, hint);
            }
        }
        for overlap in find_overlaps(&self.workspace_folders(&report.instance_workspace())) {
            report.add_error(&self.overlap_path(&overlap), overlap.to_string(), OVERLAP_HINT);
        }
    }

    fn check_child_agents(&self, agent: &AgentConfig, path: &str, report: &mut ConfigReport) {
        let started = agent.subagents.iter().map(|rules| ("subagents", &rules.allow_agents));
        let given = agent.delegation.iter().map(|rules| ("delegation", &rules.allow_agents));
        for (key, list) in started.chain(given) {
            // Remote agents are checked where they are declared.
            let is_here =
                |entry: &String| key == "subagents" || crate::a2a::remote_agent_name(entry).is_none();
            let here = list.iter().enumerate().filter(|(_, entry)| is_here(entry));
            self.check_agent_list(here, &format!("{path}.{key}.allow_agents"), report);
        }
    }

    /// Checks the agent ids of a list. Each entry comes with its index.
    pub(super) fn check_agent_list<'a>(
        &self,
        entries: impl Iterator<Item = (usize, &'a String)>,
        path: &str,
        report: &mut ConfigReport,
    ) {
        for (at, entry) in entries.filter(|(_, entry)| *entry != "*") {
            let place = format!("{path}[{at}]");
            match AgentId::parse(entry) {
                Ok(id) => self.check_agent_exists(&id, &place, report),
                Err(error) => {
                    report.add_error(&place, error.to_string(), "use the id of an agent, or `*` for all");
                }
            }
        }
    }

    /// Reports settings that are given both in a model's table and next to it.
    fn check_duplicate_settings(&self, report: &mut ConfigReport) {
        let defaults = &self.defaults;
        let shared = Some(&defaults.fallbacks).filter(|list| !list.is_empty());
        report_duplicate_settings(
            "agents.defaults",
            defaults.model.as_ref(),
            defaults.temperature,
            shared,
            report,
        );
        for (index, agent) in self.list.iter().enumerate() {
            let path = format!("agents.list[{index}]");
            report_duplicate_settings(
                &path,
                agent.model.as_ref(),
                agent.temperature,
                agent.fallbacks.as_ref(),
                report,
            );
        }
    }

    /// Finds duplicates with a map: comparing all pairs takes minutes for a file of 20,000 agents.
    fn check_unique(&self, report: &mut ConfigReport) {
        let (mut ids, mut words, mut names) = (HashMap::new(), HashMap::new(), HashMap::new());
        for (index, agent) in self.list.iter().enumerate() {
            let path = |index: usize, key: &str| format!("agents.list[{index}].{key}");
            let word = menu_name(&agent.id);
            let by_id = earlier(&mut ids, agent.id.as_str(), index);
            let by_word = earlier(&mut words, word.clone(), index).filter(|_| by_id.is_none());
            let by_name = earlier(&mut names, agent.display_name(), index);
            let by_name = by_name.filter(|other| by_id.or(by_word) != Some(*other));
            let first = |other: usize, report: &ConfigReport| {
                let line = report.line_of(&path(other, "id"));
                line.map(|line| format!("the first one is on line {line}")).unwrap_or_default()
            };
            if let Some(other) = by_id {
                let message = format!("there are two agents \"{}\"", agent.id);
                report.add_error(&path(index, "id"), message, first(other, report));
            }
            if let Some(other) = by_word {
                let twin = &self.list[other].id;
                let message = format!("\"{twin}\" and \"{}\" are both /{word} in menus", agent.id);
                report.add_error(&path(index, "id"), message, "change one of the ids");
            }
            if let Some(other) = by_name {
                let message = format!("there are two agents named {:?}", agent.display_name());
                report.add_error(&path(index, "name"), message, first(other, report));
            }
        }
    }

    fn check_default(&self, report: &mut ConfigReport) {
        let unknown = self.default.as_ref().and_then(|id| Some((id, self.missing_agent_hint(id, report)?)));
        if let Some((id, hint)) = unknown.filter(|_| report.is_section_sound("agents")) {
            report.add_error("agents.default", format!("there is no agent \"{id}\""), hint);
        }
        if self.list.len() > 1 && self.default.is_none() && self.list.iter().all(|agent| !agent.default) {
            let first = &self.list[0].id;
            let hint = format!("add default = \"{first}\" to [agents], or default = true to one of them");
            report.add_error("agents.list", "there are several agents, and none is the default", hint);
        }
        let chosen = self.default_agent_id();
        let others = self.list.iter().enumerate().filter(|(_, agent)| agent.default && agent.id != chosen);
        for (index, agent) in others {
            let message = format!("\"{}\" and \"{chosen}\" cannot both be the default", agent.id);
            report.add_error(&format!("agents.list[{index}].default"), message, "keep one of them");
        }
    }

    fn models_with_paths(&self) -> Vec<(String, &ModelRef)> {
        let mut models =
            choice_with_paths("agents.defaults", self.defaults.model.as_ref(), &self.defaults.fallbacks);
        for (index, agent) in self.list.iter().enumerate() {
            let fallbacks = agent.fallbacks.as_deref().unwrap_or_default();
            models.extend(choice_with_paths(
                &format!("agents.list[{index}]"),
                agent.model.as_ref(),
                fallbacks,
            ));
        }
        models
    }
}

/// Returns the index of an earlier entry with this key.
fn earlier<K: Eq + std::hash::Hash>(seen: &mut HashMap<K, usize>, key: K, index: usize) -> Option<usize> {
    let first = *seen.entry(key).or_insert(index);
    (first != index).then_some(first)
}

fn own_fallbacks(agent: &AgentConfig) -> Option<Vec<ModelRef>> {
    let inside = agent.model.as_ref().and_then(|choice| choice.fallbacks.clone());
    agent.fallbacks.clone().or(inside)
}

fn own_temperature(agent: &AgentConfig) -> Option<f64> {
    agent.temperature.or(agent.model.as_ref().and_then(|choice| choice.temperature))
}

fn report_duplicate_settings(
    path: &str,
    model: Option<&ModelChoice>,
    temperature: Option<f64>,
    fallbacks: Option<&Vec<ModelRef>>,
    report: &mut ConfigReport,
) {
    let Some(inside) = model else { return };
    let differs = [
        (
            "temperature",
            temperature.is_some() && inside.temperature.is_some() && temperature != inside.temperature,
        ),
        (
            "fallbacks",
            fallbacks.is_some() && inside.fallbacks.is_some() && fallbacks != inside.fallbacks.as_ref(),
        ),
    ];
    for (key, _) in differs.into_iter().filter(|(_, differs)| *differs) {
        let message = format!("{key} is given twice: here, and in the model's table");
        report.add_error(&format!("{path}.{key}"), message, "keep one of them");
    }
}

fn choice_with_paths<'a>(
    path: &str,
    model: Option<&'a ModelChoice>,
    fallbacks: &'a [ModelRef],
) -> Vec<(String, &'a ModelRef)> {
    let own = model.into_iter().map(|choice| (format!("{path}.model"), &choice.model));
    let inside = model.and_then(|choice| choice.fallbacks.as_ref()).into_iter().flatten().enumerate();
    let inside = inside.map(|(at, model)| (format!("{path}.model.fallbacks[{at}]"), model));
    let others = fallbacks.iter().enumerate().map(|(at, model)| (format!("{path}.fallbacks[{at}]"), model));
    own.chain(inside).chain(others).collect()
}
