//! `[mcp.servers.<name>]`: MCP servers, which add tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::AgentsConfig;
use super::key_names;
use super::report::ConfigReport;
use super::secret::Secret;
use crate::mcp::is_server_name;

/// MCP servers. An agent gets only the tools of the servers it names (`mcp = ["github"]`, or `["*"]`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// The servers, by a name of your choice: `[mcp.servers.github]`. Their tools are called `mcp_<name>_<tool>`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, McpServer>,
}

/// One MCP server: a program to start (`command`), or a service to call (`url`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpServer {
    /// The program to start. It runs in a folder of its own, in the sandbox that `sandbox` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment variables, besides PATH, HOME, USER, LANG, LC_ALL, TZ, TMPDIR and PYTHONSAFEPATH. Other
    /// variables of the instance are not passed on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Secret>,
    /// Its working directory, which must not be writable by agents. Defaults to a folder of its own below the
    /// instance's home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What the program can access.
    pub sandbox: McpSandbox,
    /// Files and folders it may read although they are hidden from servers. Absolute paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readable: Vec<String>,
    /// Files and folders it may write, in addition to its own folder. Absolute paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// The URL of a service that speaks streamable HTTP.
    #[schemars(url)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request, such as `Authorization`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
    /// Which of its tools are available, by the server's own names.
    pub tools: McpTools,
    /// Maximum silence during one call, in seconds.
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_seconds: u32,
    /// Maximum startup time, in seconds.
    #[schemars(range(min = 1, max = 600))]
    pub start_seconds: u32,
    /// Whether its tools need approval by a person.
    pub approval: McpApproval,
    /// Whether to trust what it declares about its tools: tools it calls read-only then need no approval and count as
    /// low-risk, and tools it calls read-only or idempotent are repeated after a crash. Declarations of an untrusted
    /// server are ignored.
    pub trusted: bool,
    /// Whether it is used. If `false`, it is not started and its tools are unavailable.
    pub enabled: bool,
}

impl Default for McpServer {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            sandbox: McpSandbox::default(),
            readable: Vec::new(),
            writable: Vec::new(),
            url: None,
            headers: BTreeMap::new(),
            tools: McpTools::default(),
            timeout_seconds: 60,
            start_seconds: 30,
            approval: McpApproval::default(),
            trusted: false,
            enabled: true,
        }
    }
}

/// Deny wins; an empty allow list allows every tool. `*` matches any text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpTools {
    /// Available tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Tools that are never available.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// What the program of a server can access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpSandbox {
    /// It may write its own folder, use the network and read the machine, except Polyclaw's home, workspaces and stored
    /// credentials.
    #[default]
    Confined,
    /// It runs with the rights of the instance.
    Off,
}

/// When a person is asked for approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpApproval {
    /// Before every call.
    Always,
    /// Before every call, except for tools that a `trusted` server calls read-only.
    #[default]
    Unsafe,
    /// Never.
    Never,
}

/// Bounds the programs to start and the names that every entry of a tool list is compared with.
const MAX_SERVERS: usize = 500;

impl McpConfig {
    pub fn server_names(&self) -> Vec<String> {
        self.servers.keys().take(MAX_SERVERS).cloned().collect()
    }

    pub(super) fn report_errors(&self, agents: &AgentsConfig, report: &mut ConfigReport) {
        if self.servers.len() > MAX_SERVERS {
            let message =
                format!("{} servers are configured; at most {MAX_SERVERS} are allowed", self.servers.len());
            report.add_error("mcp.servers", message, "remove some");
        }
        for (name, server) in &self.servers {
            server.report_errors(&key_names::join_key("mcp.servers", name), name, report);
        }
        let known: Vec<&str> =
            self.servers.keys().take(key_names::MAX_COMPARED).map(String::as_str).collect();
        for (index, agent) in agents.list.iter().enumerate() {
            let unknown = agent
                .mcp
                .iter()
                .enumerate()
                .filter(|(_, name)| *name != "*" && !self.servers.contains_key(name.as_str()));
            for (at, name) in unknown {
                let path = format!("agents.list[{index}].mcp[{at}]");
                report.add_error(
                    &path,
                    format!("there is no MCP server {name:?}"),
                    key_names::suggest_word(name, &known),
                );
            }
        }
    }
}

impl McpSandbox {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confined => "confined",
            Self::Off => "off",
        }
    }
}

impl McpServer {
    fn report_errors(&self, path: &str, own_name: &str, report: &mut ConfigReport) {
        if !is_server_name(own_name) {
            let hint = "use up to 32 lower-case letters, digits and -, starting with a letter";
            report.add_error(path, format!("{own_name:?} is not a valid name for an MCP server"), hint);
        }
        match (&self.command, &self.url) {
            (None, None) => {
                report.add_error(path, "neither command nor url is set", "set one of them");
            }
            (Some(_), Some(_)) => report.add_error(path, "both command and url are set", "keep one of them"),
            (Some(_), None) if !self.headers.is_empty() => {
                report.add_error(&format!("{path}.headers"), "headers are allowed only with url", "use env");
            }
            (None, Some(_)) if !self.env.is_empty() || !self.args.is_empty() || self.cwd.is_some() => {
                report.add_error(path, "args, env and cwd are allowed only with command", "remove them");
            }
            (None, Some(_)) if !self.readable.is_empty() || !self.writable.is_empty() => {
                report.add_error(path, "readable and writable are allowed only with command", "remove them");
            }
            _ => {}
        }
        for (key, paths) in [("readable", &self.readable), ("writable", &self.writable)] {
            for (at, wrong) in paths.iter().enumerate().filter(|(_, path)| !is_folder_path(path)) {
                let message = format!("{wrong:?} is not an absolute path of a file or folder");
                report.add_error(
                    &format!("{path}.{key}[{at}]"),
                    message,
                    "use an absolute path, such as \"/srv/documents\"",
                );
            }
        }
    }
}

fn is_folder_path(path: &str) -> bool {
    path.starts_with('/') && !path.trim_matches('/').is_empty()
}
