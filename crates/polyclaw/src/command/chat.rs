//! `polyclaw chat`: chat in the terminal.

use std::io::{IsTerminal, Write};

use polyclaw_api::agents::AgentList;
use polyclaw_api::models::ModelList;

use crate::chat::{TerminalChat, plain};
use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::command::agents;
use crate::daemon_start;
use crate::failure::{CommandFailure, FailureExit};
use crate::one_shot::{agent_id, main_session};

/// Chat with an agent in the terminal.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw chat
  polyclaw chat --agent ops
  polyclaw chat --session agent:main:holiday
  echo \"What is new?\" | polyclaw chat

Keys: Enter sends, Alt+Enter or Ctrl+J starts a new line, / shows commands, Up and Down browse the input history, PgUp
and PgDn scroll, Esc stops the running turn, y and n answer an approval request (without Enter), Ctrl+C twice quits.
If no daemon runs on this home, one is started and keeps running.")]
pub struct Args {
    /// Agent to talk to. Defaults to the instance's default agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Session to continue. Defaults to the agent's main session.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = connect_or_start(context).await?;
    let agent = match &args.agent {
        Some(named) => Some(agent_id(&client, named).await?),
        None => None,
    };
    let session = match &args.session {
        Some(session) => session.clone(),
        None => main_session(&client, agent.as_deref()).await?,
    };
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return plain::run_plain_chat(&client, context, &session, agent.as_deref()).await;
    }
    let models: ModelList = client.get_as("/models").await?;
    let model = models.default_model.map(|model| model.to_string()).unwrap_or_default();
    let faces = agents::display_names(&client.get_as("/agents").await?);
    TerminalChat { client, home: context.home.clone(), session, agent, model, faces }.run().await
}

/// Connects to the running daemon, starting one on this home if none runs. A daemon that is named by URL is never
/// started.
pub async fn connect_or_start(context: &CommandContext) -> Result<ApiClient, CommandFailure> {
    let client = ApiClient::new(context)?;
    match client.get_as::<AgentList>("/agents").await {
        Ok(_) => return Ok(client),
        Err(failure) if failure.exit != FailureExit::Unavailable || context.global.url().is_some() => {
            return Err(failure);
        }
        Err(_) => {}
    }
    let log = context.home.log_file();
    let _ =
        writeln!(std::io::stderr(), "No daemon runs on this home: starting one (log: {}).", log.display());
    daemon_start::start_daemon(context).await?;
    ApiClient::new(context)
}
