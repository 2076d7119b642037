//! MCP servers used by the instance.

use axum::Json;
use axum::extract::State;
use polyclaw_api::mcp::{McpServerView, McpServers};
use polyclaw_domain::mcp::McpServerStatus;

use crate::error::Result;
use crate::state::AppState;

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
            transport: state.transport.to_owned(),
            sandbox: state.sandbox.map(str::to_owned),
            state: state.state,
            version: state.version,
            tools: state.tools,
            restarts: state.restarts,
            error: state.error,
        }
    };
    Ok(Json(McpServers { servers: app.mcp.server_statuses().into_iter().map(view).collect() }))
}
