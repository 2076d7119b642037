//! `[mcp.servers.<name>]`: programs and services of others that bring tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::AgentsConfig;
use super::key_names;
use super::report::ConfigReport;
use super::secret::Secret;
use crate::mcp::is_server_name;

/// MCP servers. An agent has the tools of those it names (`mcp = ["github"]`, or `["*"]`), and of no other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// The servers, by a name of your choice: `[mcp.servers.github]`. Their tools are called `mcp_<name>_<tool>`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, McpServer>,
}

/// One MCP server: a program that is started (`command`), or a service that is called (`url`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpServer {
    /// The program to start. It runs in a folder of its own, in the sandbox that `sandbox` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment, besides PATH, HOME, USER, LANG, LC_ALL, TZ, TMPDIR and PYTHONSAFEPATH: nothing else of the
    /// instance's is handed on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Secret>,
    /// The folder it starts in; never one that agents write. A folder of its own below the instance's home if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// How far the program reaches.
    pub sandbox: McpSandbox,
    /// Files and folders it may read although they are hidden from servers. Absolute paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readable: Vec<String>,
    /// Files and folders it may write, beside its own folder. Absolute paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<String>,
    /// The address of a service that speaks streamable HTTP.
    #[schemars(url)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every call, such as `Authorization`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
    /// Which of its tools there are, by the server's own names.
    pub tools: McpTools,
    /// The longest silence of one call, in seconds.
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_seconds: u32,
    /// How long it may take to start, in seconds.
    #[schemars(range(min = 1, max = 600))]
    pub start_seconds: u32,
    /// Whether a person is asked before its tools run.
    pub approval: McpApproval,
    /// You vouch for what it says about its tools: those it calls read-only then ask nobody and count as low risk, and
    /// those it calls read-only or idempotent are repeated after a crash. What an untrusted server says counts for nothing.
    pub trusted: bool,
    /// Off: it is not started, and its tools are not there.
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

/// Deny wins; an empty allow list allows every tool. `*` stands for any text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpTools {
    /// The tools there are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Tools there are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// How far the program of a server reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpSandbox {
    /// It writes its own folder, reaches the network and reads the machine, but for Polyclaw's home, workspaces and stored
    /// credentials.
    #[default]
    Confined,
    /// It runs with the rights of the instance.
    Off,
}

/// When a person is asked first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpApproval {
    /// Before every call.
    Always,
    /// Before every call, but for tools that a `trusted` server calls read-only.
    #[default]
    Unsafe,
    /// Never.
    Never,
}

/// Each is a program of its own, and every word of a tool list is compared with all their names.
const MAX_SERVERS: usize = 500;

impl McpConfig {
    pub fn server_names(&self) -> Vec<String> {
        self.servers.keys().take(MAX_SERVERS).cloned().collect()
    }

    pub(super) fn report_errors(&self, agents: &AgentsConfig, report: &mut ConfigReport) {
        if self.servers.len() > MAX_SERVERS {
            let message =
                format!("there are {} servers, and at most {MAX_SERVERS} can be used", self.servers.len());
            report.add_error("mcp.servers", message, "take some out");
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
            let hint = "use up to 32 lower-case letters, digits and -, beginning with a letter";
            report.add_error(path, format!("{own_name:?} is not a name for an MCP server"), hint);
        }
        match (&self.command, &self.url) {
            (None, None) => {
                report.add_error(
                    path,
                    "it has neither a command nor a url",
                    "add the one that it is reached by",
                );
            }
            (Some(_), Some(_)) => report.add_error(path, "it has a command and a url", "keep one of them"),
            (Some(_), None) if !self.headers.is_empty() => {
                report.add_error(
                    &format!("{path}.headers"),
                    "only a server with a url has headers",
                    "use env",
                );
            }
            (None, Some(_)) if !self.env.is_empty() || !self.args.is_empty() || self.cwd.is_some() => {
                report.add_error(path, "args, env and cwd are for a server with a command", "take them out");
            }
            (None, Some(_)) if !self.readable.is_empty() || !self.writable.is_empty() => {
                report.add_error(
                    path,
                    "readable and writable are for a server with a command",
                    "take them out",
                );
            }
            _ => {}
        }
        for (key, paths) in [("readable", &self.readable), ("writable", &self.writable)] {
            for (at, wrong) in paths.iter().enumerate().filter(|(_, path)| !is_folder_path(path)) {
                let message = format!("{wrong:?} is not an absolute path of a file or folder");
                report.add_error(
                    &format!("{path}.{key}[{at}]"),
                    message,
                    "write it out, such as \"/srv/documents\"",
                );
            }
        }
    }
}

fn is_folder_path(path: &str) -> bool {
    path.starts_with('/') && !path.trim_matches('/').is_empty()
}
