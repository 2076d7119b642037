//! The one internal door: text for a session that no channel brought. It is kept, checked for loops and repeats, and a
//! turn takes it up. Announces, sends between sessions, errands and what a person tells a child all come in here.

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

/// How a message comes in by the internal door.
#[derive(Clone, Debug)]
pub struct InternalMessage {
    /// Where the answer would go, whole: inside, but for errands.
    pub channel: ChatAddress,
    pub deliver: bool,
    /// The same key in the same session is the same message.
    pub idempotency_key: String,
    pub provenance: MessageProvenance,
    pub meta: Option<Value>,
}

/// Who caused it, as the runtime knows it.
#[derive(Clone, Debug)]
pub enum MessageProvenance {
    /// A session of this agent: how it came, and through how many.
    Agent(AgentId, RelayInfo),
    /// An agent of another instance, in a session of this agent: as whom it is shown, and how it came.
    Remote(AgentId, MessageOrigin, RelayInfo),
    /// The clock, for this agent.
    Clock(AgentId),
    /// A person, who named the session; it is of this agent.
    Person(AgentId),
}

impl InternalMessage {
    /// From one session to another. Nothing of it leaves by itself.
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
    /// Keeps a message for a session and lets a turn take it up; refused where it would go round in circles. A session
    /// that is not there is begun only by the clock or a person.
    pub async fn inject_message(
        &self,
        session: &SessionKey,
        message: &str,
        how: InternalMessage,
    ) -> Result<AcceptedMessage> {
        self.accept_message(how.into_ingress_message(session, message)).await
    }
}

/// A message that is only to be read: a line of a turn that has been, taken up by none.
pub(crate) fn inject_transcript_line(
    tx: &mut Tx<'_>,
    (session, message): (&SessionKey, &str),
    how: InternalMessage,
    fresh: &NewIds,
    turn: &TurnId,
) -> polyclaw_store::Result<()> {
    store_line(tx, &how.into_ingress_message(session, message), fresh, turn)
}

/// The same inside a transaction that stores more. The message is returned for whoever tells of it.
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
