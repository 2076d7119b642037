//! `polyclaw acp`: agents in an editor.

use crate::acp;
use crate::cli::CommandContext;

/// Speak ACP on stdin and stdout: agents in an editor. Started by the editor.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw acp
  polyclaw acp --agent ops

In Zed's settings.json:
  \"agent_servers\": { \"Polyclaw\": { \"type\": \"custom\", \"command\": \"polyclaw\", \"args\": [\"acp\"] } }

If no daemon runs on this home, one is started and goes on running.")]
pub struct Args {
    /// Who answers in new conversations. The instance's default agent if left out.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    acp::serve(context.clone(), args.agent.clone()).await
}
