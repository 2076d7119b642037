//! Settings of an MCP server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use polyclaw_domain::config::{McpApproval, McpSandbox, McpServer, McpTools, Secret};
use polyclaw_domain::glob;

use crate::sandbox;

/// Minimum length of a secret to redact. Shorter values occur in ordinary text.
const MIN_SECRET_LEN: usize = 6;

#[derive(Clone, PartialEq)]
pub struct McpSettings {
    pub transport: McpTransport,
    pub tools: McpTools,
    pub timeout: Duration,
    pub start: Duration,
    pub approval: McpApproval,
    pub trusted: bool,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum McpTransport {
    Program(Box<ServerProgram>),
    Http { url: String, headers: BTreeMap<String, String> },
}

/// A server program, as configured.
#[derive(Clone, PartialEq)]
pub struct ServerProgram {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<String>,
    pub sandbox: McpSandbox,
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// The server's own folder.
    pub folder: PathBuf,
    pub host: McpHost,
}

/// The instance that starts the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpHost {
    /// Command prefix that ends an unconfined program together with the daemon.
    pub guard: Vec<String>,
    /// How programs are confined.
    pub sandbox: sandbox::SandboxLauncherSettings,
    /// The instance's home: it contains secrets, and agents write in it.
    pub home: PathBuf,
    /// The workspaces of agents, wherever they are.
    pub workspaces: Vec<PathBuf>,
    /// The user's home, which contains credentials.
    pub user_home: Option<PathBuf>,
}

impl McpHost {
    /// Folder with one subfolder per server.
    const SERVERS_FOLDER: &str = "mcp";

    fn server_folder(&self, server: &str) -> PathBuf {
        self.home.join(Self::SERVERS_FOLDER).join(server)
    }
}

impl McpSettings {
    /// Returns `None` for a disabled server.
    pub fn from_config(name: &str, server: &McpServer, host: &McpHost) -> Option<Self> {
        let reach = match (&server.command, &server.url) {
            (Some(command), _) => McpTransport::Program(Box::new(ServerProgram {
                command: command.clone(),
                args: server.args.clone(),
                env: expose_secrets(&server.env),
                cwd: server.cwd.clone(),
                sandbox: server.sandbox,
                readable: server.readable.iter().map(PathBuf::from).collect(),
                writable: server.writable.iter().map(PathBuf::from).collect(),
                folder: host.server_folder(name),
                host: host.clone(),
            })),
            (None, Some(url)) => {
                McpTransport::Http { url: url.clone(), headers: expose_secrets(&server.headers) }
            }
            (None, None) => return None,
        };
        server.enabled.then(|| Self {
            transport: reach,
            tools: server.tools.clone(),
            timeout: Duration::from_secs(server.timeout_seconds.into()),
            start: Duration::from_secs(server.start_seconds.into()),
            approval: server.approval,
            trusted: server.trusted,
        })
    }

    pub fn allows_tool(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|pattern| glob::glob_matches(pattern, tool));
        !named(&self.tools.deny) && (self.tools.allow.is_empty() || named(&self.tools.allow))
    }

    /// Redacts the server's secrets in a text.
    pub fn redact(&self, text: &str) -> String {
        let secrets = match &self.transport {
            McpTransport::Program(program) => &program.env,
            McpTransport::Http { headers, .. } => headers,
        };
        let mut text = text.to_owned();
        for secret in secrets.values() {
            let bare = secret.strip_prefix("Bearer ").unwrap_or(secret);
            if bare.len() >= MIN_SECRET_LEN && text.contains(bare) {
                text = text.replace(bare, "***");
            }
        }
        text
    }
}

fn expose_secrets(map: &BTreeMap<String, Secret>) -> BTreeMap<String, String> {
    map.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}

impl McpTransport {
    pub fn transport_name(&self) -> &'static str {
        match self {
            Self::Program(_) => "stdio",
            Self::Http { .. } => "http",
        }
    }

    pub fn sandbox_name(&self) -> Option<&'static str> {
        match self {
            Self::Program(program) => Some(program.sandbox.as_str()),
            Self::Http { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(allow: &[&str], deny: &[&str]) -> McpSettings {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let server = McpServer {
            command: Some("x".to_owned()),
            env: [("TOKEN".to_owned(), Secret::new("canary-4711")), ("N".to_owned(), Secret::new("1"))]
                .into(),
            tools: McpTools { allow: words(allow), deny: words(deny) },
            ..McpServer::default()
        };
        McpSettings::from_config("lab", &server, &McpHost::default()).unwrap()
    }

    #[test]
    fn mcp_tools_follow_allow_and_deny_lists() {
        assert!(settings(&[], &[]).allows_tool("echo"));
        assert!(
            settings(&["get-*"], &[]).allows_tool("get-sum")
                && !settings(&["get-*"], &[]).allows_tool("echo")
        );
        assert!(!settings(&["*"], &["echo"]).allows_tool("echo"));
    }

    #[test]
    fn mcp_env_secrets_are_redacted() {
        assert_eq!(settings(&[], &[]).redact("key=canary-4711, n=1"), "key=***, n=1");
    }

    #[test]
    fn disabled_mcp_server_has_no_settings() {
        let server = McpServer { command: Some("x".to_owned()), enabled: false, ..McpServer::default() };
        assert!(McpSettings::from_config("lab", &server, &McpHost::default()).is_none());
    }
}
