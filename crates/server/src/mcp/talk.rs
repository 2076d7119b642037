//! Tools that speak to agents and read what was said.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::api::{Api, Heard, Refusal, Verb, segment};
use super::tools::shown;

const MOST_SESSIONS: usize = 200;
const MOST_MESSAGES: usize = 200;
/// Seconds of a single wait: whoever is in between must not hang up.
const ONE_WAIT: u64 = 25;
/// How long an instance that went away may take to come back.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

type Done = Result<String, Refusal>;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskAgent {
    /// What to say.
    message: String,
    /// Who is asked, by id. The instance's default agent if left out.
    agent: Option<String>,
    /// The conversation to go on with, by its key. The agent's conversation with MCP clients if left out.
    session: Option<String>,
    /// How long to wait for the answer, up to 1800. 300 if left out; the agent goes on in any case.
    timeout_seconds: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessage {
    /// What to say.
    message: String,
    /// Who is asked, by id. The instance's default agent if left out.
    agent: Option<String>,
    /// The conversation to go on with, by its key. The agent's conversation with MCP clients if left out.
    session: Option<String>,
    /// The same key in the same conversation is the same message: sent twice, it is there once.
    idempotency_key: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitForTurn {
    /// The `turn_id` that `send_message` returned.
    turn_id: String,
    /// How long to wait, up to 1800. 300 if left out; the agent goes on in any case.
    timeout_seconds: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessions {
    /// How many at most, up to 200, the newest first. 50 if left out.
    limit: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadHistory {
    /// The conversation, by its key.
    session: String,
    /// How many of the newest messages, up to 200. 50 if left out.
    limit: Option<usize>,
}

pub async fn ask<A: Api>(api: &A, given: AskAgent) -> Done {
    let message = SendMessage {
        message: given.message,
        agent: given.agent,
        session: given.session,
        idempotency_key: None,
    };
    let receipt = accept(api, message).await?;
    let turn_id = receipt["turn_id"].as_str().unwrap_or_default().to_owned();
    wait(api, WaitForTurn { turn_id, timeout_seconds: given.timeout_seconds }).await
}

pub async fn send<A: Api>(api: &A, given: SendMessage) -> Done {
    let receipt = accept(api, given).await?;
    Ok(shown(&json!({
        "session": receipt["session_key"], "turn_id": receipt["turn_id"], "duplicate": receipt["duplicate"],
    })))
}

async fn accept<A: Api>(api: &A, given: SendMessage) -> Result<Value, Refusal> {
    let agents = api.call(Verb::Get, "/agents", None).await?;
    let session = given.session.unwrap_or_else(|| own_session(&agents, given.agent.as_deref()));
    let key = given.idempotency_key.unwrap_or_else(|| format!("mcp-{}", api.fresh()));
    let mut body = json!({ "text": given.message, "channel": "api", "idempotency_key": key });
    if let Some(agent) = given.agent {
        body["agent"] = agent.into();
    }
    let path = format!("/sessions/{}/messages", segment(&session));
    insist(api, (Verb::Post, &path, Some(&body)), Heard::No).await
}

/// The conversation of an agent with those who name none.
fn own_session(agents: &Value, agent: Option<&str>) -> String {
    let mut all = agents["agents"].as_array().into_iter().flatten();
    let marked = all.find(|agent| agent["default"] == true).and_then(|agent| agent["agent_id"].as_str());
    format!("agent:{}:mcp", agent.or(marked).unwrap_or("main"))
}

pub async fn wait<A: Api>(api: &A, given: WaitForTurn) -> Done {
    let seconds = given.timeout_seconds.unwrap_or(300).clamp(1, 1_800);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).as_secs();
        let path = format!("/turns/{}?wait={}", segment(&given.turn_id), left.min(ONE_WAIT));
        let turn = insist(api, (Verb::Get, &path, None), Heard::Yes).await?;
        if turn["reply"].is_object() {
            return answer(&turn["reply"]);
        }
        if Instant::now() >= deadline {
            return Err(too_late(seconds, &given.turn_id));
        }
    }
}

/// A call that may be made twice, made again while the instance is away. One that it never heard of is not: whoever
/// starts nothing is told at once.
async fn insist<A: Api>(
    api: &A,
    (verb, path, body): (Verb, &str, Option<&Value>),
    mut heard: Heard,
) -> Result<Value, Refusal> {
    let mut gone_since: Option<Instant> = None;
    loop {
        let refusal = match api.call(verb, path, body).await {
            Ok(value) => return Ok(value),
            Err(refusal) => refusal,
        };
        if heard == Heard::No {
            heard = refusal.heard;
        }
        let gone = gone_since.get_or_insert_with(Instant::now).elapsed();
        if refusal.heard == Heard::Yes || heard == Heard::No || gone > PATIENCE {
            return Err(refusal);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn answer(reply: &Value) -> Done {
    let (text, state) = (reply["text"].as_str().unwrap_or_default(), reply["state"].as_str());
    if state == Some("done") {
        return Ok(text.to_owned());
    }
    let told = Some(text.to_owned()).filter(|text| !text.is_empty());
    Err(Refusal {
        code: reply["error_code"].as_str().unwrap_or("turn_failed").to_owned(),
        message: told.unwrap_or_else(|| format!("the turn was {}", state.unwrap_or("stopped"))),
        hint: None,
        heard: Heard::Yes,
    })
}

fn too_late(seconds: u64, turn: &str) -> Refusal {
    Refusal {
        code: "timeout".to_owned(),
        message: format!("no answer within {seconds} s; the agent goes on"),
        hint: Some(format!("wait_for_turn with turn_id {turn} waits on")),
        heard: Heard::Yes,
    }
}

pub async fn agents<A: Api>(api: &A) -> Done {
    let answer = api.call(Verb::Get, "/agents", None).await?;
    let view = |agent: &Value| {
        json!({
            "agent_id": agent["agent_id"], "name": agent["shown"]["name"],
            "description": agent["description"], "default": agent["default"],
        })
    };
    Ok(shown(&answer["agents"].as_array().into_iter().flatten().map(view).collect()))
}

pub async fn sessions<A: Api>(api: &A, given: ListSessions) -> Done {
    let limit = given.limit.unwrap_or(50).clamp(1, MOST_SESSIONS);
    let answer = api.call(Verb::Get, &format!("/sessions?limit={limit}"), None).await?;
    let view = |session: &Value| {
        json!({
            "session_key": session["session_key"], "agent_id": session["active_agent_id"],
            "title": session["title"], "updated_at": session["updated_at"],
        })
    };
    Ok(shown(&answer["sessions"].as_array().into_iter().flatten().map(view).collect()))
}

/// The newest messages. Pages go forward, so only the last of them is kept.
pub async fn history<A: Api>(api: &A, given: ReadHistory) -> Done {
    let limit = given.limit.unwrap_or(50).clamp(1, MOST_MESSAGES);
    let path = format!("/sessions/{}/transcript", segment(&given.session));
    let (mut kept, mut after): (Vec<Value>, i64) = (Vec::new(), 0);
    loop {
        let page = api.call(Verb::Get, &format!("{path}?after={after}&limit=1000"), None).await?;
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
            _ => return Ok(shown(&Value::Array(kept))),
        }
    }
}
