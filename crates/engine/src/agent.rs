//! Creates, changes and removes agents at run time. Agents defined in the config file can be changed only there.

mod explain;
mod export;
mod find;
mod overlay;
mod removal;
mod workspaces;

use polyclaw_domain::agent::{self, AgentSpec, SpecReviewContext};
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::patch;
use polyclaw_domain::provider::Prompt;
use polyclaw_domain::safety::{self, InstanceAgents, SafetyWarning};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::ToolScope;
use polyclaw_store::agents::{self, AgentSource, StoredAgent};
use polyclaw_store::jobs;
use serde_json::Value;

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::prompt;

pub use explain::ToolExplanation;
pub(crate) use find::{find_agent_exact, find_agent_fuzzy};
pub use overlay::{AgentFileOverlay, MAX_OVERLAY_BYTES as LONGEST_OVERLAY};
pub(crate) use workspaces::WorkspaceCache;

impl Engine {
    pub async fn list_agents(&self) -> Result<Vec<StoredAgent>> {
        Ok(self.db().read(agents::list).await?)
    }

    /// Unsafe settings of the instance and of all agents.
    pub async fn safety_warnings(&self) -> Result<Vec<SafetyWarning>> {
        let agents: Vec<AgentSpec> =
            self.list_agents().await?.into_iter().map(|stored| stored.spec).collect();
        let settings = self.settings();
        let household = InstanceAgents {
            agents: &agents,
            default_agent: &settings.default_agent,
            rules: &settings.tools,
        };
        Ok(safety::safety_warnings(&settings.exposure, household))
    }

    pub async fn load_agent(&self, id: &AgentId) -> Result<StoredAgent> {
        let wanted = id.clone();
        let found = self.db().read(move |tx| agents::get(tx, &wanted)).await?;
        found.ok_or_else(|| Error::UnknownAgent(id.to_string()))
    }

    /// Checks a spec against this instance's tools, providers and MCP servers. Reports all problems together.
    pub fn validate_agent_spec(&self, spec: &AgentSpec) -> Result<()> {
        let settings = self.settings();
        let scope =
            ToolScope::for_session(spec, SessionKey::main(&spec.agent_id), &self.agent_workspace(spec), true);
        let known = SpecReviewContext {
            tools: self.tools().list_tools(&scope).iter().map(|tool| tool.name.clone()).collect(),
            providers: settings.providers.clone(),
            mcp_servers: settings.mcp_servers.clone(),
        };
        let problems = agent::review_spec(spec, &known);
        let sentence = |problem: &agent::SpecProblem| match problem.hint.is_empty() {
            true => format!("{}: {}", problem.path, problem.message),
            false => format!("{}: {}; {}", problem.path, problem.message, problem.hint),
        };
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::InvalidAgent(problems.iter().map(sentence).collect::<Vec<_>>().join(". "))),
        }
    }

    /// Checks that the agents it may spawn or delegate to exist. Remote agents are resolved when they are called. Names
    /// that `before` already had are accepted, because those agents may have been deleted since.
    pub(crate) async fn check_allowed_agents(
        &self,
        spec: &AgentSpec,
        before: Option<&AgentSpec>,
    ) -> Result<()> {
        let listed = self.list_agents().await?;
        let mut ids: Vec<&str> = listed.iter().map(|stored| stored.spec.agent_id.as_str()).collect();
        if !ids.contains(&spec.agent_id.as_str()) {
            ids.push(spec.agent_id.as_str());
        }
        let named = |spec: &AgentSpec| -> Vec<(&'static str, String)> {
            let started = spec.subagents.allow_agents.iter().map(|entry| ("subagents", entry.clone()));
            let given = spec.delegation.iter().flat_map(|rules| &rules.allow_agents);
            started.chain(given.map(|entry| ("delegation", entry.clone()))).collect()
        };
        let known = before.map(named).unwrap_or_default();
        let is_unknown = |one: &(&str, String)| {
            let (_, entry) = one;
            !known.contains(one)
                && *entry != "*"
                && polyclaw_domain::a2a::remote_agent_name(entry).is_none()
                && !ids.contains(&entry.as_str())
        };
        match named(spec).into_iter().find(is_unknown) {
            None => Ok(()),
            Some((field, entry)) => Err(Error::InvalidAgent(format!(
                "{field}.allow_agents: there is no agent {entry:?}; {}",
                polyclaw_domain::config::suggest_word(&entry, &ids)
            ))),
        }
    }

    /// Default spec of a new agent with this id.
    pub fn default_agent_spec(&self, id: AgentId) -> AgentSpec {
        AgentSpec { name: id.to_string(), agent_id: id, ..self.settings().agent_template.clone() }
    }

    pub async fn create_agent(&self, mut spec: AgentSpec) -> Result<StoredAgent> {
        self.redactor().redact_spec(&mut spec);
        self.validate_agent_spec(&spec)?;
        self.check_allowed_agents(&spec, None).await?;
        self.check_new_workspace(&spec, None).await?;
        let (stored, now, fresh) = (spec.clone(), self.now(), self.next_id());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            if agents::get(tx, &stored.agent_id)?.is_some() {
                return Ok(Some(Error::AgentExists(stored.agent_id.to_string())));
            }
            let taken = name_taken(tx, &stored)?;
            if taken.is_none() {
                agents::upsert(tx, &stored, AgentSource::Api, now)?;
                removal::renew_sessions_of_agent(tx, &stored, (&fresh, now))?;
            }
            Ok(taken)
        };
        match self.db().write(write).await? {
            None => self.export_and_load_agent(&spec.agent_id).await,
            Some(refused) => Err(refused),
        }
    }

    /// Replaces an agent's spec, from the next turn on.
    pub async fn update_agent(&self, mut spec: AgentSpec) -> Result<StoredAgent> {
        self.redactor().redact_spec(&mut spec);
        let before = self.load_editable_agent(&spec.agent_id).await?;
        let source = before.source;
        self.validate_agent_spec(&spec)?;
        self.check_allowed_agents(&spec, Some(&before.spec)).await?;
        self.check_new_workspace(&spec, Some(&before.spec)).await?;
        let overlay = self.diff_from_implicit(&spec, source)?;
        let (stored, now) = (spec.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            let taken = name_taken(tx, &stored)?;
            if taken.is_none() {
                if let Some(patch) = &overlay {
                    agents::set_overlay(tx, &stored.agent_id, patch, now)?;
                }
                agents::upsert(tx, &stored, source, now)?;
            }
            Ok(taken)
        };
        match self.db().write(write).await? {
            None => self.export_and_load_agent(&spec.agent_id).await,
            Some(refused) => Err(refused),
        }
    }

    /// Deletes an agent. Its sessions stay readable.
    pub async fn delete_agent(&self, id: &AgentId) -> Result<()> {
        let source = self.load_editable_agent(id).await?.source;
        if *id == self.settings().default_agent || source == AgentSource::Config {
            return Err(Error::DefaultAgent(id.to_string()));
        }
        // A config that names an unknown agent would not start.
        let settings = self.settings();
        let rules = settings.agents_in_rules.iter().filter(|(named, _)| named == id);
        let paths: Vec<&str> = rules.map(|(_, path)| path.as_str()).collect();
        if !paths.is_empty() {
            return Err(Error::AgentInRules(id.to_string(), paths.join(", ")));
        }
        let (wanted, turn, now) = (id.clone(), TurnId::new(self.next_id()), self.now());
        let settings = self.settings();
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            removal::restore_own_agent(tx, &wanted, (&turn, now), &settings)?;
            agents::delete(tx, &wanted)
        };
        self.db().write(write).await?;
        self.outbox_wake.notify_one();
        // Its running turns are stopped.
        let running = self.db().read(jobs::list_running).await?;
        for turn in running.into_iter().filter(|turn| turn.agent == *id) {
            self.stop_session(&turn.session).await?;
        }
        export::remove_agent_file(&self.settings().workspace, id).await;
        self.invalidate_agent_caches();
        Ok(())
    }

    /// Loads an agent that is not defined in the config file.
    pub(crate) async fn load_editable_agent(&self, id: &AgentId) -> Result<StoredAgent> {
        let stored = self.load_agent(id).await?;
        match self.is_written_by_config(&stored) {
            true => Err(Error::AgentInConfig(id.to_string())),
            false => Ok(stored),
        }
    }

    /// Whether the config file defines this agent, so that it can be changed only there.
    pub fn is_written_by_config(&self, stored: &StoredAgent) -> bool {
        stored.source == AgentSource::Config && self.implicit_agent(&stored.spec.agent_id).is_none()
    }

    fn implicit_agent(&self, id: &AgentId) -> Option<AgentSpec> {
        self.settings().implicit_agent.clone().filter(|spec| spec.agent_id == *id)
    }

    /// Changes of an agent that the config implies without defining it. Only the difference is stored, so that the rest
    /// follows the config.
    fn diff_from_implicit(&self, spec: &AgentSpec, source: AgentSource) -> Result<Option<Value>> {
        let base = self.implicit_agent(&spec.agent_id).filter(|_| source == AgentSource::Config);
        base.map(|base| patch::create_patch(&base, spec).map_err(Error::InvalidAgent)).transpose()
    }

    async fn export_and_load_agent(&self, id: &AgentId) -> Result<StoredAgent> {
        self.invalidate_agent_caches();
        let stored = self.load_agent(id).await?;
        if stored.source == AgentSource::Api {
            export::write_agent_file(&self.settings().workspace, &stored.spec).await;
        }
        Ok(stored)
    }

    /// Writes the files of agents stored in the database if they are missing or differ.
    pub async fn export_agents(&self) -> Result<()> {
        let workspace = self.settings().workspace.clone();
        for stored in self.list_agents().await?.iter().filter(|stored| stored.source == AgentSource::Api) {
            export::write_agent_file(&workspace, &stored.spec).await;
        }
        Ok(())
    }

    /// Creates the workspace folders of agents that do not configure one. Agents of earlier versions kept their files
    /// in the shared workspace; those stay there, and `workspace = "."` shares that folder again.
    pub async fn create_agent_folders(&self) -> Result<()> {
        self.warn_about_unsafe_workspaces().await?;
        let settings = self.settings();
        for stored in self.list_agents().await? {
            let spec = stored.spec;
            let folder = self.agent_workspace(&spec);
            if spec.workspace.dir.is_some() || spec.agent_id == settings.default_agent || folder.exists() {
                continue;
            }
            match std::fs::create_dir_all(&folder) {
                Ok(()) => tracing::info!(
                    agent.id = %spec.agent_id, folder = %folder.display(), shared = %settings.workspace.display(),
                    "created the agent's own workspace; its files in the shared one stay there, and \
                     workspace = \".\" makes it use that one"
                ),
                Err(error) => tracing::warn!(agent.id = %spec.agent_id, folder = %folder.display(), %error,
                    "could not create the agent's workspace folder"),
            }
        }
        Ok(())
    }

    pub async fn opening_prompt(&self, id: &AgentId) -> Result<Prompt> {
        let spec = self.load_agent(id).await?.spec;
        self.resolve_workspace(&spec).await?;
        let tools =
            self.explain_tools(Some(id), None).await?.into_iter().filter(|explained| explained.allowed);
        let tools: Vec<_> = tools.map(|explained| explained.tool).collect();
        let files = self.agent_briefing(&spec).render_for_tools(tools.iter().map(|tool| tool.name.as_str()));
        Ok(prompt::build_opening_prompt(&spec, &files, tools, &self.nonce()))
    }
}

/// Whether the name is taken: another agent has it, or one agent's name is the other's id.
fn name_taken(tx: &mut polyclaw_store::Tx<'_>, spec: &AgentSpec) -> polyclaw_store::Result<Option<Error>> {
    Ok(same_name(&agents::list(tx)?, spec))
}

pub(crate) fn same_name(listed: &[StoredAgent], spec: &AgentSpec) -> Option<Error> {
    let folded = |spec: &AgentSpec| (spec.agent_id.as_str().to_owned(), spec.name.trim().to_lowercase());
    let (id, name) = folded(spec);
    let is_same = |other: &&StoredAgent| {
        let (other_id, other_name) = folded(&other.spec);
        other_id != id && (other_name == name || other_id == name || other_name == id)
    };
    let found = listed.iter().find(is_same)?;
    let name = if found.spec.name.trim().to_lowercase() == id { &found.spec.name } else { &spec.name };
    Some(Error::AgentNameTaken { name: name.clone(), id: found.spec.agent_id.clone() })
}
