//! Entry point for text that no channel delivered. It is stored, checked for loops and duplicates, and processed by a
//! turn. Announces, messages between sessions, cron jobs and people's messages to a sub-agent use it.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::job::JobPriority;
use polyclaw_domain::message::MessageOrigin;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::Tx;
use serde_json::Value;

use super::store::{store_line, store_message};
use super::{AcceptedMessage, IngressMessage, IngressResult, NewIds, NodeContext, RelayInfo};
use crate::core::Engine;
use crate::error::Result;

/// Delivery details of an internal message.
#[derive(Clone, Debug)]
pub struct InternalMessage {
    /// Address of the reply; the internal address except for cron jobs.
    pub channel: ChatAddress,
    pub deliver: bool,
    /// A repeated key in the same session is the same message.
    pub idempotency_key: String,
    pub provenance: MessageProvenance,
    pub meta: Option<Value>,
}

/// The cause of the message, set by the runtime.
#[derive(Clone, Debug)]
pub enum MessageProvenance {
    /// A session of this agent, and the path of the message.
    Agent(AgentId, RelayInfo),
    /// An agent of another instance, in a session of this agent: the origin to show, and the path of the message.
    Remote(AgentId, MessageOrigin, RelayInfo),
    /// The clock, for a cron job of this agent.
    Clock(AgentId),
    /// A person who named the session; the session belongs to this agent.
    Person(AgentId),
}

impl InternalMessage {
    /// A message from one session to another. Its reply is not delivered to a channel.
    pub fn from_session(agent: AgentId, relayed: RelayInfo, idempotency_key: String) -> Self {
        Self {
            channel: ChatAddress::internal(),
            deliver: false,
            idempotency_key,
            provenance: MessageProvenance::Agent(agent, relayed),
            meta: None,
        }
    }

    fn into_ingress_message(self, session: &SessionKey, message: &str) -> IngressMessage {
        let (agent, origin, priority, relayed) = match self.provenance {
            MessageProvenance::Agent(agent, relayed) => {
                (agent.clone(), MessageOrigin::Agent(agent), JobPriority::Background, Some(relayed))
            }
            MessageProvenance::Remote(agent, origin, relayed) => {
                (agent, origin, JobPriority::Background, Some(relayed))
            }
            MessageProvenance::Clock(agent) => (agent, MessageOrigin::Cron, JobPriority::Background, None),
            MessageProvenance::Person(agent) => (agent, MessageOrigin::User, JobPriority::Direct, None),
        };
        IngressMessage {
            origin,
            priority,
            relay: relayed,
            deliver: self.deliver,
            idempotency_key: Some(self.idempotency_key),
            meta: self.meta,
            ..IngressMessage::from_person(session.clone(), agent, self.channel, message)
        }
    }
}

impl Engine {
    /// Stores a message for a session and lets a turn process it. Refused if it would cause a loop. Only the clock or a
    /// person can create a session that does not exist.
    pub async fn inject_message(
        &self,
        session: &SessionKey,
        message: &str,
        how: InternalMessage,
    ) -> Result<AcceptedMessage> {
        self.accept_message(how.into_ingress_message(session, message)).await
    }
}

/// Stores a message as a transcript line of an existing turn. No turn processes it.
pub(crate) fn inject_transcript_line(
    tx: &mut Tx<'_>,
    (session, message): (&SessionKey, &str),
    how: InternalMessage,
    fresh: &NewIds,
    turn: &TurnId,
) -> polyclaw_store::Result<()> {
    store_line(tx, &how.into_ingress_message(session, message), fresh, turn)
}

/// Injects a message inside a larger transaction. Returns the message too, for the caller to publish.
pub(crate) fn inject_in_tx(
    tx: &mut Tx<'_>,
    (session, message): (&SessionKey, &str),
    how: InternalMessage,
    fresh: &NewIds,
    here: &NodeContext,
) -> polyclaw_store::Result<(IngressResult, IngressMessage)> {
    let inbound = how.into_ingress_message(session, message);
    Ok((store_message(tx, &inbound, fresh, here)?, inbound))
}
