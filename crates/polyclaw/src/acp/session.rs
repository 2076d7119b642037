//! Editor sessions: creating one and replaying its history.

use serde_json::{Value, json};

use super::{AcpError, AcpResult, EditorConnection, session_id_param};
use crate::client::{ApiClient, encode_segment};
use crate::command::chat;

const TRANSCRIPT_PAGE_SIZE: usize = 500;

impl EditorConnection {
    /// Creates a session, named after the folder that the editor has open.
    pub(super) async fn create_session(&self, params: &Value) -> AcpResult {
        let client = chat::connect_or_start(&self.context).await?;
        let folder =
            params["cwd"].as_str().and_then(|path| path.rsplit(['/', '\\']).find(|part| !part.is_empty()));
        let mut body = json!({ "title": folder.unwrap_or("editor") });
        if let Some(agent) = &self.agent {
            body["agent"] = json!(agent);
        }
        let started = client.post("/sessions", &body).await?;
        Ok(json!({ "sessionId": started["session_key"] }))
    }

    /// Loads a session and replays its messages to the editor.
    pub(super) async fn load_session(&self, params: &Value) -> AcpResult {
        let session = session_id_param(params)?;
        let client = chat::connect_or_start(&self.context).await?;
        client.get(&format!("/sessions/{}", encode_segment(session))).await?;
        let mut after = Some(0);
        while let Some(ticket) = after {
            let page = fetch_transcript_page(&client, session, ticket).await?;
            for message in page["messages"].as_array().into_iter().flatten() {
                self.replay_message(session, message);
            }
            after = page["next_after"].as_i64();
        }
        Ok(json!({}))
    }

    fn replay_message(&self, session: &str, message: &Value) {
        let text = message["text"].as_str().unwrap_or_default();
        let kind = match (message["role"].as_str(), message["origin"].as_str()) {
            (Some("user"), Some("user")) => "user_message_chunk",
            (Some("assistant"), _) => "agent_message_chunk",
            _ => return,
        };
        if !text.is_empty() {
            self.send_update(session, message_chunk(kind, text));
        }
    }

    /// Sends an update of a session to the editor.
    pub(super) fn send_update(&self, session: &str, update: Value) {
        self.peer.send_notification("session/update", json!({ "sessionId": session, "update": update }));
    }
}

async fn fetch_transcript_page(client: &ApiClient, session: &str, after: i64) -> Result<Value, AcpError> {
    let path = format!(
        "/sessions/{}/transcript?after={after}&limit={TRANSCRIPT_PAGE_SIZE}",
        encode_segment(session)
    );
    Ok(client.get(&path).await?)
}

pub fn message_chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}
