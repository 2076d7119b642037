//! Editor sessions: creating one and replaying its history.

use polyclaw_api::sessions::{CreatedSession, NewSession, SessionView};
use polyclaw_api::transcript::{SessionMessageView, TranscriptPage, TranscriptQuery};
use polyclaw_domain::message::{MessageOrigin, MessageRole};
use serde_json::{Value, json};

use super::{AcpError, AcpResult, EditorConnection, session_id_param};
use crate::client::{ApiClient, encode_segment, with_query};
use crate::command::chat;
use crate::one_shot::parse_agent;

const TRANSCRIPT_PAGE_SIZE: usize = 500;

impl EditorConnection {
    /// Creates a session, named after the folder that the editor has open.
    pub(super) async fn create_session(&self, params: &Value) -> AcpResult {
        let client = chat::connect_or_start(&self.context).await?;
        let folder =
            params["cwd"].as_str().and_then(|path| path.rsplit(['/', '\\']).find(|part| !part.is_empty()));
        let title = Some(folder.unwrap_or("editor").to_owned());
        let body = NewSession { agent: parse_agent(self.agent.as_deref())?, title };
        let started: CreatedSession = client.post_as("/sessions", &body).await?;
        Ok(json!({ "sessionId": started.session_key }))
    }

    /// Loads a session and replays its messages to the editor.
    pub(super) async fn load_session(&self, params: &Value) -> AcpResult {
        let session = session_id_param(params)?;
        let client = chat::connect_or_start(&self.context).await?;
        client.get_as::<SessionView>(&format!("/sessions/{}", encode_segment(session))).await?;
        let mut after = Some(0);
        while let Some(ticket) = after {
            let page = fetch_transcript_page(&client, session, ticket).await?;
            for message in &page.messages {
                self.replay_message(session, message);
            }
            after = page.next_after;
        }
        Ok(json!({}))
    }

    fn replay_message(&self, session: &str, message: &SessionMessageView) {
        let kind = match (message.role, &message.origin) {
            (MessageRole::User, MessageOrigin::User) => "user_message_chunk",
            (MessageRole::Assistant, _) => "agent_message_chunk",
            _ => return,
        };
        if !message.text.is_empty() {
            self.send_update(session, message_chunk(kind, &message.text));
        }
    }

    /// Sends an update of a session to the editor.
    pub(super) fn send_update(&self, session: &str, update: Value) {
        self.peer.send_notification("session/update", json!({ "sessionId": session, "update": update }));
    }
}

async fn fetch_transcript_page(
    client: &ApiClient,
    session: &str,
    after: i64,
) -> Result<TranscriptPage, AcpError> {
    let path = format!("/sessions/{}/transcript", encode_segment(session));
    let query = TranscriptQuery { after: Some(after), limit: Some(TRANSCRIPT_PAGE_SIZE) };
    Ok(client.get_as(&with_query(&path, &query)).await?)
}

pub fn message_chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}
