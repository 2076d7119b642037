//! `polyclaw agent`: asks one question and prints the answer on stdout.

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use polyclaw_api::runs::RunList;
use polyclaw_domain::command::parse;
use polyclaw_domain::run::RunStatus;
use serde_json::json;

use crate::attachment;
use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::CommandFailure;
use crate::one_shot::{
    OneShotAnswer, OneShotRequest, agent_id, main_session, run_chat_command, warn_demo_answer,
};

/// Ask an agent one question and print its answer on stdout.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw agent \"What is on my list today?\"
  polyclaw agent --agent ops --message \"Is the site up?\" --json
  polyclaw agent --session agent:main:telegram:dm:123456 --message \"Say good morning\" --deliver
  git diff | polyclaw agent --message - --session agent:main:review
  polyclaw agent --message \"What is wrong here?\" --attach screen.png --attach app.log
  polyclaw agent --message /status

A one-line message that is a chat command (`/help` lists them) is answered by the instance without a model. Text from
stdin is never a command.
The exit code is 1 if the turn failed; stderr shows the reason.")]
pub struct Args {
    /// The message. `-` reads it from stdin.
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// The message, without `--message`.
    #[arg(value_name = "MESSAGE", conflicts_with = "message", required_unless_present = "message")]
    text: Option<String>,
    /// Agent to ask. Defaults to the instance's default agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Session to continue. Defaults to the agent's main session.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Text file or image (PNG, JPEG, GIF, WebP) to attach. Repeatable.
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Also send the answer to the chat that the session belongs to: Telegram, Slack or another channel.
    #[arg(long)]
    deliver: bool,
    /// Seconds to wait for the answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    timeout: u64,
    /// Let tools that need approval wait for `polyclaw approvals`. Without this flag, and without a terminal to ask
    /// on, such tools are unavailable to the agent.
    #[arg(long)]
    wait_for_approval: bool,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    let given = args.message.as_ref().or(args.text.as_ref()).map(String::as_str).unwrap_or_default();
    let text = if given == "-" { read_stdin()? } else { given.to_owned() };
    let agent = match &args.agent {
        Some(named) => Some(agent_id(&client, named).await?),
        None => None,
    };
    let session = match &args.session {
        Some(session) => session.clone(),
        None => main_session(&client, agent.as_deref()).await?,
    };
    if is_command(given) {
        if args.deliver || !args.attach.is_empty() {
            let why = "a chat command takes no attachments, and its reply is only printed: omit --deliver and \
                --attach";
            return Err(CommandFailure::usage(why).into());
        }
        let reply = run_chat_command(&client, &session, &text).await?.unwrap_or_default();
        return Ok(context.output.print_value(&json!({ "text": reply }), |_| reply.clone())?);
    }
    let mut ask = OneShotRequest::new(&client, &session, agent.as_deref(), text);
    ask.deliver = args.deliver;
    ask.attachments =
        args.attach.iter().map(|path| attachment::read_attachment(path)).collect::<Result<_, _>>()?;
    let limit = Duration::from_secs(args.timeout);
    let live = !context.output.json && std::io::stdout().is_terminal();
    ask.can_ask = args.wait_for_approval || (live && std::io::stdin().is_terminal());
    let answer = if live {
        ask.stream_answer(limit, context.output).await?
    } else {
        ask.wait_for_answer(limit).await?
    };
    let is_silent = answer.failure().is_none() && answer.text.trim().is_empty();
    print_answer(&answer, context, live)?;
    if is_silent {
        warn_no_reply(&client, &session).await;
    }
    Ok(())
}

/// Returns whether the message is a chat command: one line, given as an argument. Text from a file or another program
/// is material, whatever it starts with.
fn is_command(message: &str) -> bool {
    !message.trim().contains('\n') && parse(message).is_some()
}

/// Explains an empty answer on stderr: the agent waits for sub-agents, or has nothing to say. Stdout is for the
/// answer only.
async fn warn_no_reply(client: &ApiClient, session: &str) {
    let runs: Result<RunList, CommandFailure> =
        client.get_as(&format!("/runs?owner={}&limit=100", encode_segment(session))).await;
    let waits = runs.is_ok_and(|list| list.runs.iter().any(|run| run.status == RunStatus::Running));
    let words = if waits {
        format!(
            "The agent is waiting for work that it delegated, and continues when it is done: `polyclaw sessions \
             tail {session}` shows it."
        )
    } else {
        "The agent returned no text.".to_owned()
    };
    let _ = writeln!(std::io::stderr(), "({words})");
}

fn print_answer(answer: &OneShotAnswer, context: &CommandContext, live: bool) -> anyhow::Result<()> {
    if let Some(failure) = answer.failure() {
        return Err(failure.into());
    }
    if answer.is_truncated() {
        let _ = writeln!(std::io::stderr(), "\n({})", crate::chat::TRUNCATED_NOTE);
    }
    if live {
        context.output.print_piece("\n")?;
    } else {
        context.output.print_value(&answer.value, |_| answer.text.clone())?;
    }
    if answer.is_demo() {
        warn_demo_answer();
    }
    Ok(())
}

fn read_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    if text.trim().is_empty() {
        return Err(CommandFailure::usage("stdin is empty").into());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_line_with_slash_is_a_command() {
        assert!(is_command("/status") && is_command(" /model openai/x\n"));
        // `-` means stdin, whatever it contains.
        for message in ["-", "status", "/stop\nis what I typed. Why?", "/new\r\n/help"] {
            assert!(!is_command(message), "{message}");
        }
    }
}
