//! A task, as its turn is stored. Nothing of it is kept elsewhere, so it is the same after a crash.

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

use super::rpc::{Call, Fault};
use crate::error::Error;
use crate::state::AppState;

/// The part of a session's key that says who asks there.
pub const CHANNEL: &str = "a2a";
/// The one thing a task makes.
pub const REPLY: &str = "reply";
/// How long a stopped turn may take to end.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Which {
    id: String,
    history_length: Option<usize>,
}

pub async fn get(app: &AppState, agent: &AgentId, call: &Call) -> Result<Value, Fault> {
    let which: Which = call.params()?;
    stored(app, agent, &TurnId::new(which.id), which.history_length).await
}

pub async fn cancel(app: &AppState, agent: &AgentId, call: &Call) -> Result<Value, Fault> {
    let which: Which = call.params()?;
    let job = find(app, agent, &which.id).await?;
    if is_over(job.state) {
        return Err(Fault::over());
    }
    let turn = TurnId::new(which.id);
    app.engine.stop_turn(&turn).await?;
    app.engine.wait_for_answer(&job.session, &turn, GRACE).await?;
    stored(app, agent, &turn, which.history_length).await
}

/// The turn that answers for a task of this agent.
pub async fn find(app: &AppState, agent: &AgentId, id: &str) -> Result<TurnJob, Fault> {
    let wanted = TurnId::new(id);
    let read = move |tx: &mut Tx<'_>| jobs::find_answering(tx, &wanted);
    let found = app.engine.db().read(read).await.map_err(Error::from)?;
    let own =
        |job: &TurnJob| job.session.agent_id().as_ref() == Some(agent) && context_of(&job.session).is_some();
    found.filter(own).ok_or_else(|| Fault::unknown_task(id))
}

/// What of a session's key is the context, if others asked there.
pub fn context_of(session: &SessionKey) -> Option<String> {
    match session.parts().as_slice() {
        [_, _, channel, _, context] if channel == CHANNEL => Some(context.clone()),
        _ => None,
    }
}

/// A turn that was steered has ended, but not its task.
pub fn is_over(state: JobState) -> bool {
    state.is_terminal() && state != JobState::Steered
}

pub fn word(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "submitted",
        JobState::Running | JobState::Steered => "working",
        JobState::Done => "completed",
        JobState::Failed => "failed",
        JobState::Cancelled => "canceled",
    }
}

pub fn status(state: JobState, at: Millis) -> Value {
    json!({ "state": word(state), "timestamp": at })
}

pub async fn stored(
    app: &AppState,
    agent: &AgentId,
    turn: &TurnId,
    most: Option<usize>,
) -> Result<Value, Fault> {
    let job = find(app, agent, turn.as_str()).await?;
    let (asked, by) = (turn.clone(), job.turn.clone());
    let read = move |tx: &mut Tx<'_>| {
        let mut said = messages::list_by_turn(tx, &asked)?;
        if by != asked {
            said.extend(messages::list_by_turn(tx, &by)?);
        }
        Ok(said)
    };
    let said = app.engine.db().read(read).await.map_err(Error::from)?;
    Ok(shown(turn, &job, &said, most))
}

fn shown(turn: &TurnId, job: &TurnJob, said: &[SessionMessage], most: Option<usize>) -> Value {
    let context = context_of(&job.session).unwrap_or_default();
    let at = job.ended_at.or(job.started_at).unwrap_or(job.queued_at);
    let place = (turn, context.as_str());
    let mut status = status(job.state, at);
    let reply = said.iter().find(|message| Some(&message.id) == job.reply.as_ref());
    let reply = reply.filter(|reply| !reply.text.is_empty());
    // A turn that failed has a sentence for an answer, which is nothing it made.
    let artifact = match (reply, job.state) {
        (Some(reply), JobState::Done) => Some(artifact(&reply.text)),
        (Some(reply), _) => {
            status["message"] = told(reply, place);
            None
        }
        (None, _) => None,
    };
    let spoken = |message: &&SessionMessage| {
        let is_asked = message.role == MessageRole::User && message.origin == MessageOrigin::User;
        is_asked || Some(&message.id) == job.reply.as_ref()
    };
    let history: Vec<Value> = said.iter().filter(spoken).map(|message| told(message, place)).collect();
    let skipped = history.len().saturating_sub(most.unwrap_or(usize::MAX));
    json!({
        "kind": "task", "id": turn, "contextId": context, "status": status,
        "artifacts": artifact.into_iter().collect::<Vec<_>>(),
        "history": history[skipped..],
    })
}

pub fn artifact(text: &str) -> Value {
    json!({ "artifactId": REPLY, "name": REPLY, "parts": [{ "kind": "text", "text": text }] })
}

fn told(message: &SessionMessage, (task, context): (&TurnId, &str)) -> Value {
    let id = message.idempotency_key.as_deref().unwrap_or(message.id.as_str());
    json!({
        "kind": "message", "messageId": id, "taskId": task, "contextId": context,
        "role": if message.role == MessageRole::User { "user" } else { "agent" },
        "parts": [{ "kind": "text", "text": message.text }],
    })
}
