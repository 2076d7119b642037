//! Warnings about settings that make an instance less safe. All of them are allowed; the operator should know about
//! them.

use std::net::IpAddr;

use serde::Serialize;
use serde_json::Value;

use crate::agent::{AgentSpec, SandboxMode};
use crate::config::{Config, GatewayAuth, McpSandbox};
use crate::id::AgentId;
use crate::policy::{self, PolicyAgent, PolicyLayers, ToolRules};
use crate::tool::{ToolConsent, ToolEffect, ToolRisk, ToolSpec};

const SHELL_TOOL: &str = "shell";

/// One unsafe setting: a stable code, its meaning, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SafetyWarning {
    pub code: &'static str,
    pub message: String,
    pub hint: String,
}

/// Security-relevant facts about the instance as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceExposure {
    pub is_root: bool,
    pub bind: IpAddr,
    pub auth: GatewayAuth,
    /// MCP servers that run with the rights of the instance.
    pub unconfined_servers: Vec<String>,
}

impl InstanceExposure {
    pub fn from_config(config: &Config, is_root: bool) -> Self {
        let is_open = |server: &crate::config::McpServer| {
            server.enabled && server.command.is_some() && server.sandbox == McpSandbox::Off
        };
        let servers = config.mcp.servers.iter().filter(|(_, server)| is_open(server));
        Self {
            is_root,
            bind: config.gateway.bind,
            auth: config.gateway.auth,
            unconfined_servers: servers.map(|(name, _)| name.clone()).collect(),
        }
    }
}

/// The agents of an instance, and the rules for all of them.
#[derive(Clone, Copy, Debug)]
pub struct InstanceAgents<'a> {
    pub agents: &'a [AgentSpec],
    pub default_agent: &'a AgentId,
    pub rules: &'a ToolRules,
}

/// Returns all warnings, most serious first.
pub fn safety_warnings(exposure: &InstanceExposure, household: InstanceAgents<'_>) -> Vec<SafetyWarning> {
    [
        exposure.is_root.then(running_as_root),
        auth_off(exposure, household),
        (!exposure.bind.is_loopback()).then(|| bind_exposed(exposure.bind)),
        shell_without_approval(household),
        sandbox_off(household),
        servers_unconfined(&exposure.unconfined_servers),
        may_listen(household),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the warnings for a process without agents: a control plane.
pub fn exposure_warnings(exposure: &InstanceExposure) -> Vec<SafetyWarning> {
    let (default_agent, rules) = (AgentId::main(), ToolRules::default());
    safety_warnings(exposure, InstanceAgents { agents: &[], default_agent: &default_agent, rules: &rules })
}

/// Returns the warnings for a config alone, without agents created at run time.
pub fn config_warnings(config: &Config, is_root: bool) -> Vec<SafetyWarning> {
    let (agents, default_agent, rules) =
        (config.agents.agent_specs(), config.agents.default_agent_id(), config.tools.tool_rules());
    let household = InstanceAgents { agents: &agents, default_agent: &default_agent, rules: &rules };
    safety_warnings(&InstanceExposure::from_config(config, is_root), household)
}

fn build_warning(code: &'static str, message: impl Into<String>, hint: &str) -> SafetyWarning {
    SafetyWarning { code, message: message.into(), hint: hint.to_owned() }
}

fn running_as_root() -> SafetyWarning {
    build_warning(
        "running_as_root",
        "Polyclaw runs as root: a vulnerability in it or in a sandbox affects the whole machine",
        "run it as an ordinary user",
    )
}

fn auth_off(exposure: &InstanceExposure, household: InstanceAgents<'_>) -> Option<SafetyWarning> {
    if exposure.auth != GatewayAuth::Off {
        return None;
    }
    let networked =
        agent_names(household, |spec| spec.sandbox.mode != SandboxMode::Strict && has_shell(spec, household));
    let hint = "set auth = \"token\" in [gateway]";
    Some(if networked.is_empty() {
        build_warning(
            "auth_off",
            "the API requires no token: every program on this machine has full access",
            hint,
        )
    } else {
        let message = format!(
            "the API requires no token, and programs of {} can reach it: they can give themselves any permission",
            networked.join(", ")
        );
        let hint = format!("{hint}, or sandbox.mode = \"strict\" for these agents");
        SafetyWarning { code: "auth_off_with_network", message, hint }
    })
}

fn bind_exposed(bind: IpAddr) -> SafetyWarning {
    build_warning(
        "bind_exposed",
        format!(
            "the API listens on {bind}: other machines can reach it, and the connection is not encrypted"
        ),
        "set bind = \"127.0.0.1\" in [gateway], with a TLS reverse proxy in front",
    )
}

fn sandbox_off(household: InstanceAgents<'_>) -> Option<SafetyWarning> {
    let agents =
        agent_names(household, |spec| spec.sandbox.mode == SandboxMode::Off && has_shell(spec, household));
    (!agents.is_empty()).then(|| {
        let message = format!("programs of {} run without a sandbox", agents.join(", "));
        build_warning("sandbox_off", message, "set sandbox.mode = \"workspace\" or \"strict\"")
    })
}

fn shell_without_approval(household: InstanceAgents<'_>) -> Option<SafetyWarning> {
    let is_unasked = |spec: &AgentSpec| {
        let is_open = spec.sandbox.mode == SandboxMode::Off && has_shell(spec, household);
        is_open && !policy::needs_approval(&shell_tool(), &agent_layers(spec, household))
    };
    let agents = agent_names(household, is_unasked);
    (!agents.is_empty()).then(|| {
        let message = format!("{} runs commands without a sandbox and without approval", agents.join(", "));
        build_warning(
            "shell_unasked",
            message,
            "set approvals = { shell = \"unsafe\" } in its tools, or enable a sandbox",
        )
    })
}

fn servers_unconfined(servers: &[String]) -> Option<SafetyWarning> {
    (!servers.is_empty()).then(|| {
        let message = format!("MCP servers run with the permissions of the instance: {}", servers.join(", "));
        build_warning("mcp_sandbox_off", message, "remove sandbox = \"off\" from [mcp.servers.<name>]")
    })
}

fn may_listen(household: InstanceAgents<'_>) -> Option<SafetyWarning> {
    let listens = |spec: &AgentSpec| spec.sandbox.listen && spec.sandbox.mode == SandboxMode::Workspace;
    let agents = agent_names(household, |spec| listens(spec) && has_shell(spec, household));
    (!agents.is_empty()).then(|| {
        let message = format!("programs of {} may listen for connections on this machine", agents.join(", "));
        build_warning("sandbox_listen", message, "remove listen from its sandbox unless it is needed")
    })
}

fn agent_names(household: InstanceAgents<'_>, is_meant: impl Fn(&AgentSpec) -> bool) -> Vec<String> {
    household.agents.iter().filter(|spec| is_meant(spec)).map(|spec| spec.agent_id.to_string()).collect()
}

fn has_shell(spec: &AgentSpec, household: InstanceAgents<'_>) -> bool {
    policy::allows_tool(&shell_tool(), &agent_layers(spec, household))
}

/// The shell tool as it is without a sandbox.
fn shell_tool() -> ToolSpec {
    ToolSpec {
        name: SHELL_TOOL.to_owned(),
        description: String::new(),
        parameters: Value::Null,
        effect: ToolEffect::Effect,
        risk: ToolRisk::High,
        consent: ToolConsent::AskPerson,
        confined: false,
    }
}

fn agent_layers<'a>(spec: &'a AgentSpec, household: InstanceAgents<'a>) -> PolicyLayers<'a> {
    let agent = PolicyAgent {
        id: &spec.agent_id,
        policy: &spec.policy.tools,
        is_default: spec.agent_id == *household.default_agent,
        in_config: true,
    };
    PolicyLayers {
        rules: household.rules,
        agent,
        inherited: None,
        spawn_depth: 0,
        has_room: true,
        senders: &[],
        can_ask: true,
        awaits_plan: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str, is_root: bool) -> Vec<&'static str> {
        let config = crate::config::load(text, "config.toml", &|_| Err("none".to_owned())).unwrap();
        config_warnings(&config, is_root).iter().map(|warning| warning.code).collect()
    }

    #[test]
    fn default_config_has_no_warnings() {
        assert!(codes("", false).is_empty());
    }

    #[test]
    fn each_unsafe_setting_is_reported() {
        let strict = "[agents.defaults.sandbox]\nmode = \"strict\"\n";
        let off = "[agents.defaults.sandbox]\nmode = \"off\"\n";
        for (text, is_root, expected) in [
            (String::new(), true, vec!["running_as_root"]),
            ("[gateway]\nauth = \"off\"\n".to_owned(), false, vec!["auth_off_with_network"]),
            (format!("[gateway]\nauth = \"off\"\n{strict}"), false, vec!["auth_off"]),
            ("[gateway]\nbind = \"0.0.0.0\"\n".to_owned(), false, vec!["bind_exposed"]),
            (off.to_owned(), false, vec!["sandbox_off"]),
            (format!("[tools]\napproval = \"never\"\n{off}"), false, vec!["shell_unasked", "sandbox_off"]),
            (format!("[tools]\ndeny = [\"shell\"]\n{off}"), false, vec![]),
            ("[mcp.servers.x]\ncommand = \"y\"\n".to_owned(), false, vec![]),
            (
                "[mcp.servers.x]\ncommand = \"y\"\nsandbox = \"off\"\n".to_owned(),
                false,
                vec!["mcp_sandbox_off"],
            ),
            ("[agents.defaults.sandbox]\nlisten = true\n".to_owned(), false, vec!["sandbox_listen"]),
        ] {
            assert_eq!(codes(&text, is_root), expected, "{text}");
        }
    }

    #[test]
    fn exposure_warnings_work_without_agents() {
        let exposure = InstanceExposure {
            is_root: true,
            bind: [10, 0, 0, 1].into(),
            auth: GatewayAuth::Token,
            unconfined_servers: Vec::new(),
        };
        let found = exposure_warnings(&exposure);
        assert_eq!(
            found.iter().map(|found| found.code).collect::<Vec<_>>(),
            ["running_as_root", "bind_exposed"]
        );
    }

    #[test]
    fn sandbox_off_warning_needs_agent_with_shell() {
        let agents = "[[agents.list]]\nid = \"main\"\ndefault = true\n[[agents.list]]\nid = \"ops\"\nsandbox = { mode = \"off\" }\n";
        assert!(codes(agents, false).is_empty(), "not the default agent, and nobody allowed it the shell");
        assert_eq!(codes(&format!("{agents}tools = {{ allow = [\"shell\"] }}\n"), false), ["sandbox_off"]);
    }
}
