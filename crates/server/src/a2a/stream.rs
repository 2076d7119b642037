//! `message/stream`: the task, its text as it is written, and its end. A caller that hangs up ends the stream, never the
//! turn.

use std::collections::VecDeque;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::job::JobState;
use serde_json::{Value, json};

use super::ask::{Asked, accept};
use super::rpc::{self, Call, Fault};
use super::task;
use crate::follow::{Follow, Piece};
use crate::sse;
use crate::state::AppState;

struct Writer {
    app: AppState,
    agent: AgentId,
    id: Value,
    turn: TurnId,
    context: String,
    follow: Follow,
    /// Text was written before: what comes is added to it.
    has_begun: bool,
    /// Written and not yet taken.
    ready: VecDeque<Bytes>,
}

pub async fn open(app: &AppState, agent: &AgentId, call: &Call) -> Result<Response, Fault> {
    let Asked { accepted, watch } = accept(app, agent, call.params()?).await?;
    let follow = Follow::new(app.engine.clone(), watch, &accepted);
    let mut writer = Writer {
        app: app.clone(),
        agent: agent.clone(),
        id: call.id.clone(),
        context: task::context_of(&accepted.session_key).unwrap_or_default(),
        turn: accepted.turn_id,
        follow,
        has_begun: false,
        ready: VecDeque::new(),
    };
    let mut task = task::stored(app, agent, &writer.turn, None).await?;
    // What it made comes in pieces, even if it was there before.
    task["artifacts"] = json!([]);
    writer.push(&task);
    Ok(sse::response(stream::unfold(writer, |mut writer| async move {
        let bytes = writer.next().await?;
        Some((bytes, writer))
    })))
}

impl Writer {
    async fn next(&mut self) -> Option<Bytes> {
        while self.ready.is_empty() {
            match self.follow.next().await? {
                Piece::Text(text) => self.write(&text),
                Piece::Quiet => self.ready.push_back(sse::KEEP_ALIVE),
                Piece::End(Ok(_)) => self.end().await,
                Piece::End(Err(error)) => {
                    self.ready.push_back(sse::data(&rpc::refusal(&self.id, &error.into())));
                }
            }
        }
        self.ready.pop_front()
    }

    fn write(&mut self, text: &str) {
        let update = json!({
            "kind": "artifact-update", "taskId": self.turn, "contextId": self.context,
            "artifact": task::artifact(text), "append": self.has_begun, "lastChunk": false,
        });
        self.has_begun = true;
        self.push(&update);
    }

    /// As it is stored.
    async fn end(&mut self) {
        let status = match task::stored(&self.app, &self.agent, &self.turn, Some(0)).await {
            Ok(mut task) => task["status"].take(),
            Err(_) => task::status(JobState::Failed, self.app.engine.now()),
        };
        let update = json!({
            "kind": "status-update", "taskId": self.turn, "contextId": self.context,
            "status": status, "final": true,
        });
        self.push(&update);
    }

    fn push(&mut self, result: &Value) {
        self.ready.push_back(sse::data(&rpc::answer(&self.id, result)));
    }
}
