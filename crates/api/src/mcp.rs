//! MCP servers used by the instance.

use polyclaw_domain::mcp::McpServerState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct McpServers {
    /// The configured MCP servers.
    pub servers: Vec<McpServerView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct McpServerView {
    /// The name in the config.
    pub name: String,
    /// How the server is reached: `stdio` (a local program) or `http`.
    pub transport: String,
    /// The sandbox of the server's program: `confined` or `off`. Absent for a remote server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// `idle` (started when needed), `starting`, `ready` or `down`.
    #[schema(value_type = String)]
    pub state: McpServerState,
    /// The name and version that the server reports.
    pub version: Option<String>,
    /// The tools of the server, by the names that agents use.
    pub tools: Vec<String>,
    /// The agents that may use the server.
    pub agents: Vec<String>,
    /// How often the server was restarted.
    pub restarts: u64,
    /// Why the server is down.
    pub error: Option<String>,
}
