//! Tools of MCP servers. A server is started when an agent that names it first needs it, supervised, and restarted when
//! it ends. All its output is untrusted: names, descriptions, schemas and results are bounded and cleaned.

mod connection;
mod group;
mod launch;
mod process;
mod result;
mod server;
mod settings;
mod tool_spec;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use polyclaw_domain::id::TurnId;
use polyclaw_domain::mcp::{McpServerRegistry, McpServerStatus};
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::tool::{ProgressSink, ToolCall, ToolConsent, ToolOutcome, ToolScope, ToolSpec, Toolbox};

use crate::error::Error;
use crate::text;
use server::McpServerHandle;
pub use settings::{McpHost, McpSettings};

/// How long a turn waits for starting servers. Later ones are unavailable in that turn.
const SERVER_START_TIMEOUT: Duration = Duration::from_secs(10);

/// All MCP servers of the instance.
#[derive(Default)]
pub struct McpToolbox {
    servers: RwLock<BTreeMap<String, Arc<McpServerHandle>>>,
}

impl McpToolbox {
    /// Applies new settings. Servers with unchanged settings keep running; the others are stopped.
    pub fn apply_settings(&self, settings: BTreeMap<String, McpSettings>) {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        let mut old = std::mem::take(&mut *servers);
        for (name, settings) in settings {
            let kept = old.remove(&name).filter(|server| server.has_settings(&settings));
            let server = kept.unwrap_or_else(|| Arc::new(McpServerHandle::new(name.clone(), settings)));
            servers.insert(name, server);
        }
        old.into_values().for_each(|server| server.stop());
    }

    /// Starts the servers that these agents need, so that their first turn does not wait.
    pub fn start<'a>(&self, named: impl Iterator<Item = &'a [String]>) {
        for names in named {
            self.servers_named(names).iter().for_each(McpServerHandle::start_if_idle);
        }
    }

    /// Stops all servers and waits until their processes are gone.
    pub async fn stop(&self) {
        let servers: Vec<_> = self.all_servers();
        servers.iter().for_each(|server| server.stop());
        for server in servers {
            server.wait_stopped().await;
        }
    }

    fn all_servers(&self) -> Vec<Arc<McpServerHandle>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Returns the servers that an agent names.
    fn servers_named(&self, names: &[String]) -> Vec<Arc<McpServerHandle>> {
        if names.is_empty() {
            return Vec::new();
        }
        let is_named =
            |server: &Arc<McpServerHandle>| names.iter().any(|name| name == "*" || *name == server.name);
        self.all_servers().into_iter().filter(is_named).collect()
    }

    /// Returns the server of a tool, and the name of the tool on that server.
    fn find_tool(&self, scope: &ToolScope, name: &str) -> Option<(Arc<McpServerHandle>, String)> {
        self.servers_named(&scope.mcp).into_iter().find_map(|server| {
            let offers = server.tool_specs();
            let offer =
                offers.iter().find(|offer| offer.spec.name == name && is_available(&offer.spec, scope))?;
            Some((Arc::clone(&server), offer.tool.clone()))
        })
    }
}

/// Tools that need approval are unavailable where nobody can be asked.
fn is_available(spec: &ToolSpec, scope: &ToolScope) -> bool {
    scope.can_ask || spec.consent != ToolConsent::AskPerson
}

impl Toolbox for McpToolbox {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        let servers = self.servers_named(&scope.mcp);
        let offers = servers.iter().flat_map(|server| {
            server.start_if_idle();
            server.tool_specs().iter().map(|offer| Arc::clone(&offer.spec)).collect::<Vec<_>>()
        });
        offers.filter(|spec| is_available(spec, scope)).collect()
    }

    fn wait_until_ready<'a>(&'a self, scope: &'a ToolScope) -> Option<BoxFuture<'a, ()>> {
        let starting: Vec<_> =
            self.servers_named(&scope.mcp).into_iter().filter(|server| server.is_starting()).collect();
        if starting.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            let known = async {
                for server in &starting {
                    server.wait_first_start().await;
                }
            };
            // A timeout is not reported here; the server list shows the state.
            let _ = tokio::time::timeout(SERVER_START_TIMEOUT, known).await;
        }))
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: ProgressSink<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let Some((server, tool)) = self.find_tool(scope, &call.name) else {
                return Error::UnknownTool(text::truncate_text(&call.name, 80)).into();
            };
            server.call_tool(&tool, &call.arguments, progress).await.unwrap_or_else(|error| {
                tracing::debug!(turn.id = %turn, mcp.server = server.name, error.code = error.code(), "MCP tool call failed");
                error.into()
            })
        })
    }
}

impl McpServerRegistry for McpToolbox {
    fn server_statuses(&self) -> Vec<McpServerStatus> {
        self.all_servers().iter().map(|server| server.state()).collect()
    }
}

/// Starts a server, lists its tools and stops it, for `polyclaw mcp check`.
pub async fn probe_server(name: &str, settings: McpSettings) -> McpServerStatus {
    let server = Arc::new(McpServerHandle::new(name.to_owned(), settings));
    server.start_if_idle();
    server.wait_first_start().await;
    let state = server.state();
    server.stop();
    server.wait_stopped().await;
    state
}
