//! Agents: their specs and the tools they may use.

use polyclaw_domain::agent::{AgentIdentity, AgentSpec};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::route::BindingMatch;
use polyclaw_domain::scope::DmScope;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::schema::schema_of;
use crate::tolerant::ignore_unknown_fields;
use crate::tools::ToolPolicyView;

/// An agent spec. Its schema is that of the domain type.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct AgentSpecBody(pub AgentSpec);

/// Accepts a spec of a newer server.
impl<'de> Deserialize<'de> for AgentSpecBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        ignore_unknown_fields(from).map(Self)
    }
}

impl PartialSchema for AgentSpecBody {
    fn schema() -> RefOr<Schema> {
        schema_of::<AgentSpec>()
    }
}

impl ToSchema for AgentSpecBody {
    fn name() -> std::borrow::Cow<'static, str> {
        "AgentSpec".into()
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct AgentView {
    #[serde(flatten)]
    pub spec: AgentSpecBody,
    /// Where the agent is defined. `config`: the config file, which overwrites other changes at every start. `api`:
    /// the database. `default`: the built-in agent, in no file; changes are stored on top of the config's defaults.
    pub source: String,
    /// Whether this agent answers when no agent is named.
    pub default: bool,
    /// How the agent presents itself.
    pub appearance: AgentAppearance,
    /// The agent's conversation with the owner: `agent:<id>:<session.main_key>`.
    #[schema(value_type = String)]
    pub main_session_key: SessionKey,
    /// Bindings of the config that route messages to this agent.
    pub bindings: Vec<AgentBindingView>,
    /// When the agent was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When the agent was last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Millis,
}

/// A binding of the config to this agent.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct AgentBindingView {
    /// The index of the binding in the config, from 0.
    pub binding: usize,
    /// The conditions a message must meet, as in the config.
    #[serde(rename = "match", deserialize_with = "ignore_unknown_fields")]
    #[schema(value_type = Object)]
    pub wanted: BindingMatch,
    /// How direct messages are split into sessions: `main`, `per-peer`, `per-channel-peer` or
    /// `per-account-channel-peer`. Null means `session.dm_scope` applies.
    #[schema(value_type = Option<String>)]
    pub dm_scope: Option<DmScope>,
}

/// How an agent presents itself to people: from its spec, its `IDENTITY.md` or its name.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct AgentAppearance {
    /// The display name.
    pub name: Option<String>,
    /// The emoji shown with the name.
    pub emoji: Option<String>,
    /// A URL, or a file in the agent's workspace.
    pub avatar: Option<String>,
}

impl From<AgentIdentity> for AgentAppearance {
    fn from(AgentIdentity { name, emoji, avatar }: AgentIdentity) -> Self {
        Self { name, emoji, avatar }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct AgentList {
    /// All agents.
    pub agents: Vec<AgentView>,
    /// The agents that answer by default.
    pub bound: DefaultAgents,
}

/// The agents that answer callers who name neither a session nor an agent, by channel. Bindings decide, else the
/// default agent.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct DefaultAgents {
    /// The agent for the HTTP API.
    #[schema(value_type = String)]
    pub api: AgentId,
    /// The agent for the command line.
    #[schema(value_type = String)]
    pub cli: AgentId,
    /// The agent for the web chat.
    #[schema(value_type = String)]
    pub web: AgentId,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AgentToolsQuery {
    /// Evaluate the policy for this session instead of the agent's main one.
    #[param(value_type = Option<String>)]
    pub session: Option<SessionKey>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct AgentToolList {
    /// Every tool, with the policy decision for the agent.
    pub tools: Vec<ToolPolicyView>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_schema_comes_from_domain_type() {
        let schema = serde_json::to_value(AgentSpecBody::schema()).unwrap();
        assert_eq!(schema["properties"]["agent_id"]["pattern"], "^[a-z][a-z0-9_-]{0,63}$", "{schema:#}");
        assert!(schema["properties"]["policy"]["properties"]["tools"]["properties"]["deny"].is_object());
    }
}
