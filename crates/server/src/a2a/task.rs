//! Tasks, built from stored turns. Nothing else is stored, so a task is the same after a crash.

use std::time::Duration;

use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::job::JobState;
use polyclaw_domain::message::{MessageOrigin, MessageRole};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::Tx;
use polyclaw_store::jobs::{self, TurnJob};
use polyclaw_store::messages::{self, SessionMessage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::rpc::{RpcCall, RpcError};
use crate::error::Error;
use crate::state::AppState;

/// The part of a session key that marks A2A sessions.
pub const A2A_CHANNEL: &str = "a2a";
/// The only artifact of a task.
pub const REPLY_ARTIFACT: &str = "reply";
/// How long a stopped turn may take to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct A2aTaskParams {
    id: String,
    history_length: Option<usize>,
}

pub async fn get_task(app: &AppState, agent: &AgentId, call: &RpcCall) -> Result<Value, RpcError> {
    let which: A2aTaskParams = call.parse_params()?;
    load_task(app, agent, &TurnId::new(which.id), which.history_length).await
}

pub async fn cancel_task(app: &AppState, agent: &AgentId, call: &RpcCall) -> Result<Value, RpcError> {
    let which: A2aTaskParams = call.parse_params()?;
    let job = find_turn(app, agent, &which.id).await?;
    if is_task_over(job.state) {
        return Err(RpcError::not_cancelable());
    }
    let turn = TurnId::new(which.id);
    app.engine.stop_turn(&turn).await?;
    app.engine.wait_for_answer(&job.session, &turn, CANCEL_TIMEOUT).await?;
    load_task(app, agent, &turn, which.history_length).await
}

/// Finds the turn that answers for a task of this agent.
pub async fn find_turn(app: &AppState, agent: &AgentId, id: &str) -> Result<TurnJob, RpcError> {
    let wanted = TurnId::new(id);
    let read = move |tx: &mut Tx<'_>| jobs::find_answering(tx, &wanted);
    let found = app.engine.db().read(read).await.map_err(Error::from)?;
    let own = |job: &TurnJob| {
        job.session.agent_id().as_ref() == Some(agent) && context_of_session(&job.session).is_some()
    };
    found.filter(own).ok_or_else(|| RpcError::unknown_task(id))
}

/// Returns the context in a session key, if the session is an A2A session.
pub fn context_of_session(session: &SessionKey) -> Option<String> {
    match session.parts().as_slice() {
        [_, _, channel, _, context] if channel == A2A_CHANNEL => Some(context.clone()),
        _ => None,
    }
}

/// Whether the task has ended. A steered turn has ended, but its task continues.
pub fn is_task_over(state: JobState) -> bool {
    state.is_terminal() && state != JobState::Steered
}

pub fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "submitted",
        JobState::Running | JobState::Steered => "working",
        JobState::Done => "completed",
        JobState::Failed => "failed",
        JobState::Cancelled => "canceled",
    }
}

pub fn status_json(state: JobState, at: Millis) -> Value {
    json!({ "state": state_name(state), "timestamp": at })
}

pub async fn load_task(
    app: &AppState,
    agent: &AgentId,
    turn: &TurnId,
    most: Option<usize>,
) -> Result<Value, RpcError> {
    let job = find_turn(app, agent, turn.as_str()).await?;
    let (asked, by) = (turn.clone(), job.turn.clone());
    let read = move |tx: &mut Tx<'_>| {
        let mut messages = messages::list_by_turn(tx, &asked)?;
        if by != asked {
            messages.extend(messages::list_by_turn(tx, &by)?);
        }
        Ok(messages)
    };
    let messages = app.engine.db().read(read).await.map_err(Error::from)?;
    Ok(task_json(turn, &job, &messages, most))
}

fn task_json(turn: &TurnId, job: &TurnJob, line: &[SessionMessage], most: Option<usize>) -> Value {
    let context = context_of_session(&job.session).unwrap_or_default();
    let at = job.ended_at.or(job.started_at).unwrap_or(job.queued_at);
    let place = (turn, context.as_str());
    let mut status = status_json(job.state, at);
    let reply = line.iter().find(|message| Some(&message.id) == job.reply.as_ref());
    let reply = reply.filter(|reply| !reply.text.is_empty());
    // The reply of a failed turn describes the failure and is no artifact.
    let artifact = match (reply, job.state) {
        (Some(reply), JobState::Done) => Some(artifact_json(&reply.text)),
        (Some(reply), _) => {
            status["message"] = message_json(reply, place);
            None
        }
        (None, _) => None,
    };
    let spoken = |message: &&SessionMessage| {
        let is_asked = message.role == MessageRole::User && message.origin == MessageOrigin::User;
        is_asked || Some(&message.id) == job.reply.as_ref()
    };
    let history: Vec<Value> =
        line.iter().filter(spoken).map(|message| message_json(message, place)).collect();
    let skipped = history.len().saturating_sub(most.unwrap_or(usize::MAX));
    json!({
        "kind": "task", "id": turn, "contextId": context, "status": status,
        "artifacts": artifact.into_iter().collect::<Vec<_>>(),
        "history": history[skipped..],
    })
}

pub fn artifact_json(text: &str) -> Value {
    json!({ "artifactId": REPLY_ARTIFACT, "name": REPLY_ARTIFACT, "parts": [{ "kind": "text", "text": text }] })
}

fn message_json(message: &SessionMessage, (task, context): (&TurnId, &str)) -> Value {
    let id = message.idempotency_key.as_deref().unwrap_or(message.id.as_str());
    json!({
        "kind": "message", "messageId": id, "taskId": task, "contextId": context,
        "role": if message.role == MessageRole::User { "user" } else { "agent" },
        "parts": [{ "kind": "text", "text": message.text }],
    })
}
