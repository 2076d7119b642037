//! Sends one question to an agent and gets its answer, even if the connection breaks in between.

mod live_turn;

use std::io::Write;
use std::time::{Duration, Instant};

use polyclaw_domain::command::parse;
use polyclaw_domain::config::suggest_word;
use polyclaw_domain::hex::encode_hex;
use polyclaw_provider::embedded;
use serde_json::{Value, json};

use crate::client::{ApiClient, CONNECTION_LOST_CODE, encode_segment};
use crate::failure::{CommandFailure, FailureExit};
use crate::ids::random_bytes;
use crate::model_selection::DEMO_MODEL_NOTICE;
use crate::output::CliOutput;
use live_turn::LiveTurn;

/// Longest single wait requested from the server.
const MAX_SERVER_WAIT_SECONDS: u64 = 25;
/// How long to wait for a daemon that went away to come back.
const DAEMON_RECONNECT_TIMEOUT: Duration = Duration::from_secs(15);

pub struct OneShotRequest<'a> {
    client: &'a ApiClient,
    pub session: String,
    agent: Option<String>,
    text: String,
    /// A person at the terminal can approve tool calls.
    pub can_ask: bool,
    /// Also deliver the answer to the session's chat platform.
    pub deliver: bool,
    /// Attachments in the API's format.
    pub attachments: Vec<Value>,
    /// Idempotency key, the same for every try.
    key: String,
}

pub struct OneShotAnswer {
    pub text: String,
    /// The server's response.
    pub value: Value,
}

impl OneShotAnswer {
    pub fn is_demo(&self) -> bool {
        self.value["reply"]["model"] == embedded::chat_model().to_string()
    }

    /// Returns why there is no answer, if the turn failed.
    pub fn failure(&self) -> Option<CommandFailure> {
        let reply = &self.value["reply"];
        let state = reply["state"].as_str()?;
        if state == "done" {
            return None;
        }
        let code = reply["error_code"].as_str().unwrap_or("turn_failed").to_owned();
        let output = Some(self.text.clone()).filter(|text| !text.is_empty());
        Some(CommandFailure::new(
            FailureExit::Failed,
            code,
            output.unwrap_or_else(|| format!("the turn was {state}")),
        ))
    }
}

impl<'a> OneShotRequest<'a> {
    pub fn new(client: &'a ApiClient, session: &str, agent: Option<&str>, text: String) -> Self {
        let key = format!("cli-{}", encode_hex(&random_bytes::<12>()));
        let (session, agent) = (session.to_owned(), agent.map(str::to_owned));
        Self { client, session, agent, text, can_ask: false, deliver: false, attachments: Vec::new(), key }
    }

    /// Waits for the whole answer.
    pub async fn wait_for_answer(&self, limit: Duration) -> Result<OneShotAnswer, CommandFailure> {
        self.wait_until_answered(limit, false).await
    }

    /// Waits for the answer. `known` is true if the daemon has already accepted the message.
    async fn wait_until_answered(
        &self,
        limit: Duration,
        known: bool,
    ) -> Result<OneShotAnswer, CommandFailure> {
        let deadline = Instant::now() + limit;
        // Set once the message may have been sent. Repeating is then safe, because the key identifies it.
        let mut sent = known;
        // Set once the daemon has confirmed that it accepted the message.
        let mut taken = known;
        let mut gone_since: Option<Instant> = None;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.timeout_failure(limit));
            }
            let path =
                format!("{}?wait={}", self.messages_path(), left.as_secs().clamp(1, MAX_SERVER_WAIT_SECONDS));
            match self.client.post(&path, &self.request_body()).await {
                Ok(value) if value["reply"].is_object() => return Ok(parse_answer(value)),
                Ok(_) => (sent, taken, gone_since) = (true, true, None),
                Err(failure)
                    if failure.exit == FailureExit::Unavailable
                        && (sent || failure.code == CONNECTION_LOST_CODE) =>
                {
                    sent = true;
                    let since = *gone_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > DAEMON_RECONNECT_TIMEOUT {
                        return Err(self.daemon_gone_failure(failure, taken));
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Prints the answer as it streams. If the stream breaks, waits for the rest.
    pub async fn stream_answer(
        &self,
        limit: Duration,
        output: CliOutput,
    ) -> Result<OneShotAnswer, CommandFailure> {
        let stream =
            self.client.open_stream(&format!("/sessions/{}/stream", encode_segment(&self.session))).await?;
        let accepted = self.client.post(&self.messages_path(), &self.request_body()).await;
        let accepted = accepted.map_err(|failure| match failure.code == CONNECTION_LOST_CODE {
            true => self.daemon_gone_failure(failure, false),
            false => failure,
        })?;
        let turn = accepted["turn_id"].as_str().unwrap_or_default().to_owned();
        let mut live = LiveTurn::new(self.client, turn, output);
        let ended = tokio::time::timeout(limit, live.follow_stream(stream)).await;
        ended.map_err(|_| self.timeout_failure(limit))?;
        let answer = self.wait_until_answered(limit, true).await?;
        if answer.failure().is_none() {
            live.print_rest(&answer.text);
        }
        Ok(answer)
    }

    fn messages_path(&self) -> String {
        format!("/sessions/{}/messages", encode_segment(&self.session))
    }

    fn request_body(&self) -> Value {
        let channel = if self.can_ask { "cli" } else { "api" };
        let mut body = json!({ "text": self.text, "idempotency_key": self.key, "channel": channel });
        if let Some(agent) = &self.agent {
            body["agent"] = json!(agent);
        }
        if self.deliver {
            body["deliver"] = json!(true);
        }
        if !self.attachments.is_empty() {
            body["attachments"] = json!(self.attachments);
        }
        body
    }

    /// Failure for a daemon that went away and did not come back. It warns against resending, which would ask twice.
    fn daemon_gone_failure(&self, failure: CommandFailure, taken: bool) -> CommandFailure {
        let became = match taken {
            true => "your message was accepted and is answered when the daemon runs again",
            false => "your message may have been accepted; if so, it is answered when the daemon runs again",
        };
        let message = format!("{}; {became}", failure.message);
        let hint = format!(
            "do not send it again: `polyclaw up`, then `polyclaw sessions show {}` shows the answer",
            self.session
        );
        CommandFailure { message, ..failure }.hint(hint)
    }

    fn timeout_failure(&self, limit: Duration) -> CommandFailure {
        let message = format!("no answer within {} s; the agent continues", limit.as_secs());
        CommandFailure::new(FailureExit::Unavailable, "timeout", message)
            .hint(format!("`polyclaw sessions tail {}` shows it", self.session))
    }
}

/// Runs a line as a chat command and returns the reply. Returns `None` for any other line, which is a message.
pub async fn run_chat_command(
    client: &ApiClient,
    session: &str,
    line: &str,
) -> Result<Option<String>, CommandFailure> {
    if parse(line).is_none() {
        return Ok(None);
    }
    let path = format!("/sessions/{}/commands", encode_segment(session));
    let answer = client.post(&path, &json!({ "text": line })).await?;
    Ok(Some(answer["text"].as_str().unwrap_or_default().to_owned()))
}

/// Tells readers on stderr that the demo model answered. Stdout is for the answer only.
pub fn warn_demo_answer() {
    let _ = writeln!(std::io::stderr(), "(This was {DEMO_MODEL_NOTICE}.)");
}

fn parse_answer(value: Value) -> OneShotAnswer {
    let text = value["reply"]["text"].as_str().unwrap_or_default().to_owned();
    OneShotAnswer { text, value }
}

/// Returns the main session of an agent. Without one, of the agent that answers on the `cli` channel.
pub async fn main_session(client: &ApiClient, agent: Option<&str>) -> Result<String, CommandFailure> {
    let answer = client.get("/agents").await?;
    let named = agent.unwrap_or_else(|| answer["bound"]["cli"].as_str().unwrap_or("main"));
    Ok(find_agent(&answer, named)?["main_session_key"].as_str().unwrap_or_default().to_owned())
}

/// Returns the ID of an agent given by ID or name.
pub async fn agent_id(client: &ApiClient, named: &str) -> Result<String, CommandFailure> {
    let answer = client.get("/agents").await?;
    Ok(find_agent(&answer, named)?["agent_id"].as_str().unwrap_or_default().to_owned())
}

/// Finds an agent by ID, else by name, else by display name.
fn find_agent<'a>(answer: &'a Value, named: &str) -> Result<&'a Value, CommandFailure> {
    let agents: Vec<&Value> = answer["agents"].as_array().into_iter().flatten().collect();
    let by = |name: fn(&Value) -> &Value| agents.iter().find(|agent| *name(agent) == *named).copied();
    let found = by(|agent| &agent["agent_id"]).or_else(|| by(|agent| &agent["name"]));
    found.or_else(|| by(|agent| &agent["appearance"]["name"])).ok_or_else(|| {
        let ids: Vec<&str> = agents.iter().filter_map(|agent| agent["agent_id"].as_str()).collect();
        let failure = CommandFailure::new(
            FailureExit::NotFound,
            "unknown_agent",
            format!("there is no agent {named:?}"),
        );
        failure.hint(suggest_word(named, &ids))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asked_a_daemon_that_went_away_is_told_not_to_ask_twice() {
        let client = ApiClient::for_url("http://127.0.0.1:1", None).unwrap();
        let ask = OneShotRequest::new(&client, "agent:main:main", None, "hi".to_owned());
        for (taken, became) in
            [(true, "your message was accepted"), (false, "your message may have been accepted")]
        {
            let failure = ask.daemon_gone_failure(
                CommandFailure::new(FailureExit::Unavailable, CONNECTION_LOST_CODE, "it broke"),
                taken,
            );
            assert_eq!(
                (failure.exit, failure.code.as_str()),
                (FailureExit::Unavailable, CONNECTION_LOST_CODE)
            );
            assert!(failure.message.starts_with("it broke; ") && failure.message.contains(became));
            assert!(failure.hint.unwrap().contains("polyclaw sessions show agent:main:main"));
        }
    }
}
