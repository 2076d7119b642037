//! Tools, and which agents may use them.

use axum::Json;
use axum::extract::State;
use polyclaw_api::tools::{PolicyLayerView, ToolExplanationView, ToolList, ToolPolicyView, ToolScopeQuery};
use polyclaw_engine::ToolExplanation;

use crate::error::Result;
use crate::extract::{PathId, QueryParams};
use crate::state::AppState;

pub fn tool_policy_view(explained: ToolExplanation) -> ToolPolicyView {
    let decided = explained.deciding_reason().cloned();
    ToolPolicyView {
        tool: explained.tool.as_ref().into(),
        agent_id: explained.agent,
        allowed: explained.allowed,
        asks: explained.requires_approval,
        rule: decided.as_ref().map(|reason| reason.rule.clone()),
        set_in: decided.as_ref().and_then(|reason| reason.set_in.clone()),
        change: decided.and_then(|reason| reason.change),
    }
}

/// Lists every tool and whether an agent may use it.
#[utoipa::path(get, path = "/tools", tag = "agents", params(ToolScopeQuery), responses((status = 200, body = ToolList)))]
pub async fn list_tools(
    State(app): State<AppState>,
    QueryParams(place): QueryParams<ToolScopeQuery>,
) -> Result<Json<ToolList>> {
    let listed = app.engine.explain_tools(place.agent.as_ref(), place.session.as_ref()).await?;
    Ok(Json(ToolList { tools: listed.into_iter().map(tool_policy_view).collect() }))
}

/// Explains why an agent may or may not use a tool.
/// Returns the decision of every policy layer, where it is set, and the config line that would change it. The
/// decision comes from the same code that real calls use.
#[utoipa::path(get, path = "/tools/{name}/explain", tag = "agents", params(("name" = String, Path), ToolScopeQuery), responses((status = 200, body = ToolExplanationView)))]
pub async fn explain_tool(
    State(app): State<AppState>,
    PathId(name): PathId,
    QueryParams(place): QueryParams<ToolScopeQuery>,
) -> Result<Json<ToolExplanationView>> {
    let explained = app.engine.explain_tool(&name, place.agent.as_ref(), place.session.as_ref()).await?;
    let layers = explained.layers.iter().cloned().map(PolicyLayerView::from).collect();
    Ok(Json(ToolExplanationView { layers, decision: tool_policy_view(explained) }))
}
