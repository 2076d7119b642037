//! `sessions_send`: one session writes to another, and may wait for the answer.

use std::time::Duration;

use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::JobState;
use polyclaw_domain::message::MessageOrigin;
use polyclaw_domain::session::{Session, SessionStatus};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::jobs::TurnJob;
use polyclaw_store::{Tx, jobs, sessions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ToolCallResult, ToolInvocation};
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::ingress::{AcceptedMessage, InternalMessage, RelayInfo, RelayKind};
use crate::subagents::{is_descendant, requesters_of_turn};
use crate::toolbox::ToolRefusal;
use crate::turn_answer::TurnAnswer;

const MAX_WAIT_SECONDS: u32 = 300;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsSendArguments {
    /// Session key from sessions_list.
    session_key: String,
    message: String,
    /// Seconds to wait for the answer, at most 300. Without it the answer is not returned.
    wait_seconds: Option<u32>,
}

/// The sending turn, and the target session if it exists.
struct SendEndpoints {
    from: TurnJob,
    to: Option<Session>,
    is_own: bool,
    asked_by: Vec<String>,
}

pub(super) async fn send_to_session(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: SessionsSendArguments,
) -> ToolCallResult {
    let key = SessionKey::parse(&given.session_key).map_err(|error| ToolRefusal(error.to_string()))?;
    let ends = load_endpoints(engine, asked, &key).await?;
    if let Err(error) = check_may_send(engine, &ends, &key) {
        let (sender, trace) = (&asked.scope.agent, Some(ends.from.trace));
        let origin = MessageOrigin::Agent(sender.clone());
        engine.record_refusal((&asked.scope.session, sender, trace), &origin, &error).await;
        return Err(error.into());
    }
    let (from, hop, trace) = (asked.scope.session.clone(), ends.from.hop + 1, ends.from.trace.clone());
    let timeout = given.wait_seconds.filter(|seconds| *seconds > 0).map(|most| most.min(MAX_WAIT_SECONDS));
    let waits = match timeout {
        Some(_) => Some(engine.begin_wait((&from, asked.turn), std::slice::from_ref(&key)).await?),
        None => None,
    };
    let relayed = RelayInfo { from, hop, trace, kind: RelayKind::Send };
    let idempotency_key = format!("send:{}-{}", asked.turn, asked.call.id);
    let meta = Some(json!({ "requested_by": ends.asked_by }));
    let how =
        InternalMessage { meta, ..InternalMessage::from_session(ends.from.agent, relayed, idempotency_key) };
    let accepted = engine.inject_message(&key, &given.message, how).await?;
    let done = match timeout {
        None => Ok(result_json(&accepted, "accepted", json!({}))),
        Some(seconds) => wait_for_reply(engine, asked, &accepted, seconds).await,
    };
    drop(waits);
    done
}

async fn load_endpoints(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    key: &SessionKey,
) -> Result<SendEndpoints> {
    let (own, turn, wanted) = (asked.scope.session.clone(), asked.turn.clone(), key.clone());
    let read = move |tx: &mut Tx<'_>| {
        let (from, to) = (jobs::get(tx, &turn)?, sessions::get(tx, &wanted)?);
        // A session that writes to itself is rejected later, with other loops.
        let is_own = own == wanted || is_descendant(tx, &own, &wanted)?;
        let asked_by = requesters_of_turn(tx, &own, &turn)?;
        Ok(from.map(|from| SendEndpoints { from, to, is_own, asked_by }))
    };
    engine.db().read(read).await?.ok_or_else(|| Error::UnknownTurn(asked.turn.to_string()))
}

/// Checks that a session may write to another: to its descendants always, to others only if the config allows both
/// agents. Callers without permission do not learn whether the session exists.
fn check_may_send(engine: &Engine, ends: &SendEndpoints, key: &SessionKey) -> Result<()> {
    if !ends.is_own {
        let to = ends.to.as_ref().map(|session| session.active_agent.clone()).or_else(|| key.agent_id());
        check_agent_to_agent(
            engine,
            &ends.from.agent,
            &to.ok_or_else(|| Error::UnknownSession(key.to_string()))?,
        )?;
    }
    match &ends.to {
        None => Err(Error::UnknownSession(key.to_string())),
        Some(session) if session.status == SessionStatus::Archived => {
            Err(Error::InvalidState(format!("session {key} is archived: start another one")))
        }
        Some(_) => Ok(()),
    }
}

pub(super) fn check_agent_to_agent(engine: &Engine, from: &AgentId, to: &AgentId) -> Result<()> {
    engine.settings().agent_to_agent.check_agents(from, to).map_err(|missing| Error::SendDenied {
        from: from.clone(),
        to: to.clone(),
        missing,
    })
}

async fn wait_for_reply(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    accepted: &AcceptedMessage,
    seconds: u32,
) -> ToolCallResult {
    let pause = engine.pause_turn(asked.turn);
    let limit = Duration::from_secs(seconds.into());
    let answer = engine.wait_for_answer(&accepted.session_key, &accepted.turn_id, limit).await;
    drop(pause);
    Ok(match answer? {
        Some(answer) => result_json(accepted, answer_status(&answer), reply_json(&answer)),
        None => result_json(accepted, "timeout", json!({})),
    })
}

fn answer_status(answer: &TurnAnswer) -> &'static str {
    match answer.state {
        JobState::Done => "replied",
        JobState::Cancelled => "cancelled",
        _ => "error",
    }
}

fn reply_json(answer: &TurnAnswer) -> Value {
    json!({ "reply": answer.text, "error_code": answer.error_code })
}

fn result_json(accepted: &AcceptedMessage, status: &str, mut more: Value) -> String {
    more["status"] = status.into();
    more["session_key"] = json!(accepted.session_key);
    more["turn_id"] = json!(accepted.turn_id);
    // The message waits behind a running turn, or until a person writes.
    more["waiting"] = json!(accepted.waiting);
    more.to_string()
}
