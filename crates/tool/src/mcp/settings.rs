//! What is to be known about one server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use polyclaw_domain::config::{McpApproval, McpSandbox, McpServer, McpTools, Secret};
use polyclaw_domain::glob;

use crate::sandbox;

/// A shorter value is a word that occurs anyway.
const SHORTEST_SECRET: usize = 6;

#[derive(Clone, PartialEq)]
pub struct Settings {
    pub reach: Reach,
    pub tools: McpTools,
    pub timeout: Duration,
    pub start: Duration,
    pub approval: McpApproval,
    pub trusted: bool,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum Reach {
    Program(Box<ServerProgram>),
    Http { url: String, headers: BTreeMap<String, String> },
}

/// A server that is started, as the config names it.
#[derive(Clone, PartialEq)]
pub struct ServerProgram {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<String>,
    pub sandbox: McpSandbox,
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// Its own folder.
    pub folder: PathBuf,
    pub host: ServerHost,
}

/// The instance that servers are started by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerHost {
    /// Runs a program that is not confined so that it can not outlive us: the words before its own.
    pub guard: Vec<String>,
    /// How programs are confined.
    pub sandbox: sandbox::Settings,
    /// The instance's home: agents write in it, and its secrets are there.
    pub home: PathBuf,
    /// The folders that agents write, wherever they are.
    pub workspaces: Vec<PathBuf>,
    /// The user's own home, where credentials are kept.
    pub user_home: Option<PathBuf>,
}

impl ServerHost {
    /// Servers' own folders, each below its server's name.
    const FOLDER: &str = "mcp";

    fn folder_of(&self, server: &str) -> PathBuf {
        self.home.join(Self::FOLDER).join(server)
    }
}

impl Settings {
    /// `None` for one that is switched off.
    pub fn of(name: &str, server: &McpServer, host: &ServerHost) -> Option<Self> {
        let reach = match (&server.command, &server.url) {
            (Some(command), _) => Reach::Program(Box::new(ServerProgram {
                command: command.clone(),
                args: server.args.clone(),
                env: exposed(&server.env),
                cwd: server.cwd.clone(),
                sandbox: server.sandbox,
                readable: server.readable.iter().map(PathBuf::from).collect(),
                writable: server.writable.iter().map(PathBuf::from).collect(),
                folder: host.folder_of(name),
                host: host.clone(),
            })),
            (None, Some(url)) => Reach::Http { url: url.clone(), headers: exposed(&server.headers) },
            (None, None) => return None,
        };
        server.enabled.then(|| Self {
            reach,
            tools: server.tools.clone(),
            timeout: Duration::from_secs(server.timeout_seconds.into()),
            start: Duration::from_secs(server.start_seconds.into()),
            approval: server.approval,
            trusted: server.trusted,
        })
    }

    pub fn offers(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|pattern| glob::glob_matches(pattern, tool));
        !named(&self.tools.deny) && (self.tools.allow.is_empty() || named(&self.tools.allow))
    }

    /// A text of the server's without the secrets that it was given.
    pub fn redact(&self, text: &str) -> String {
        let secrets = match &self.reach {
            Reach::Program(program) => &program.env,
            Reach::Http { headers, .. } => headers,
        };
        let mut text = text.to_owned();
        for secret in secrets.values() {
            let bare = secret.strip_prefix("Bearer ").unwrap_or(secret);
            if bare.len() >= SHORTEST_SECRET && text.contains(bare) {
                text = text.replace(bare, "***");
            }
        }
        text
    }
}

fn exposed(map: &BTreeMap<String, Secret>) -> BTreeMap<String, String> {
    map.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}

impl Reach {
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Program(_) => "stdio",
            Self::Http { .. } => "http",
        }
    }

    pub fn sandbox(&self) -> Option<&'static str> {
        match self {
            Self::Program(program) => Some(program.sandbox.as_str()),
            Self::Http { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(allow: &[&str], deny: &[&str]) -> Settings {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let server = McpServer {
            command: Some("x".to_owned()),
            env: [("TOKEN".to_owned(), Secret::new("canary-4711")), ("N".to_owned(), Secret::new("1"))]
                .into(),
            tools: McpTools { allow: words(allow), deny: words(deny) },
            ..McpServer::default()
        };
        Settings::of("lab", &server, &ServerHost::default()).unwrap()
    }

    #[test]
    fn its_tools_are_those_allowed_and_not_denied() {
        assert!(settings(&[], &[]).offers("echo"));
        assert!(settings(&["get-*"], &[]).offers("get-sum") && !settings(&["get-*"], &[]).offers("echo"));
        assert!(!settings(&["*"], &["echo"]).offers("echo"));
    }

    #[test]
    fn its_secrets_do_not_come_back() {
        assert_eq!(settings(&[], &[]).redact("key=canary-4711, n=1"), "key=***, n=1");
    }

    #[test]
    fn one_that_is_switched_off_is_not_there() {
        let server = McpServer { command: Some("x".to_owned()), enabled: false, ..McpServer::default() };
        assert!(Settings::of("lab", &server, &ServerHost::default()).is_none());
    }
}
