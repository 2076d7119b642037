//! Tools of MCP servers. A server is started when an agent that names it first needs it, watched, and started again
//! when it ends. Whatever it says is data: names, descriptions, schemas and results are bounded and cleaned.

mod connection;
mod group;
mod launch;
mod offer;
mod process;
mod result;
mod server;
mod settings;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use polyclaw_domain::id::TurnId;
use polyclaw_domain::mcp::{McpServerRegistry, McpServerStatus};
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::tool::{ProgressSink, ToolCall, ToolConsent, ToolOutcome, ToolScope, ToolSpec, Toolbox};

use crate::error::Error;
use crate::text;
use server::Server;
pub use settings::{ServerHost as McpHost, Settings as McpSettings};

/// How long a turn waits for servers that are starting. What is not there by then is not there for that turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// All servers of the instance.
#[derive(Default)]
pub struct Mcp {
    servers: RwLock<BTreeMap<String, Arc<Server>>>,
}

impl Mcp {
    /// Takes up new settings. A server whose settings are as they were goes on; the others end.
    pub fn set(&self, settings: BTreeMap<String, McpSettings>) {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        let mut old = std::mem::take(&mut *servers);
        for (name, settings) in settings {
            let kept = old.remove(&name).filter(|server| server.has(&settings));
            let server = kept.unwrap_or_else(|| Arc::new(Server::new(name.clone(), settings)));
            servers.insert(name, server);
        }
        old.into_values().for_each(|server| server.stop());
    }

    /// Starts what these agents will need, so that their first turn does not wait for it.
    pub fn start<'a>(&self, named: impl Iterator<Item = &'a [String]>) {
        for names in named {
            self.of(names).iter().for_each(Server::wake);
        }
    }

    /// Ends every server, and returns when their processes are gone.
    pub async fn stop(&self) {
        let servers: Vec<_> = self.all();
        servers.iter().for_each(|server| server.stop());
        for server in servers {
            server.stopped().await;
        }
    }

    fn all(&self) -> Vec<Arc<Server>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The servers an agent names, and no other.
    fn of(&self, names: &[String]) -> Vec<Arc<Server>> {
        if names.is_empty() {
            return Vec::new();
        }
        let is_named = |server: &Arc<Server>| names.iter().any(|name| name == "*" || *name == server.name);
        self.all().into_iter().filter(is_named).collect()
    }

    /// The server that has this tool, and the tool's own name there.
    fn find(&self, scope: &ToolScope, name: &str) -> Option<(Arc<Server>, String)> {
        self.of(&scope.mcp).into_iter().find_map(|server| {
            let offers = server.offers();
            let offer = offers.iter().find(|offer| offer.spec.name == name && is_open(&offer.spec, scope))?;
            Some((Arc::clone(&server), offer.tool.clone()))
        })
    }
}

/// A tool that needs a person's word is not there where nobody can be asked.
fn is_open(spec: &ToolSpec, scope: &ToolScope) -> bool {
    scope.can_ask || spec.consent != ToolConsent::AskPerson
}

impl Toolbox for Mcp {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        let servers = self.of(&scope.mcp);
        let offers = servers.iter().flat_map(|server| {
            server.wake();
            server.offers().iter().map(|offer| Arc::clone(&offer.spec)).collect::<Vec<_>>()
        });
        offers.filter(|spec| is_open(spec, scope)).collect()
    }

    fn wait_until_ready<'a>(&'a self, scope: &'a ToolScope) -> Option<BoxFuture<'a, ()>> {
        let starting: Vec<_> =
            self.of(&scope.mcp).into_iter().filter(|server| server.is_starting()).collect();
        if starting.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            let known = async {
                for server in &starting {
                    server.known().await;
                }
            };
            // What is late is told to nobody here: its state is on the page of servers.
            let _ = tokio::time::timeout(PATIENCE, known).await;
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
            let Some((server, tool)) = self.find(scope, &call.name) else {
                return Error::UnknownTool(text::cut(&call.name, 80)).into();
            };
            server.call(&tool, &call.arguments, progress).await.unwrap_or_else(|error| {
                tracing::debug!(turn.id = %turn, mcp.server = server.name, error.code = error.code(), "call of an MCP tool failed");
                error.into()
            })
        })
    }
}

impl McpServerRegistry for Mcp {
    fn server_statuses(&self) -> Vec<McpServerStatus> {
        self.all().iter().map(|server| server.state()).collect()
    }
}

/// Starts one server, asks what it offers and ends it: what `polyclaw mcp check` does.
pub async fn probe(name: &str, settings: McpSettings) -> McpServerStatus {
    let server = Arc::new(Server::new(name.to_owned(), settings));
    server.wake();
    server.known().await;
    let state = server.state();
    server.stop();
    server.stopped().await;
    state
}
