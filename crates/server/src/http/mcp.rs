//! The MCP servers of the instance.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::mcp::{McpServerState, McpServerStatus};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Result;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct McpServers {
    servers: Vec<McpServerView>,
}

#[derive(Serialize, ToSchema)]
pub struct McpServerView {
    name: String,
    /// `stdio` or `http`.
    transport: &'static str,
    /// What its program is kept to: `confined` or `off`. Absent where it is a service.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<&'static str>,
    /// `idle`, `starting`, `ready` or `down`.
    #[schema(value_type = String)]
    state: McpServerState,
    /// The server's own name and version.
    version: Option<String>,
    /// Its tools by the names that agents know.
    tools: Vec<String>,
    /// Agents that name it.
    agents: Vec<String>,
    /// Times it was started again.
    restarts: u64,
    /// Why it is down.
    error: Option<String>,
}

#[utoipa::path(get, path = "/mcp", tag = "agents", responses((status = 200, body = McpServers)))]
pub async fn list_mcp_servers(State(app): State<AppState>) -> Result<Json<McpServers>> {
    let agents = app.engine.list_agents().await?;
    let view = |state: McpServerStatus| {
        let names_it = |names: &[String]| names.iter().any(|name| name == "*" || *name == state.name);
        let named = agents.iter().filter(|agent| names_it(&agent.spec.mcp));
        McpServerView {
            agents: named.map(|agent| agent.spec.agent_id.to_string()).collect(),
            name: state.name,
            transport: state.transport,
            sandbox: state.sandbox,
            state: state.state,
            version: state.version,
            tools: state.tools,
            restarts: state.restarts,
            error: state.error,
        }
    };
    Ok(Json(McpServers { servers: app.mcp.server_statuses().into_iter().map(view).collect() }))
}
