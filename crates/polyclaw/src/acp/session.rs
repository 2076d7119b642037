//! Conversations of the editor: begun, and shown again.

use serde_json::{Value, json};

use super::{Done, Editor, Fault, session_of};
use crate::client::{Client, segment};
use crate::command::chat;

const PAGE: usize = 500;

impl Editor {
    /// A conversation of its own, named after the folder that the editor has open.
    pub(super) async fn begin(&self, params: &Value) -> Done {
        let client = chat::connect(&self.context).await?;
        let folder =
            params["cwd"].as_str().and_then(|path| path.rsplit(['/', '\\']).find(|part| !part.is_empty()));
        let mut body = json!({ "title": folder.unwrap_or("editor") });
        if let Some(agent) = &self.agent {
            body["agent"] = json!(agent);
        }
        let begun = client.post("/sessions", &body).await?;
        Ok(json!({ "sessionId": begun["session_key"] }))
    }

    /// What was said is told again, as it was told at first.
    pub(super) async fn load(&self, params: &Value) -> Done {
        let session = session_of(params)?;
        let client = chat::connect(&self.context).await?;
        client.get(&format!("/sessions/{}", segment(session))).await?;
        let mut after = Some(0);
        while let Some(ticket) = after {
            let page = page(&client, session, ticket).await?;
            for message in page["messages"].as_array().into_iter().flatten() {
                self.retell(session, message);
            }
            after = page["next_after"].as_i64();
        }
        Ok(json!({}))
    }

    fn retell(&self, session: &str, message: &Value) {
        let text = message["text"].as_str().unwrap_or_default();
        let kind = match (message["role"].as_str(), message["origin"].as_str()) {
            (Some("user"), Some("user")) => "user_message_chunk",
            (Some("assistant"), _) => "agent_message_chunk",
            _ => return,
        };
        if !text.is_empty() {
            self.tell(session, chunk(kind, text));
        }
    }

    /// News of a session.
    pub(super) fn tell(&self, session: &str, update: Value) {
        self.peer.notify("session/update", json!({ "sessionId": session, "update": update }));
    }
}

async fn page(client: &Client, session: &str, after: i64) -> Result<Value, Fault> {
    let path = format!("/sessions/{}/transcript?after={after}&limit={PAGE}", segment(session));
    Ok(client.get(&path).await?)
}

pub fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}
