//! Tools that send messages to agents and read conversations.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::api::{ApiMethod, ApiRefusal, CallDelivery, InstanceApi, encode_segment};
use super::tools::result_text;

const MAX_LISTED_SESSIONS: usize = 200;
const MAX_LISTED_MESSAGES: usize = 200;
/// The seconds of a single wait, short enough that no proxy closes the connection.
const MAX_SINGLE_WAIT_SECONDS: u64 = 25;
/// How long to retry while the instance is unavailable.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const RECONNECT_RETRY_AFTER: Duration = Duration::from_millis(200);

type TalkToolResult = Result<String, ApiRefusal>;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskAgentArguments {
    /// The message to the agent.
    message: String,
    /// The id of the agent. Defaults to the instance's default agent.
    agent: Option<String>,
    /// The session key of the conversation to continue. Defaults to the agent's conversation with MCP clients.
    session: Option<String>,
    /// How many seconds to wait for the answer. Default 300, at most 1800. The agent continues after a timeout.
    timeout_seconds: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendToAgentArguments {
    /// The message to the agent.
    message: String,
    /// The id of the agent. Defaults to the instance's default agent.
    agent: Option<String>,
    /// The session key of the conversation to continue. Defaults to the agent's conversation with MCP clients.
    session: Option<String>,
    /// An idempotency key. Messages with the same key in the same conversation are accepted only once.
    idempotency_key: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitForTurnArguments {
    /// The `turn_id` that `send_message` returned.
    turn_id: String,
    /// How many seconds to wait. Default 300, at most 1800. The agent continues after a timeout.
    timeout_seconds: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessionsArguments {
    /// The number of conversations, newest first. Default 50, at most 200.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadHistoryArguments {
    /// The session key of the conversation.
    session: String,
    /// The number of newest messages. Default 50, at most 200.
    limit: Option<usize>,
}

pub async fn ask_agent<A: InstanceApi>(api: &A, given: AskAgentArguments) -> TalkToolResult {
    let message = SendToAgentArguments {
        message: given.message,
        agent: given.agent,
        session: given.session,
        idempotency_key: None,
    };
    let receipt = post_message(api, message).await?;
    let turn_id = receipt["turn_id"].as_str().unwrap_or_default().to_owned();
    wait_for_turn(api, WaitForTurnArguments { turn_id, timeout_seconds: given.timeout_seconds }).await
}

pub async fn send_message<A: InstanceApi>(api: &A, given: SendToAgentArguments) -> TalkToolResult {
    let receipt = post_message(api, given).await?;
    Ok(result_text(&json!({
        "session": receipt["session_key"], "turn_id": receipt["turn_id"], "duplicate": receipt["duplicate"],
    })))
}

async fn post_message<A: InstanceApi>(api: &A, given: SendToAgentArguments) -> Result<Value, ApiRefusal> {
    let agents = api.call_instance(ApiMethod::Get, "/agents", None).await?;
    let session = given.session.unwrap_or_else(|| default_session(&agents, given.agent.as_deref()));
    let key = given.idempotency_key.unwrap_or_else(|| format!("mcp-{}", api.new_nonce()));
    let mut body = json!({ "text": given.message, "channel": "api", "idempotency_key": key });
    if let Some(agent) = given.agent {
        body["agent"] = agent.into();
    }
    let path = format!("/sessions/{}/messages", encode_segment(&session));
    retry_while_unavailable(api, (ApiMethod::Post, &path, Some(&body)), CallDelivery::No).await
}

/// Returns the session of an agent for MCP clients that name none.
fn default_session(agents: &Value, agent: Option<&str>) -> String {
    let mut all = agents["agents"].as_array().into_iter().flatten();
    let marked = all.find(|agent| agent["default"] == true).and_then(|agent| agent["agent_id"].as_str());
    format!("agent:{}:mcp", agent.or(marked).unwrap_or("main"))
}

pub async fn wait_for_turn<A: InstanceApi>(api: &A, given: WaitForTurnArguments) -> TalkToolResult {
    let seconds = given.timeout_seconds.unwrap_or(300).clamp(1, 1_800);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).as_secs();
        let path =
            format!("/turns/{}?wait={}", encode_segment(&given.turn_id), left.min(MAX_SINGLE_WAIT_SECONDS));
        let turn = retry_while_unavailable(api, (ApiMethod::Get, &path, None), CallDelivery::Yes).await?;
        if turn["reply"].is_object() {
            return reply_text(&turn["reply"]);
        }
        if Instant::now() >= deadline {
            return Err(wait_timed_out(seconds, &given.turn_id));
        }
    }
}

/// Repeats an idempotent call while the instance is unavailable. An instance that never received a call is not waited
/// for, so that the caller learns immediately if it is not running.
async fn retry_while_unavailable<A: InstanceApi>(
    api: &A,
    (verb, path, body): (ApiMethod, &str, Option<&Value>),
    mut heard: CallDelivery,
) -> Result<Value, ApiRefusal> {
    let mut gone_since: Option<Instant> = None;
    loop {
        let refusal = match api.call_instance(verb, path, body).await {
            Ok(value) => return Ok(value),
            Err(refusal) => refusal,
        };
        if heard == CallDelivery::No {
            heard = refusal.delivery;
        }
        let gone = gone_since.get_or_insert_with(Instant::now).elapsed();
        if refusal.delivery == CallDelivery::Yes || heard == CallDelivery::No || gone > RECONNECT_TIMEOUT {
            return Err(refusal);
        }
        tokio::time::sleep(RECONNECT_RETRY_AFTER).await;
    }
}

fn reply_text(reply: &Value) -> TalkToolResult {
    let (text, state) = (reply["text"].as_str().unwrap_or_default(), reply["state"].as_str());
    if state == Some("done") {
        return Ok(text.to_owned());
    }
    let output = Some(text.to_owned()).filter(|text| !text.is_empty());
    Err(ApiRefusal {
        code: reply["error_code"].as_str().unwrap_or("turn_failed").to_owned(),
        message: output.unwrap_or_else(|| format!("the turn was {}", state.unwrap_or("stopped"))),
        hint: None,
        delivery: CallDelivery::Yes,
    })
}

fn wait_timed_out(seconds: u64, turn: &str) -> ApiRefusal {
    ApiRefusal {
        code: "timeout".to_owned(),
        message: format!("no answer within {seconds} s; the agent continues"),
        hint: Some(format!("call wait_for_turn with turn_id {turn} to keep waiting")),
        delivery: CallDelivery::Yes,
    }
}

pub async fn list_agents<A: InstanceApi>(api: &A) -> TalkToolResult {
    let answer = api.call_instance(ApiMethod::Get, "/agents", None).await?;
    let view = |agent: &Value| {
        json!({
            "agent_id": agent["agent_id"], "name": agent["appearance"]["name"],
            "description": agent["description"], "default": agent["default"],
        })
    };
    Ok(result_text(&answer["agents"].as_array().into_iter().flatten().map(view).collect()))
}

pub async fn list_sessions<A: InstanceApi>(api: &A, given: ListSessionsArguments) -> TalkToolResult {
    let limit = given.limit.unwrap_or(50).clamp(1, MAX_LISTED_SESSIONS);
    let answer = api.call_instance(ApiMethod::Get, &format!("/sessions?limit={limit}"), None).await?;
    let view = |session: &Value| {
        json!({
            "session_key": session["session_key"], "agent_id": session["active_agent_id"],
            "title": session["title"], "updated_at": session["updated_at"],
        })
    };
    Ok(result_text(&answer["sessions"].as_array().into_iter().flatten().map(view).collect()))
}

/// Returns the newest messages. Pages go forward, so earlier ones are dropped on the way.
pub async fn read_history<A: InstanceApi>(api: &A, given: ReadHistoryArguments) -> TalkToolResult {
    let limit = given.limit.unwrap_or(50).clamp(1, MAX_LISTED_MESSAGES);
    let path = format!("/sessions/{}/transcript", encode_segment(&given.session));
    let (mut kept, mut after): (Vec<Value>, i64) = (Vec::new(), 0);
    loop {
        let page =
            api.call_instance(ApiMethod::Get, &format!("{path}?after={after}&limit=1000"), None).await?;
        let view = |message: &Value| {
            json!({
                "role": message["role"], "origin": message["origin"], "text": message["text"],
                "created_at": message["created_at"],
            })
        };
        kept.extend(page["messages"].as_array().into_iter().flatten().map(view));
        kept.drain(..kept.len().saturating_sub(limit));
        match page["next_after"].as_i64() {
            Some(next) if next > after => after = next,
            _ => return Ok(result_text(&Value::Array(kept))),
        }
    }
}
