//! `tools explain`: the decision of every policy layer on a tool, using the code that decides.

use std::sync::Arc;

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::policy::{self, PolicyAgent, PolicyLayers, ToolPolicyReason};
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::TeamRole;
use polyclaw_domain::tool::{ToolScope, ToolSpec};
use polyclaw_store::teams;

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::prompt::can_ask_person;

/// The decision on one tool for an agent in a session.
#[derive(Clone, Debug)]
pub struct ToolExplanation {
    pub tool: Arc<ToolSpec>,
    pub agent: AgentId,
    pub allowed: bool,
    /// Whether each call needs a person's approval.
    pub requires_approval: bool,
    /// Decisions of all layers, in order.
    pub layers: Vec<ToolPolicyReason>,
}

impl ToolExplanation {
    /// The layer that decided: the first that denies, else the last that has a rule.
    pub fn deciding_reason(&self) -> Option<&ToolPolicyReason> {
        let spoke = || self.layers.iter().rev().find(|reason| reason.set_in.is_some());
        self.layers.iter().find(|reason| !reason.allows).or_else(spoke).or(self.layers.first())
    }
}

impl Engine {
    /// Explains all tools of the instance for an agent. Without a session, as if the owner asked in the agent's main
    /// session.
    pub async fn explain_tools(
        &self,
        agent: Option<&AgentId>,
        session: Option<&SessionKey>,
    ) -> Result<Vec<ToolExplanation>> {
        let (agent, place) = self.resolve_agent_and_session(agent, session).await?;
        self.explain_tools_in_session(&agent, place.as_ref()).await
    }

    /// Resolves the agent: the named one, else the session's, else the default.
    async fn resolve_agent_and_session(
        &self,
        agent: Option<&AgentId>,
        session: Option<&SessionKey>,
    ) -> Result<(AgentId, Option<Session>)> {
        let place = match session {
            Some(key) => Some(self.load_session(key).await?),
            None => None,
        };
        let default = self.settings().default_agent.clone();
        let agent = agent.cloned().or_else(|| place.as_ref().map(|place| place.active_agent.clone()));
        Ok((agent.unwrap_or(default), place))
    }

    /// Explains one tool by name.
    pub async fn explain_tool(
        &self,
        tool: &str,
        agent: Option<&AgentId>,
        session: Option<&SessionKey>,
    ) -> Result<ToolExplanation> {
        let (agent, place) = self.resolve_agent_and_session(agent, session).await?;
        let listed = self.explain_tools_in_session(&agent, place.as_ref()).await?;
        if let Some(found) = listed.into_iter().find(|one| one.tool.name == tool) {
            return Ok(found);
        }
        let spec = self.load_agent(&agent).await?.spec;
        let scope =
            ToolScope::for_session(&spec, SessionKey::main(&agent), &self.agent_workspace(&spec), true);
        match self.belongs_to_unnamed_server(scope, tool) {
            true => Err(Error::ServerNotNamed { tool: tool.to_owned(), agent }),
            false => Err(Error::UnknownTool(tool.to_owned())),
        }
    }

    /// Whether the tool belongs to an MCP server that the agent does not name.
    fn belongs_to_unnamed_server(&self, scope: ToolScope, tool: &str) -> bool {
        let all = ToolScope { mcp: vec!["*".to_owned()], ..scope };
        self.tools().list_tools(&all).iter().any(|one| one.name == tool)
    }

    pub(crate) async fn explain_tools_in_session(
        &self,
        agent: &AgentId,
        place: Option<&Session>,
    ) -> Result<Vec<ToolExplanation>> {
        let address: Option<&ChatAddress> = place.and_then(|session| session.address.as_ref());
        let senders: Vec<String> = address.map(ChatAddress::sender_key).into_iter().collect();
        self.with_policy_layers(agent, place, senders, |scope, layers| {
            self.tools().list_tools(scope).into_iter().map(|tool| build_explanation(tool, layers)).collect()
        })
        .await
    }

    /// Explains the tools for a turn that works for these senders.
    pub(crate) async fn explain_for(
        &self,
        agent: &AgentId,
        place: &Session,
        senders: Vec<String>,
    ) -> Result<Vec<ToolExplanation>> {
        self.with_policy_layers(agent, Some(place), senders, |scope, layers| {
            self.tools().list_tools(scope).into_iter().map(|tool| build_explanation(tool, layers)).collect()
        })
        .await
    }

    /// Whether the session is a team member whose plan is not approved yet.
    async fn is_awaiting_plan_approval(&self, place: Option<&Session>) -> Result<bool> {
        let Some(session) = place.filter(|session| session.team_role == Some(TeamRole::Member)) else {
            return Ok(false);
        };
        let key = session.key.clone();
        let member = self.db().read(move |tx| teams::find_member_by_session(tx, &key)).await?;
        Ok(member.is_some_and(|member| member.plan.is_some()))
    }

    /// Calls `look` with the tool scope and the policy layers of an agent in a session.
    pub(crate) async fn with_policy_layers<T>(
        &self,
        agent: &AgentId,
        place: Option<&Session>,
        senders: Vec<String>,
        look: impl FnOnce(&ToolScope, &PolicyLayers<'_>) -> T,
    ) -> Result<T> {
        let (stored, settings) = (self.load_agent(agent).await?, self.settings());
        let address: Option<&ChatAddress> = place.and_then(|session| session.address.as_ref());
        let can_ask = place.is_none() || address.is_some_and(|address| can_ask_person(self, address));
        let session = place.map_or_else(|| SessionKey::main(agent), |session| session.key.clone());
        let scope =
            ToolScope::for_session(&stored.spec, session, &self.agent_workspace(&stored.spec), can_ask);
        let scope = place.map_or(scope.clone(), |session| scope.for_child_session(&stored.spec, session));
        let awaits_plan = self.is_awaiting_plan_approval(place).await?;
        let layers = PolicyLayers {
            rules: &settings.tools,
            agent: PolicyAgent {
                id: agent,
                policy: &stored.spec.policy.tools,
                is_default: *agent == settings.default_agent,
                in_config: self.is_written_by_config(&stored),
            },
            inherited: place.and_then(|session| session.inherited.as_ref()),
            spawn_depth: place.map_or(0, |session| session.spawn_depth),
            has_room: scope.spawns,
            senders: &senders,
            can_ask,
            awaits_plan,
        };
        Ok(look(&scope, &layers))
    }
}

fn build_explanation(tool: Arc<ToolSpec>, layers: &PolicyLayers<'_>) -> ToolExplanation {
    let reasons: Vec<ToolPolicyReason> = policy::policy_steps(&tool, layers)
        .map(|step| ToolPolicyReason::for_step(&tool.name, &step, layers))
        .collect();
    ToolExplanation {
        agent: layers.agent.id.clone(),
        allowed: reasons.iter().all(|reason| reason.allows),
        requires_approval: policy::needs_approval(&tool, layers),
        layers: reasons,
        tool,
    }
}
