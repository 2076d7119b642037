//! The chat without a terminal: a line in, an answer out.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::ask::{Answer, Ask, command, tell_of_demo};
use crate::cli::Context;
use crate::client::Client;
use crate::failure::Failure;
use crate::output;

const LIMIT: Duration = Duration::from_secs(1800);

pub async fn run(
    client: &Client,
    context: &Context,
    session: &str,
    agent: Option<&str>,
) -> anyhow::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let (mut failed, mut told) = (None, false);
    while let Some(line) = lines.next_line().await? {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if matches!(line, "/quit" | "/exit") {
            break;
        }
        match answer(client, session, agent, line).await {
            Ok(answer) => {
                context.output.say(&json!({ "text": answer.text }), |_| answer.text.clone())?;
                if answer.is_demo() && !std::mem::replace(&mut told, true) {
                    tell_of_demo();
                }
            }
            Err(failure) => {
                output::report(&failure, context.output.json);
                failed = Some(failure);
            }
        }
    }
    match failed {
        Some(failure) => Err(Failure { message: "not every line was answered".to_owned(), ..failure }.into()),
        None => Ok(()),
    }
}

async fn answer(client: &Client, session: &str, agent: Option<&str>, line: &str) -> Result<Answer, Failure> {
    if let Some(text) = command(client, session, line).await? {
        return Ok(Answer { text, value: Value::Null });
    }
    let answer = Ask::new(client, session, agent, line.to_owned()).wait(LIMIT).await?;
    answer.failure().map_or(Ok(answer), Err)
}
