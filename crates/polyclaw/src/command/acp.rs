//! `polyclaw acp`: agents in an editor.

use crate::acp;
use crate::cli::CommandContext;

/// Speak ACP on stdin and stdout, so that an editor can use the agents. The editor starts this command.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw acp
  polyclaw acp --agent ops

In Zed's settings.json:
  \"agent_servers\": { \"Polyclaw\": { \"type\": \"custom\", \"command\": \"polyclaw\", \"args\": [\"acp\"] } }

If no daemon runs on this home, one is started and keeps running.")]
pub struct Args {
    /// Agent that answers in new conversations. Defaults to the instance's default agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    acp::serve(context.clone(), args.agent.clone()).await
}
