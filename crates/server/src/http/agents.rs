//! Agents: what they are, what they may use.

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
use crate::extract::{Body, Id, Query, fit, patched};
use crate::http::document;
use crate::http::tools::Ruled;
use crate::state::AppState;

/// An AgentSpec; its schema is that of the domain's own type.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
pub struct Spec(AgentSpec);

impl PartialSchema for Spec {
    fn schema() -> RefOr<Schema> {
        document::schema_of::<AgentSpec>()
    }
}

impl ToSchema for Spec {
    fn name() -> std::borrow::Cow<'static, str> {
        "AgentSpec".into()
    }
}

#[derive(Serialize, ToSchema)]
pub struct AgentView {
    #[serde(flatten)]
    spec: Spec,
    /// `config`: the file writes it and wins at every start. `api`: the database has it. `default`: no file writes it;
    /// changes lie over the defaults of the config.
    source: &'static str,
    /// Answers where nobody names an agent.
    default: bool,
    shown: Shown,
    /// Its conversation with the owner: `agent:<id>:<session.main_key>`.
    #[schema(value_type = String)]
    main_session_key: SessionKey,
    /// What it answers before any other agent: bindings of the config.
    bindings: Vec<OwnBinding>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

impl AgentView {
    fn of(app: &AppState, stored: StoredAgent) -> Self {
        let is_default = stored.source == AgentSource::Config && !app.engine.is_written_by_config(&stored);
        let source = if is_default { "default" } else { stored.source.as_str() };
        Self {
            default: stored.spec.agent_id == app.engine.settings().default_agent,
            shown: app.engine.agent_identity(&stored.spec).into(),
            main_session_key: app.engine.settings().inbound.main_session(&stored.spec.agent_id),
            bindings: OwnBinding::all_of(app, &stored.spec.agent_id),
            spec: Spec(stored.spec),
            source,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}

/// A binding of the config to this agent.
#[derive(Serialize, ToSchema)]
pub struct OwnBinding {
    /// Its place in the config, from 0.
    binding: usize,
    /// What a message must be, as the config has it.
    #[serde(rename = "match")]
    #[schema(value_type = Object)]
    wanted: BindingMatch,
    /// `main`, `per-peer`, `per-channel-peer` or `per-account-channel-peer`; null is `session.dm_scope`.
    #[schema(value_type = Option<String>)]
    dm_scope: Option<DmScope>,
}

impl OwnBinding {
    fn all_of(app: &AppState, agent: &AgentId) -> Vec<Self> {
        let settings = app.engine.settings();
        let all = settings.inbound.bindings().iter().enumerate();
        let own = all.filter(|(_, binding)| binding.agent_id == *agent);
        own.map(|(at, one)| Self { binding: at, wanted: one.match_rule.clone(), dm_scope: one.dm_scope })
            .collect()
    }
}

/// How it shows itself to people: from its spec, its `IDENTITY.md`, its name.
#[derive(Serialize, ToSchema)]
pub struct Shown {
    name: Option<String>,
    emoji: Option<String>,
    /// A URL, or a file in its workspace.
    avatar: Option<String>,
}

impl From<AgentIdentity> for Shown {
    fn from(AgentIdentity { name, emoji, avatar }: AgentIdentity) -> Self {
        Self { name, emoji, avatar }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Agents {
    agents: Vec<AgentView>,
    bound: Bound,
}

/// Who answers whoever names neither a session nor an agent, by where they sit: as bindings say, or the default agent.
#[derive(Serialize, ToSchema)]
pub struct Bound {
    #[schema(value_type = String)]
    api: AgentId,
    #[schema(value_type = String)]
    cli: AgentId,
    #[schema(value_type = String)]
    web: AgentId,
}

impl Bound {
    fn of(app: &AppState) -> Self {
        let bound = |channel: &str| app.engine.agent_by_bindings(channel, "default", "");
        Self { api: bound("api"), cli: bound("cli"), web: bound("web") }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InSession {
    #[param(value_type = Option<String>)]
    pub session: Option<SessionKey>,
}

#[derive(Serialize, ToSchema)]
pub struct AgentTools {
    tools: Vec<Ruled>,
}

pub(crate) fn agent_id(text: &str) -> Result<AgentId> {
    AgentId::parse(text).map_err(|error| Error::invalid("agent_id", error))
}

#[utoipa::path(get, path = "/agents", tag = "agents", responses((status = 200, body = Agents)))]
pub async fn list(State(app): State<AppState>) -> Result<Json<Agents>> {
    let stored = app.engine.list_agents().await?;
    let agents = stored.into_iter().map(|stored| AgentView::of(&app, stored)).collect();
    Ok(Json(Agents { agents, bound: Bound::of(&app) }))
}

/// What is left out is as `agents.defaults` of the config has it.
#[utoipa::path(post, path = "/agents", tag = "agents", request_body = Spec, responses((status = 201, body = AgentView)))]
pub async fn create(
    State(app): State<AppState>,
    Body(given): Body<Value>,
) -> Result<(StatusCode, Json<AgentView>)> {
    let own: AgentSpec = fit(given.clone())?;
    let spec = patched(&app.engine.default_agent_spec(own.agent_id), "agent_id", given)?;
    let stored = app.engine.create_agent(spec).await?;
    Ok((StatusCode::CREATED, Json(AgentView::of(&app, stored))))
}

#[utoipa::path(get, path = "/agents/{id}", tag = "agents", params(("id" = String, Path)), responses((status = 200, body = AgentView)))]
pub async fn show(State(app): State<AppState>, Id(id): Id) -> Result<Json<AgentView>> {
    let stored = app.engine.load_agent(&agent_id(&id)?).await?;
    Ok(Json(AgentView::of(&app, stored)))
}

/// A JSON merge patch: named fields are set, null removes one. Takes effect at the next turn.
#[utoipa::path(patch, path = "/agents/{id}", tag = "agents", params(("id" = String, Path)), request_body = Object, responses((status = 200, body = AgentView)))]
pub async fn change(
    State(app): State<AppState>,
    Id(id): Id,
    Body(patch): Body<Value>,
) -> Result<Json<AgentView>> {
    let id = agent_id(&id)?;
    let stored = app.engine.load_agent(&id).await?;
    let spec = patched(&stored.spec, "agent_id", patch)?;
    let stored = app.engine.update_agent(spec).await?;
    Ok(Json(AgentView::of(&app, stored)))
}

/// Its sessions stay readable.
#[utoipa::path(delete, path = "/agents/{id}", tag = "agents", params(("id" = String, Path)), responses((status = 204)))]
pub async fn delete(State(app): State<AppState>, Id(id): Id) -> Result<StatusCode> {
    app.engine.delete_agent(&agent_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[utoipa::path(get, path = "/agents/{id}/tools", tag = "agents", params(("id" = String, Path), InSession), responses((status = 200, body = AgentTools)))]
pub async fn tools(
    State(app): State<AppState>,
    Id(id): Id,
    Query(place): Query<InSession>,
) -> Result<Json<AgentTools>> {
    let listed = app.engine.explain_tools(Some(&agent_id(&id)?), place.session.as_ref()).await?;
    Ok(Json(AgentTools { tools: listed.into_iter().map(Ruled::from).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_an_agent_is_the_domains() {
        let schema = serde_json::to_value(Spec::schema()).unwrap();
        assert_eq!(schema["properties"]["agent_id"]["pattern"], "^[a-z][a-z0-9_-]{0,63}$", "{schema:#}");
        assert!(schema["properties"]["policy"]["properties"]["tools"]["properties"]["deny"].is_object());
    }
}
