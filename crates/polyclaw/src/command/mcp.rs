//! `polyclaw mcp`: MCP servers, and this instance as an MCP server.

mod serve;

use futures_util::future::join_all;
use polyclaw_api::mcp::{McpServerView, McpServers};
use polyclaw_domain::mcp::{McpServerState, McpServerStatus};
use polyclaw_tool::probe_mcp;
use serde_json::json;

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::failure::{CommandFailure, FailureExit};
use crate::output::{CliOutput, cell, visible_line};
use crate::tools::mcp_settings;

/// Manage MCP servers: list, check, or serve.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw mcp list
  polyclaw mcp check
  polyclaw mcp check github --json
  polyclaw mcp serve

Servers are configured in [mcp.servers.<name>], with a command or a url. An agent gets the tools of the servers that it
lists: mcp = [\"github\"] in its [[agents.list]]. The tools are named mcp_<server>_<tool>.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<McpCommand>,
}

#[derive(clap::Subcommand)]
enum McpCommand {
    /// List the MCP servers of the running instance with their state.
    #[command(after_help = "Examples:
  polyclaw mcp list")]
    List,
    /// Start the configured servers, list their tools, then stop them. Needs no daemon.
    #[command(after_help = "Examples:
  polyclaw mcp check
  polyclaw mcp check github --json")]
    Check {
        /// Server to check. Defaults to all.
        name: Option<String>,
    },
    /// Serve MCP on stdin and stdout, for clients that start programs. Other clients use /mcp of the instance.
    #[command(after_help = "Examples:
  polyclaw mcp serve")]
    Serve,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    match &args.verb {
        None | Some(McpCommand::List) => list_servers(context).await,
        Some(McpCommand::Serve) => serve::run(context).await,
        Some(McpCommand::Check { name }) => Ok(check_servers(context, name.as_deref()).await?),
    }
}

async fn list_servers(context: &CommandContext) -> anyhow::Result<()> {
    let answer: McpServers = ApiClient::new(context)?.get_as("/mcp").await?;
    Ok(context.output.print_value(&answer, |output| servers_table(output, &answer.servers))?)
}

fn servers_table(output: &CliOutput, servers: &[McpServerView]) -> String {
    if servers.is_empty() {
        return "No MCP servers are configured. `polyclaw mcp --help` shows how to add one.".to_owned();
    }
    let row = |server: &McpServerView| {
        let note = server.error.as_ref().or(server.version.as_ref());
        let agents = visible_line(&server.agents.join(" "));
        vec![
            cell(&server.name),
            cell(&server.transport),
            cell(&server.state),
            server.tools.len().to_string(),
            if agents.is_empty() { "-".to_owned() } else { agents },
            cell(&note),
        ]
    };
    let rows: Vec<_> = servers.iter().map(row).collect();
    output.format_table(&["NAME", "TRANSPORT", "STATE", "TOOLS", "AGENTS", "NOTE"], &rows)
}

/// Connects to each configured server now and returns its status.
pub async fn probe_servers(
    context: &CommandContext,
    only: Option<&str>,
) -> Result<Vec<McpServerStatus>, CommandFailure> {
    let config = context.home.read_config()?;
    let mut settings = mcp_settings(&config, &context.home, &[]);
    if let Some(name) = only {
        settings.retain(|known, _| known == name);
        if settings.is_empty() {
            let what = format!("the MCP server {name:?} is not in the config, or it is disabled");
            return Err(CommandFailure::new(FailureExit::NotFound, "unknown_mcp_server", what)
                .hint("`polyclaw mcp list` lists the servers"));
        }
    }
    let probes = settings.into_iter().map(|(name, settings)| async move { probe_mcp(&name, settings).await });
    Ok(join_all(probes).await)
}

async fn check_servers(context: &CommandContext, only: Option<&str>) -> Result<(), CommandFailure> {
    let states = probe_servers(context, only).await?;
    let report = json!({ "servers": states });
    let lines = states.iter().map(|state| match &state.error {
        None => format!(
            "ok    {}: {} ({} tools)",
            state.name,
            state.version.as_deref().unwrap_or("-"),
            state.tools.len()
        ),
        Some(error) => format!("error {}: {}", state.name, visible_line(error)),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let down = states.iter().filter(|state| state.state != McpServerState::Ready).count();
    if down == 0 {
        let none = "No MCP servers are configured.".to_owned();
        let _ = context.output.print_value(&report, |_| if text.is_empty() { none } else { text });
        return Ok(());
    }
    if !context.output.json {
        let _ = context.output.print_line(&text);
    }
    let mut failure =
        CommandFailure::failed("mcp_server", format!("{down} of {} MCP servers failed", states.len()))
            .hint("run its command by hand, or check its url and headers");
    failure.details = Some(Box::new(report));
    Err(failure)
}
