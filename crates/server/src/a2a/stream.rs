//! `message/stream`: the task, its text as it is written, and its end.

use axum::response::Response;
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::job::JobState;
use polyclaw_engine::TurnAnswer;
use serde_json::{Value, json};

use super::ask::{Asked, accept};
use super::rpc::{self, Call, Fault};
use super::task;
use crate::error;
use crate::follow::{Follow, Out, Tell, told};
use crate::sse;
use crate::state::AppState;

struct Writer {
    app: AppState,
    agent: AgentId,
    id: Value,
    turn: TurnId,
    context: String,
    /// Text was written before: what comes is added to it.
    has_begun: bool,
    out: Out,
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
        has_begun: false,
        out: Out::new(),
    };
    let mut task = task::stored(app, agent, &writer.turn, None).await?;
    // What it made comes in pieces, even if it was there before.
    task["artifacts"] = json!([]);
    writer.push(&task);
    Ok(told(follow, writer))
}

impl Tell for Writer {
    fn text(&mut self, text: &str) {
        let update = json!({
            "kind": "artifact-update", "taskId": self.turn, "contextId": self.context,
            "artifact": task::artifact(text), "append": self.has_begun, "lastChunk": false,
        });
        self.has_begun = true;
        self.push(&update);
    }

    async fn end(&mut self, answer: error::Result<TurnAnswer>) {
        match answer {
            Ok(_) => self.finish().await,
            Err(error) => {
                let refusal = rpc::refusal(&self.id, &error.into(), &self.app.engine.redactor());
                self.out.push_back(sse::data(&refusal));
            }
        }
    }

    fn out(&mut self) -> &mut Out {
        &mut self.out
    }
}

impl Writer {
    /// As it is stored.
    async fn finish(&mut self) {
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
        self.out.push_back(sse::data(&rpc::answer(&self.id, result)));
    }
}
