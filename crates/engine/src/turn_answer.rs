//! Waits for the answer to a turn, including one whose task was steered or restarted.

use std::time::Duration;

use polyclaw_domain::id::{MessageId, TurnId};
use polyclaw_domain::job::JobState;
use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::ToolCall;
use polyclaw_store::{jobs, messages};

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::hub::{FrameKind, HubSubscription};
use crate::turn::has_invalid_arguments;

/// Longest time between two checks, in case a wake-up is missed.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The answer of a finished turn.
#[derive(Clone, Debug)]
pub struct TurnAnswer {
    pub turn: TurnId,
    pub state: JobState,
    pub message_id: Option<MessageId>,
    pub text: String,
    /// Calls that the client runs itself.
    pub calls: Vec<ToolCall>,
    pub model: Option<String>,
    pub usage: TokenUsage,
    pub error_code: Option<String>,
    /// The reply ended at the model's length limit.
    pub truncated: bool,
}

impl TurnAnswer {
    /// Returns the answer that an end frame contains, without reading the database. A frame with calls for the client,
    /// or of a task that continues in another turn, contains none.
    pub fn from_frame(kind: &FrameKind) -> Option<Self> {
        let FrameKind::Ended {
            turn_id,
            state,
            message_id,
            text: Some(text),
            model,
            usage,
            error_code,
            truncated,
        } = kind
        else {
            return None;
        };
        (*state != JobState::Steered).then(|| Self {
            turn: turn_id.clone(),
            state: *state,
            message_id: message_id.clone(),
            text: text.clone(),
            calls: Vec::new(),
            model: model.clone(),
            usage: *usage,
            error_code: error_code.clone(),
            truncated: *truncated,
        })
    }
}

impl Engine {
    /// Waits for a turn's answer; `None` after the timeout.
    pub async fn wait_for_answer(
        &self,
        session: &SessionKey,
        turn: &TurnId,
        limit: Duration,
    ) -> Result<Option<TurnAnswer>> {
        let watch = self.hub.subscribe(session);
        self.wait_for_answer_with(watch, session, turn, limit).await
    }

    /// Like `wait_for_answer`, with a subscription made before the message was accepted, so that the end is never
    /// missed.
    pub async fn wait_for_answer_with(
        &self,
        mut watch: HubSubscription,
        session: &SessionKey,
        turn: &TurnId,
        limit: Duration,
    ) -> Result<Option<TurnAnswer>> {
        let deadline = tokio::time::Instant::now() + limit;
        if let Some(answer) = self.poll_answer(turn).await? {
            return Ok(Some(answer));
        }
        loop {
            // Another node's notification may be lost, so the database is polled now and then.
            let look_at = deadline.min(tokio::time::Instant::now() + ANSWER_POLL_INTERVAL);
            match tokio::time::timeout_at(look_at, watch.recv()).await {
                Err(_) if look_at == deadline => return Ok(None),
                Err(_) => {}
                Ok(Some(frame)) if !matches!(frame.kind, FrameKind::Ended { .. } | FrameKind::Changed) => {
                    continue;
                }
                Ok(Some(frame)) => match TurnAnswer::from_frame(&frame.kind) {
                    Some(answer) if answer.turn == *turn => return Ok(Some(answer)),
                    _ => {}
                },
                Ok(None) => watch = self.hub.subscribe(session),
            }
            if let Some(answer) = self.poll_answer(turn).await? {
                return Ok(Some(answer));
            }
        }
    }

    /// Returns the answer if there is one. A transient database error counts as no answer, for callers that keep
    /// waiting.
    pub async fn poll_answer(&self, turn: &TurnId) -> Result<Option<TurnAnswer>> {
        match self.load_answer(turn).await {
            Err(Error::Store(error)) if error.is_transient() => Ok(None),
            looked => looked,
        }
    }

    /// Returns the answer if the turn, or the one that resumed its task, has ended.
    pub async fn load_answer(&self, turn: &TurnId) -> Result<Option<TurnAnswer>> {
        let wanted = turn.clone();
        let read = move |tx: &mut polyclaw_store::Tx<'_>| {
            let Some(job) = jobs::find_answering(tx, &wanted)? else { return Ok(None) };
            let reply = match &job.reply {
                Some(id) => messages::get(tx, id)?,
                None => None,
            };
            Ok(Some((job, reply)))
        };
        let Some((job, reply)) = self.db().read(read).await? else {
            return Err(Error::UnknownTurn(turn.to_string()));
        };
        if !job.state.is_terminal() || job.state == JobState::Steered {
            return Ok(None);
        }
        let calls = reply.iter().flat_map(|message| polyclaw_domain::message::tool_calls(&message.parts));
        let calls = calls.filter(|call| !has_invalid_arguments(call)).cloned();
        Ok(Some(TurnAnswer {
            turn: job.turn,
            state: job.state,
            message_id: job.reply,
            calls: calls.collect(),
            truncated: reply.as_ref().is_some_and(messages::SessionMessage::is_truncated),
            text: reply.map(|message| message.text).unwrap_or_default(),
            model: job.model,
            usage: job.usage,
            error_code: job.error_code,
        }))
    }
}
