//! MCP servers used by the instance.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::mcp::{McpServerState, McpServerStatus};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Result;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct McpServers {
    /// The configured MCP servers.
    servers: Vec<McpServerView>,
}

#[derive(Serialize, ToSchema)]
pub struct McpServerView {
    /// The name in the config.
    name: String,
    /// How the server is reached: `stdio` (a local program) or `http`.
    transport: &'static str,
    /// The sandbox of the server's program: `confined` or `off`. Absent for a remote server.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<&'static str>,
    /// `idle` (started when needed), `starting`, `ready` or `down`.
    #[schema(value_type = String)]
    state: McpServerState,
    /// The name and version that the server reports.
    version: Option<String>,
    /// The tools of the server, by the names that agents use.
    tools: Vec<String>,
    /// The agents that may use the server.
    agents: Vec<String>,
    /// How often the server was restarted.
    restarts: u64,
    /// Why the server is down.
    error: Option<String>,
}

/// Lists MCP servers with their state and tools.
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
