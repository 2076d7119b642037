//! `polyclaw tools`: lists the tools of agents and explains policy decisions.

use polyclaw_api::tools::{PolicyLayerView, ToolExplanationView, ToolList, ToolPolicyView};
use polyclaw_domain::tool::ToolConsent;

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::{cell, visible_line};

/// List the tools an agent may use, and explain which rule decides.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw tools
  polyclaw tools list --agent ops
  polyclaw tools explain shell --agent ops
  polyclaw tools explain http_fetch --session agent:main:webhook:ci:dm:build

The same function decides which tools a model sees and which may run; `explain` prints its decision.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<ToolsCommand>,
}

#[derive(clap::Subcommand)]
enum ToolsCommand {
    /// List every tool and whether an agent has it.
    #[command(after_help = "Examples:
  polyclaw tools list
  polyclaw tools list --agent ops")]
    List(ToolScopeArgs),
    /// Explain the decision of each policy layer on one tool, and the setting that would change it.
    #[command(after_help = "Examples:
  polyclaw tools explain shell --agent ops
  polyclaw tools explain http_fetch --session agent:main:webhook:ci:dm:build")]
    Explain {
        /// Name of the tool.
        tool: String,
        #[command(flatten)]
        place: ToolScopeArgs,
    },
}

#[derive(clap::Args, Default)]
struct ToolScopeArgs {
    /// Agent to check. Defaults to the session's agent, else to the default agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Session to check. Defaults to the agent's own session.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
}

impl ToolScopeArgs {
    fn scope_query(&self) -> String {
        let named = [("agent", &self.agent), ("session", &self.session)];
        let pairs = named.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let pairs: Vec<String> =
            pairs.map(|(name, value)| format!("{name}={}", encode_segment(value))).collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    match &args.verb {
        None => list_tools(&client, context, &ToolScopeArgs::default()).await,
        Some(ToolsCommand::List(place)) => list_tools(&client, context, place).await,
        Some(ToolsCommand::Explain { tool, place }) => {
            let body: ToolExplanationView = client
                .get_as(&format!("/tools/{}/explain{}", encode_segment(tool), place.scope_query()))
                .await?;
            Ok(context.output.print_value(&body, |output| {
                explanation_text(&body, |rows| {
                    output.format_table(&["LAYER", "DECISION", "RULE", "SET IN"], rows)
                })
            })?)
        }
    }
}

async fn list_tools(
    client: &ApiClient,
    context: &CommandContext,
    place: &ToolScopeArgs,
) -> anyhow::Result<()> {
    let body: ToolList = client.get_as(&format!("/tools{}", place.scope_query())).await?;
    let row = |one: &ToolPolicyView| {
        let allowed = if one.allowed { "yes" } else { "no" };
        let asks = if one.asks || one.tool.consent == ToolConsent::ByCall { "yes" } else { "" };
        vec![
            visible_line(&one.tool.name),
            allowed.to_owned(),
            asks.to_owned(),
            cell(&one.tool.risk),
            cell(&one.rule),
        ]
    };
    let rows: Vec<_> = body.tools.iter().map(row).collect();
    Ok(context.output.print_value(&body, |output| {
        output.format_table(&["TOOL", "ALLOWED", "APPROVAL", "RISK", "RULE"], &rows)
    })?)
}

fn explanation_text(body: &ToolExplanationView, table: impl Fn(&[Vec<String>]) -> String) -> String {
    let row = |layer: &PolicyLayerView| {
        let verdict = if layer.allows { "yes" } else { "NO" };
        let says = format!("{verdict}: {}", visible_line(&layer.reason));
        vec![cell(&layer.layer), says, visible_line(&layer.rule), cell(&layer.set_in)]
    };
    let rows: Vec<_> = body.layers.iter().map(row).collect();
    let decision = &body.decision;
    let verdict = match (decision.allowed, decision.asks) {
        (true, true) => "may use, with approval of each call,",
        (true, false) => "may use",
        (false, _) => "may not use",
    };
    let change = decision.change.as_ref().map(|line| format!("\nTo change it: {line}")).unwrap_or_default();
    format!(
        "{} {verdict} {}, decided by {}\n\n{}{change}",
        cell(&decision.agent_id),
        visible_line(&decision.tool.name),
        cell(&decision.rule),
        table(&rows)
    )
}
