//! Imports conversations from clients that keep their own history.

use polyclaw_domain::channel::INTERNAL_CHANNEL;
use polyclaw_domain::id::{AgentId, MessageId, SessionId, TurnId};
use polyclaw_domain::job::JobState;
use polyclaw_domain::message::{MessageOrigin, MessagePart, MessageRole};
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::ToolCall;
use polyclaw_store::messages::{self, SessionMessage};
use polyclaw_store::{Tx, agents, jobs, sessions};

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::redact;
use crate::turn::unanswered_calls;

/// One message of an imported conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedMessage {
    pub role: MessageRole,
    pub text: String,
    pub parts: Vec<MessagePart>,
}

impl Engine {
    /// Stores messages from elsewhere as the beginning of a session. They start no turn, and a session that already has
    /// messages is left unchanged.
    pub async fn import_history(
        &self,
        key: &SessionKey,
        agent: &AgentId,
        mut past: Vec<ImportedMessage>,
    ) -> Result<()> {
        redact::redact_history(&self.redactor(), &mut past);
        let session = self.imported_session(key, agent, &past);
        // Message ids are derived, so that a retried transaction creates the same rows.
        let import = self.next_id();
        let write = move |tx: &mut Tx<'_>| {
            if agents::get(tx, &session.agent)?.is_none() {
                return Ok(false);
            }
            let stored = sessions::ensure(tx, &session)?;
            sessions::allocate_positions(tx, &stored.key, 0, stored.updated_at)?;
            if messages::last_position(tx, &stored.key)? == 0 {
                insert_imported(tx, &stored, &past, &import)?;
            }
            Ok(true)
        };
        match self.db().write(write).await? {
            true => Ok(()),
            false => Err(Error::UnknownAgent(agent.to_string())),
        }
    }

    /// Tool calls of the session's newest turn that its client has not answered yet.
    pub async fn list_open_calls(&self, key: &SessionKey) -> Result<Vec<ToolCall>> {
        let wanted = key.clone();
        let read = move |tx: &mut Tx<'_>| {
            let newest = jobs::list(tx, Some(&wanted), None, 1)?.pop();
            let Some(job) = newest.filter(|job| job.state == JobState::Done) else { return Ok(Vec::new()) };
            Ok(unanswered_calls(&messages::list_by_turn(tx, &job.turn)?))
        };
        Ok(self.db().read(read).await?)
    }

    fn imported_session(&self, key: &SessionKey, agent: &AgentId, past: &[ImportedMessage]) -> Session {
        let first = past.iter().find(|message| message.role == MessageRole::User);
        let id = SessionId::new(self.next_id());
        let title = first.and_then(|message| title_from_text(&message.text));
        Session { title, ..Session::new_for_person(key.clone(), id, agent.clone(), self.now()) }
    }
}

/// The title of a conversation: the start of its first line.
pub(crate) fn title_from_text(text: &str) -> Option<String> {
    let title: String = text.lines().next().unwrap_or_default().chars().take(60).collect();
    Some(title).filter(|title| !title.is_empty())
}

fn insert_imported(
    tx: &mut Tx<'_>,
    session: &Session,
    past: &[ImportedMessage],
    import: &str,
) -> polyclaw_store::Result<()> {
    let now = session.created_at;
    let first = sessions::allocate_positions(tx, &session.key, past.len(), now)?.unwrap_or(1);
    for (ticket, line) in (first..).zip(past) {
        let origin = if line.role == MessageRole::User {
            MessageOrigin::User
        } else {
            MessageOrigin::Agent(session.agent.clone())
        };
        let message = SessionMessage {
            id: MessageId::new(format!("{import}-{ticket}")),
            session: session.key.clone(),
            session_id: session.id.clone(),
            position: ticket,
            role: line.role,
            text: line.text.clone(),
            parts: line.parts.clone(),
            origin,
            channel: INTERNAL_CHANNEL.to_owned(),
            deliver: false,
            address: None,
            meta: Some(serde_json::json!({ "imported": true })),
            idempotency_key: None,
            turn: TurnId::new(import),
            created_at: now,
        };
        messages::insert(tx, &message)?;
    }
    Ok(())
}
