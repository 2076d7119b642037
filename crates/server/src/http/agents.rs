//! Agents: their specs and the tools they may use.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_domain::agent::{AgentIdentity, AgentSpec};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::route::BindingMatch;
use polyclaw_domain::scope::DmScope;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::agents::{AgentSource, StoredAgent};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId, QueryParams, apply_merge_patch, from_value};
use crate::http::document;
use crate::http::tools::ToolPolicyView;
use crate::state::AppState;

/// An agent spec. Its schema is that of the domain type.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
pub struct AgentSpecBody(AgentSpec);

impl PartialSchema for AgentSpecBody {
    fn schema() -> RefOr<Schema> {
        document::schema_of::<AgentSpec>()
    }
}

impl ToSchema for AgentSpecBody {
    fn name() -> std::borrow::Cow<'static, str> {
        "AgentSpec".into()
    }
}

#[derive(Serialize, ToSchema)]
pub struct AgentView {
    #[serde(flatten)]
    spec: AgentSpecBody,
    /// Where the agent is defined. `config`: the config file, which overwrites other changes at every start. `api`:
    /// the database. `default`: the built-in agent, in no file; changes are stored on top of the config's defaults.
    source: &'static str,
    /// Whether this agent answers when no agent is named.
    default: bool,
    /// How the agent presents itself.
    appearance: AgentAppearance,
    /// The agent's conversation with the owner: `agent:<id>:<session.main_key>`.
    #[schema(value_type = String)]
    main_session_key: SessionKey,
    /// Bindings of the config that route messages to this agent.
    bindings: Vec<AgentBindingView>,
    /// When the agent was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When the agent was last changed.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

impl AgentView {
    fn from_stored(app: &AppState, stored: StoredAgent) -> Self {
        let is_default = stored.source == AgentSource::Config && !app.engine.is_written_by_config(&stored);
        let source = if is_default { "default" } else { stored.source.as_str() };
        Self {
            default: stored.spec.agent_id == app.engine.settings().default_agent,
            appearance: app.engine.agent_identity(&stored.spec).into(),
            main_session_key: app.engine.settings().inbound.main_session(&stored.spec.agent_id),
            bindings: AgentBindingView::bindings_of_agent(app, &stored.spec.agent_id),
            spec: AgentSpecBody(stored.spec),
            source,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}

/// A binding of the config to this agent.
#[derive(Serialize, ToSchema)]
pub struct AgentBindingView {
    /// The index of the binding in the config, from 0.
    binding: usize,
    /// The conditions a message must meet, as in the config.
    #[serde(rename = "match")]
    #[schema(value_type = Object)]
    wanted: BindingMatch,
    /// How direct messages are split into sessions: `main`, `per-peer`, `per-channel-peer` or
    /// `per-account-channel-peer`. Null means `session.dm_scope` applies.
    #[schema(value_type = Option<String>)]
    dm_scope: Option<DmScope>,
}

impl AgentBindingView {
    fn bindings_of_agent(app: &AppState, agent: &AgentId) -> Vec<Self> {
        let settings = app.engine.settings();
        let all = settings.inbound.bindings().iter().enumerate();
        let own = all.filter(|(_, binding)| binding.agent_id == *agent);
        own.map(|(at, one)| Self { binding: at, wanted: one.match_rule.clone(), dm_scope: one.dm_scope })
            .collect()
    }
}

/// How an agent presents itself to people: from its spec, its `IDENTITY.md` or its name.
#[derive(Serialize, ToSchema)]
pub struct AgentAppearance {
    /// The display name.
    name: Option<String>,
    /// The emoji shown with the name.
    emoji: Option<String>,
    /// A URL, or a file in the agent's workspace.
    avatar: Option<String>,
}

impl From<AgentIdentity> for AgentAppearance {
    fn from(AgentIdentity { name, emoji, avatar }: AgentIdentity) -> Self {
        Self { name, emoji, avatar }
    }
}

#[derive(Serialize, ToSchema)]
pub struct AgentList {
    /// All agents.
    agents: Vec<AgentView>,
    /// The agents that answer by default.
    bound: DefaultAgents,
}

/// The agents that answer callers who name neither a session nor an agent, by channel. Bindings decide, else the
/// default agent.
#[derive(Serialize, ToSchema)]
pub struct DefaultAgents {
    /// The agent for the HTTP API.
    #[schema(value_type = String)]
    api: AgentId,
    /// The agent for the command line.
    #[schema(value_type = String)]
    cli: AgentId,
    /// The agent for the web chat.
    #[schema(value_type = String)]
    web: AgentId,
}

impl DefaultAgents {
    fn from_bindings(app: &AppState) -> Self {
        let bound = |channel: &str| app.engine.agent_by_bindings(channel, "default", "");
        Self { api: bound("api"), cli: bound("cli"), web: bound("web") }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AgentToolsQuery {
    /// Evaluate the policy for this session instead of the agent's main one.
    #[param(value_type = Option<String>)]
    pub session: Option<SessionKey>,
}

#[derive(Serialize, ToSchema)]
pub struct AgentToolList {
    /// Every tool, with the policy decision for the agent.
    tools: Vec<ToolPolicyView>,
}

pub(crate) fn agent_id(text: &str) -> Result<AgentId> {
    AgentId::parse(text).map_err(|error| Error::invalid_field("agent_id", error))
}

/// Lists all agents.
#[utoipa::path(get, path = "/agents", tag = "agents", responses((status = 200, body = AgentList)))]
pub async fn list_agents(State(app): State<AppState>) -> Result<Json<AgentList>> {
    let stored = app.engine.list_agents().await?;
    let agents = stored.into_iter().map(|stored| AgentView::from_stored(&app, stored)).collect();
    Ok(Json(AgentList { agents, bound: DefaultAgents::from_bindings(&app) }))
}

/// Creates an agent.
/// Omitted fields take their values from `agents.defaults` of the config.
#[utoipa::path(post, path = "/agents", tag = "agents", request_body = AgentSpecBody, responses((status = 201, body = AgentView)))]
pub async fn create_agent(
    State(app): State<AppState>,
    JsonBody(given): JsonBody<Value>,
) -> Result<(StatusCode, Json<AgentView>)> {
    let own: AgentSpec = from_value(given.clone())?;
    let spec = apply_merge_patch(&app.engine.default_agent_spec(own.agent_id), "agent_id", given)?;
    let stored = app.engine.create_agent(spec).await?;
    Ok((StatusCode::CREATED, Json(AgentView::from_stored(&app, stored))))
}

/// Returns an agent.
#[utoipa::path(get, path = "/agents/{id}", tag = "agents", params(("id" = String, Path)), responses((status = 200, body = AgentView)))]
pub async fn show_agent(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<AgentView>> {
    let stored = app.engine.load_agent(&agent_id(&id)?).await?;
    Ok(Json(AgentView::from_stored(&app, stored)))
}

/// Changes an agent with a JSON merge patch.
/// Named fields are set, null removes one. The change takes effect at the next turn.
#[utoipa::path(patch, path = "/agents/{id}", tag = "agents", params(("id" = String, Path)), request_body = Object, responses((status = 200, body = AgentView)))]
pub async fn update_agent(
    State(app): State<AppState>,
    PathId(id): PathId,
    JsonBody(patch): JsonBody<Value>,
) -> Result<Json<AgentView>> {
    let id = agent_id(&id)?;
    let stored = app.engine.load_agent(&id).await?;
    let spec = apply_merge_patch(&stored.spec, "agent_id", patch)?;
    let stored = app.engine.update_agent(spec).await?;
    Ok(Json(AgentView::from_stored(&app, stored)))
}

/// Deletes an agent.
/// Its sessions stay readable.
#[utoipa::path(delete, path = "/agents/{id}", tag = "agents", params(("id" = String, Path)), responses((status = 204)))]
pub async fn delete_agent(State(app): State<AppState>, PathId(id): PathId) -> Result<StatusCode> {
    app.engine.delete_agent(&agent_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists every tool and whether the agent may use it.
#[utoipa::path(get, path = "/agents/{id}/tools", tag = "agents", params(("id" = String, Path), AgentToolsQuery), responses((status = 200, body = AgentToolList)))]
pub async fn list_agent_tools(
    State(app): State<AppState>,
    PathId(id): PathId,
    QueryParams(place): QueryParams<AgentToolsQuery>,
) -> Result<Json<AgentToolList>> {
    let listed = app.engine.explain_tools(Some(&agent_id(&id)?), place.session.as_ref()).await?;
    Ok(Json(AgentToolList { tools: listed.into_iter().map(ToolPolicyView::from).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_an_agent_is_the_domains() {
        let schema = serde_json::to_value(AgentSpecBody::schema()).unwrap();
        assert_eq!(schema["properties"]["agent_id"]["pattern"], "^[a-z][a-z0-9_-]{0,63}$", "{schema:#}");
        assert!(schema["properties"]["policy"]["properties"]["tools"]["properties"]["deny"].is_object());
    }
}
