//! The chat without a terminal: one input line, one answer.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::failure::CommandFailure;
use crate::one_shot::{OneShotAnswer, OneShotRequest, run_chat_command, warn_demo_answer};
use crate::output;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(1800);

pub async fn run_plain_chat(
    client: &ApiClient,
    context: &CommandContext,
    session: &str,
    agent: Option<&str>,
) -> anyhow::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let (mut failed, mut is_notified) = (None, false);
    while let Some(line) = lines.next_line().await? {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if matches!(line, "/quit" | "/exit") {
            break;
        }
        match answer_line(client, session, agent, line).await {
            Ok(answer) => {
                context.output.print_value(&json!({ "text": answer.text }), |_| answer.text.clone())?;
                if answer.is_demo() && !std::mem::replace(&mut is_notified, true) {
                    warn_demo_answer();
                }
            }
            Err(failure) => {
                output::report_failure(&failure, context.output.json);
                failed = Some(failure);
            }
        }
    }
    match failed {
        Some(failure) => {
            Err(CommandFailure { message: "some messages were not answered".to_owned(), ..failure }.into())
        }
        None => Ok(()),
    }
}

async fn answer_line(
    client: &ApiClient,
    session: &str,
    agent: Option<&str>,
    line: &str,
) -> Result<OneShotAnswer, CommandFailure> {
    if let Some(text) = run_chat_command(client, session, line).await? {
        return Ok(OneShotAnswer::from_command(text));
    }
    let answer =
        OneShotRequest::new(client, session, agent, line.to_owned()).wait_for_answer(ANSWER_TIMEOUT).await?;
    answer.failure().map_or(Ok(answer), Err)
}
