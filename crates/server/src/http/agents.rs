//! Agents: their specs and the tools they may use.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_api::agents::{
    AgentBindingView, AgentList, AgentSpecBody, AgentToolList, AgentToolsQuery, AgentView, DefaultAgents,
};
use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::id::AgentId;
use polyclaw_store::agents::{AgentSource, StoredAgent};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId, QueryParams, apply_merge_patch, from_value};
use crate::http::tools::tool_policy_view;
use crate::state::AppState;

fn agent_view(app: &AppState, stored: StoredAgent) -> AgentView {
    let is_default = stored.source == AgentSource::Config && !app.engine.is_written_by_config(&stored);
    let source = if is_default { "default" } else { stored.source.as_str() }.to_owned();
    AgentView {
        default: stored.spec.agent_id == app.engine.settings().default_agent,
        appearance: app.engine.agent_identity(&stored.spec).into(),
        main_session_key: app.engine.settings().inbound.main_session(&stored.spec.agent_id),
        bindings: agent_bindings(app, &stored.spec.agent_id),
        spec: AgentSpecBody(stored.spec),
        source,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
    }
}

fn agent_bindings(app: &AppState, agent: &AgentId) -> Vec<AgentBindingView> {
    let settings = app.engine.settings();
    let all = settings.inbound.bindings().iter().enumerate();
    let own = all.filter(|(_, binding)| binding.agent_id == *agent);
    own.map(|(at, one)| AgentBindingView {
        binding: at,
        wanted: one.match_rule.clone(),
        dm_scope: one.dm_scope,
    })
    .collect()
}

fn default_agents(app: &AppState) -> DefaultAgents {
    let bound = |channel: &str| app.engine.agent_by_bindings(channel, "default", "");
    DefaultAgents { api: bound("api"), cli: bound("cli"), web: bound("web") }
}

pub(crate) fn agent_id(text: &str) -> Result<AgentId> {
    AgentId::parse(text).map_err(|error| Error::invalid_field("agent_id", error))
}

/// Lists all agents.
#[utoipa::path(get, path = "/agents", tag = "agents", responses((status = 200, body = AgentList)))]
pub async fn list_agents(State(app): State<AppState>) -> Result<Json<AgentList>> {
    let stored = app.engine.list_agents().await?;
    let agents = stored.into_iter().map(|stored| agent_view(&app, stored)).collect();
    Ok(Json(AgentList { agents, bound: default_agents(&app) }))
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
    Ok((StatusCode::CREATED, Json(agent_view(&app, stored))))
}

/// Returns an agent.
#[utoipa::path(get, path = "/agents/{id}", tag = "agents", params(("id" = String, Path)), responses((status = 200, body = AgentView)))]
pub async fn show_agent(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<AgentView>> {
    let stored = app.engine.load_agent(&agent_id(&id)?).await?;
    Ok(Json(agent_view(&app, stored)))
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
    Ok(Json(agent_view(&app, stored)))
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
    Ok(Json(AgentToolList { tools: listed.into_iter().map(tool_policy_view).collect() }))
}
