//! Sends one question to an agent and gets its answer, even if the connection breaks in between.

mod live_turn;

use std::io::Write;
use std::time::{Duration, Instant};

use polyclaw_api::agents::{AgentList, AgentView};
use polyclaw_api::attachments::AttachmentBody;
use polyclaw_api::commands::{CommandBody, CommandReply};
use polyclaw_api::messages::{NewSessionMessage, SessionMessageReceipt, TurnReply, WaitQuery};
use polyclaw_domain::command::parse;
use polyclaw_domain::config::suggest_word;
use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::JobState;
use polyclaw_provider::embedded;
use serde_json::Value;

use crate::client::{ApiClient, CONNECTION_LOST_CODE, encode_segment, with_query};
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
    pub attachments: Vec<AttachmentBody>,
    /// Idempotency key, the same for every try.
    key: String,
}

pub struct OneShotAnswer {
    pub text: String,
    /// The reply of the turn. `None` for the reply of a chat command.
    reply: Option<TurnReply>,
    /// The server's response, for `--json`.
    pub value: Value,
}

impl OneShotAnswer {
    pub fn is_demo(&self) -> bool {
        let model = self.reply.as_ref().and_then(|reply| reply.model.as_ref());
        model.is_some_and(|model| *model == embedded::chat_model().to_string())
    }

    /// Whether the reply was cut off at the model's output limit.
    pub fn is_truncated(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.finish_reason.as_deref() == Some("length"))
    }

    /// Returns the reply of a chat command as an answer.
    pub fn from_command(text: String) -> Self {
        Self { text, reply: None, value: Value::Null }
    }

    fn from_receipt(receipt: SessionMessageReceipt) -> Self {
        let value = serde_json::to_value(&receipt).unwrap_or_default();
        let text = receipt.reply.as_ref().map(|reply| reply.text.clone()).unwrap_or_default();
        Self { text, reply: receipt.reply, value }
    }

    /// Returns why there is no answer, if the turn failed.
    pub fn failure(&self) -> Option<CommandFailure> {
        let reply = self.reply.as_ref().filter(|reply| reply.state != JobState::Done)?;
        let code = reply.error_code.clone().unwrap_or_else(|| "turn_failed".to_owned());
        let output = Some(self.text.clone()).filter(|text| !text.is_empty());
        Some(CommandFailure::new(
            FailureExit::Failed,
            code,
            output.unwrap_or_else(|| format!("the turn was {}", reply.state.as_str())),
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
        let (deadline, body) = (Instant::now() + limit, self.request_body()?);
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
            let wait = Duration::from_secs(left.as_secs().clamp(1, MAX_SERVER_WAIT_SECONDS));
            let query = WaitQuery { wait: Some(wait.as_secs_f64()) };
            let path = with_query(&self.messages_path(), &query);
            match self.client.post_as::<_, SessionMessageReceipt>(&path, &body).await {
                Ok(receipt) if receipt.reply.is_some() => return Ok(OneShotAnswer::from_receipt(receipt)),
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
        let accepted = self.client.post_as(&self.messages_path(), &self.request_body()?).await;
        let accepted: SessionMessageReceipt =
            accepted.map_err(|failure| match failure.code == CONNECTION_LOST_CODE {
                true => self.daemon_gone_failure(failure, false),
                false => failure,
            })?;
        let mut live = LiveTurn::new(self.client, accepted.turn_id, output);
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

    fn request_body(&self) -> Result<NewSessionMessage, CommandFailure> {
        Ok(NewSessionMessage {
            text: self.text.clone(),
            agent: parse_agent(self.agent.as_deref())?,
            idempotency_key: Some(self.key.clone()),
            attachments: self.attachments.clone(),
            channel: Some(if self.can_ask { "cli" } else { "api" }.to_owned()),
            deliver: self.deliver,
        })
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
    let answer: CommandReply = client.post_as(&path, &CommandBody { text: line.to_owned() }).await?;
    Ok(Some(answer.text))
}

/// Tells readers on stderr that the demo model answered. Stdout is for the answer only.
pub fn warn_demo_answer() {
    let _ = writeln!(std::io::stderr(), "(This was {DEMO_MODEL_NOTICE}.)");
}

/// Parses the ID of the agent that a message names.
pub fn parse_agent(agent: Option<&str>) -> Result<Option<AgentId>, CommandFailure> {
    agent.map(AgentId::parse).transpose().map_err(|error| CommandFailure::usage(error.to_string()))
}

/// Returns the main session of an agent. Without one, of the agent that answers on the `cli` channel.
pub async fn main_session(client: &ApiClient, agent: Option<&str>) -> Result<String, CommandFailure> {
    let list: AgentList = client.get_as("/agents").await?;
    let named = agent.unwrap_or(list.bound.cli.as_str());
    Ok(find_agent(&list.agents, named)?.main_session_key.to_string())
}

/// Returns the ID of an agent given by ID or name.
pub async fn agent_id(client: &ApiClient, named: &str) -> Result<String, CommandFailure> {
    let list: AgentList = client.get_as("/agents").await?;
    Ok(find_agent(&list.agents, named)?.spec.0.agent_id.to_string())
}

/// Finds an agent by ID, else by name, else by display name.
fn find_agent<'a>(agents: &'a [AgentView], named: &str) -> Result<&'a AgentView, CommandFailure> {
    let by = |name: fn(&AgentView) -> Option<&str>| agents.iter().find(|agent| name(agent) == Some(named));
    let found = by(|agent| Some(agent.spec.0.agent_id.as_str()));
    let found = found.or_else(|| by(|agent| Some(agent.spec.0.name.as_str())));
    found.or_else(|| by(|agent| agent.appearance.name.as_deref())).ok_or_else(|| {
        let ids: Vec<&str> = agents.iter().map(|agent| agent.spec.0.agent_id.as_str()).collect();
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
    fn lost_daemon_failure_says_whether_message_was_accepted() {
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
