//! `message/stream`: sends the task, its text as it is written, and its end.

use axum::response::Response;
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::job::JobState;
use polyclaw_engine::TurnAnswer;
use serde_json::{Value, json};

use super::ask::{AcceptedA2aMessage, accept_message};
use super::rpc::{self, RpcCall, RpcError};
use super::task;
use crate::error;
use crate::sse;
use crate::state::AppState;
use crate::turn_follower::{PendingBytes, TurnFollower, TurnWriter, stream_turn};

struct A2aStreamWriter {
    app: AppState,
    agent: AgentId,
    id: Value,
    turn: TurnId,
    context: String,
    /// Text was sent before, so more is appended to it.
    has_started: bool,
    out: PendingBytes,
}

pub async fn open_stream(app: &AppState, agent: &AgentId, call: &RpcCall) -> Result<Response, RpcError> {
    let AcceptedA2aMessage { accepted, watch } = accept_message(app, agent, call.parse_params()?).await?;
    let follow = TurnFollower::new(app.engine.clone(), watch, &accepted);
    let mut writer = A2aStreamWriter {
        app: app.clone(),
        agent: agent.clone(),
        id: call.id.clone(),
        context: task::context_of_session(&accepted.session_key).unwrap_or_default(),
        turn: accepted.turn_id,
        has_started: false,
        out: PendingBytes::new(),
    };
    let mut task = task::load_task(app, agent, &writer.turn, None).await?;
    // The reply is sent in pieces, even if it already exists.
    task["artifacts"] = json!([]);
    writer.push_result(&task);
    Ok(stream_turn(follow, writer))
}

impl TurnWriter for A2aStreamWriter {
    fn write_text(&mut self, text: &str) {
        let update = json!({
            "kind": "artifact-update", "taskId": self.turn, "contextId": self.context,
            "artifact": task::artifact_json(text), "append": self.has_started, "lastChunk": false,
        });
        self.has_started = true;
        self.push_result(&update);
    }

    async fn write_end(&mut self, answer: error::Result<TurnAnswer>) {
        match answer {
            Ok(_) => self.push_final_status().await,
            Err(error) => {
                let refusal = rpc::error_response(&self.id, &error.into(), &self.app.engine.redactor());
                self.out.push_back(sse::encode_data(&refusal));
            }
        }
    }

    fn pending_bytes(&mut self) -> &mut PendingBytes {
        &mut self.out
    }
}

impl A2aStreamWriter {
    /// Sends the final status as stored.
    async fn push_final_status(&mut self) {
        let status = match task::load_task(&self.app, &self.agent, &self.turn, Some(0)).await {
            Ok(mut task) => task["status"].take(),
            Err(_) => task::status_json(JobState::Failed, self.app.engine.now()),
        };
        let update = json!({
            "kind": "status-update", "taskId": self.turn, "contextId": self.context,
            "status": status, "final": true,
        });
        self.push_result(&update);
    }

    fn push_result(&mut self, result: &Value) {
        self.out.push_back(sse::encode_data(&rpc::result_response(&self.id, result)));
    }
}
