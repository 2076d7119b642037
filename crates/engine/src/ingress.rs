//! Ingress: stores inbound messages durably. Once `accept_message` returns, a crash loses nothing.

mod internal_message;
mod session_expiry;
mod store;

use std::sync::Arc;

use polyclaw_domain::backlog::MAX_WAITING_ITEMS;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::command::strip_steer_prefix;
use polyclaw_domain::delivery::DeliveryPolicy;
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::{AgentId, MessageId, SessionId, TraceId, TurnId};
use polyclaw_domain::job::{JobLane, JobPriority};
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::message::{MessageOrigin, MessagePart};
use polyclaw_domain::relay;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::jobs::{TurnClaim, TurnClaimer};
use serde_json::{Value, json};

use crate::core::Engine;
use crate::error::{Error, Result, StateConflict};
use crate::hub::FrameKind;
use crate::inbound::broadcast_position_of;
use crate::lanes::{LaneScheduler, LaneSlot};
use crate::prompt::TurnRows;
use crate::redact;
use crate::settings::EngineSettings;
use crate::worker::{RunningTurn, TurnStart, build_claimer};

pub use internal_message::{InternalMessage, MessageProvenance};
pub(crate) use internal_message::{inject_in_tx, inject_transcript_line};
pub(crate) use store::store_message;

/// Maximum characters of one message.
pub const MAX_MESSAGE_CHARS: usize = 1_000_000;

/// Maximum bytes of a sender's or platform's key. Keys are indexed.
pub const MAX_KEY_BYTES: usize = 512;

#[derive(Clone, Debug)]
pub struct IngressMessage {
    pub session: SessionKey,
    /// Agent of the session if the session is new.
    pub agent: AgentId,
    /// Agent that answers this message, even if the session was switched to another.
    pub by: Option<AgentId>,
    pub text: String,
    pub parts: Vec<MessagePart>,
    pub origin: MessageOrigin,
    /// Address that the reply goes to.
    pub address: ChatAddress,
    pub deliver: bool,
    /// The platform's message id; deduplicates messages that a platform delivers twice.
    pub platform_id: Option<String>,
    /// The sender's idempotency key; deduplicates requests that a sender repeats.
    pub idempotency_key: Option<String>,
    pub priority: JobPriority,
    /// Set by the runtime when another session is the sender.
    pub relay: Option<RelayInfo>,
    pub meta: Option<Value>,
    /// Results of client-side tools; the turn continues from them.
    pub tool_results: Vec<ToolResult>,
}

#[derive(Clone, Debug)]
pub struct RelayInfo {
    pub from: SessionKey,
    pub hop: u32,
    pub trace: TraceId,
    pub kind: RelayKind,
}

/// Kind of a message between sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayKind {
    /// First message of a session that another session spawned; bounded by the sub-agent limits.
    Begin,
    /// A message from one session to another.
    Send,
    /// The result of a run, announced to its owner. Never refused; at most held until a person writes.
    Announce,
    /// The result of a run that a person stopped together with its owner.
    Stopped,
}

#[derive(Clone, Debug)]
pub struct ToolResult {
    pub call_id: String,
    pub name: String,
    pub content: String,
}

impl IngressMessage {
    /// A message that a person typed in their own conversation.
    pub fn from_person(
        session: SessionKey,
        agent: AgentId,
        address: ChatAddress,
        text: impl Into<String>,
    ) -> Self {
        Self {
            session,
            agent,
            by: None,
            text: text.into(),
            parts: Vec::new(),
            origin: MessageOrigin::User,
            address,
            deliver: true,
            platform_id: None,
            idempotency_key: None,
            priority: JobPriority::Direct,
            relay: None,
            meta: None,
            tool_results: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedMessage {
    pub message_id: MessageId,
    pub session_key: SessionKey,
    pub turn_id: TurnId,
    /// The same message was accepted before; the other fields describe that one.
    pub duplicate: bool,
    /// A turn is running; the message is processed at the turn's next boundary or after it ends.
    pub waiting: bool,
    pub lane: JobLane,
    /// Code of the reason why a run's result is held until a person writes.
    pub held: Option<&'static str>,
    /// Sub-agent turns that were held for a person are now ready.
    pub released: bool,
}

impl AcceptedMessage {
    /// The lane in which a turn is ready to process this message.
    pub(crate) fn ready_lane(&self) -> Option<JobLane> {
        (!self.duplicate && !self.waiting).then_some(self.lane)
    }
}

/// Ids and time that are generated outside the transaction, so that it can be retried.
#[derive(Clone)]
pub(crate) struct NewIds {
    pub message: MessageId,
    pub turn: TurnId,
    pub session: SessionId,
    pub trace: TraceId,
    pub now: Millis,
}

impl NewIds {
    pub fn new(engine: &Engine, trace: Option<TraceId>) -> Self {
        Self {
            message: MessageId::new(engine.next_id()),
            turn: TurnId::new(engine.next_id()),
            session: SessionId::new(engine.next_id()),
            trace: trace.unwrap_or_else(|| TraceId::new(engine.next_id())),
            now: engine.now(),
        }
    }
}

/// Why a transaction stored nothing.
pub(crate) enum IngressRefusal {
    UnknownAgent,
    /// The target session of a message between sessions does not exist.
    UnknownSession,
    Full,
    /// The message was accepted before and its session has been deleted since.
    Deleted,
    /// The session belongs to a member that has left its team.
    MemberClosed,
    Relay(relay::RelayRefusal),
}

pub(crate) type IngressResult = std::result::Result<(AcceptedMessage, Option<ClaimedTurn>), IngressRefusal>;

/// A stored message and the turn that may have started with it.
pub(crate) type StoredIngress = (AcceptedMessage, IngressMessage, Option<ClaimedTurn>);

/// A turn claimed by the transaction that stored its message, because its lane was empty.
pub(crate) struct ClaimedTurn {
    claim: TurnClaim,
    rows: Option<TurnRows>,
    slot: LaneSlot,
}

/// Facts about this node that the transaction needs.
pub(crate) struct NodeContext {
    /// Where a sender who has to wait is notified, if there is no other sign of it.
    busy_notice: Option<(ChatAddress, DeliveryPolicy)>,
    /// What is needed to claim the turn immediately; `None` if the caller cannot run it.
    claim_now: Option<(TurnClaimer, Arc<LaneScheduler>)>,
    settings: Arc<EngineSettings>,
}

impl NodeContext {
    pub fn from_engine(engine: &Engine) -> Self {
        let claim_now = Some((build_claimer(engine), Arc::clone(&engine.lanes)));
        Self { busy_notice: None, claim_now, settings: engine.settings() }
    }

    /// The turn is only queued; any worker with a free slot claims it.
    pub fn queue_only(settings: &Arc<EngineSettings>) -> Self {
        Self { busy_notice: None, claim_now: None, settings: Arc::clone(settings) }
    }
}

/// Why nothing was stored, as text for callers that store more in the same transaction.
pub(crate) fn refusal_text(refused: &IngressRefusal) -> String {
    match refused {
        IngressRefusal::UnknownAgent => "there is no such agent".to_owned(),
        IngressRefusal::UnknownSession => "there is no such session".to_owned(),
        IngressRefusal::Full => "too much waits there".to_owned(),
        IngressRefusal::Deleted => "it was taken before".to_owned(),
        IngressRefusal::MemberClosed => StateConflict::MemberClosed.text(Locale::English),
        IngressRefusal::Relay(refusal) => refusal.to_string(),
    }
}

impl Engine {
    pub async fn accept_message(&self, mut inbound: IngressMessage) -> Result<AcceptedMessage> {
        let text = strip_steer_prefix(&inbound.text);
        if inbound.origin.is_person() && text.len() < inbound.text.len() {
            inbound.text = text.to_owned();
        }
        self.check_message(&inbound)?;
        redact::redact_message(&self.redactor(), &mut inbound);
        let engine = self.clone();
        // A cancelled caller must not drop a turn that is claimed but not yet started.
        let kept = tokio::spawn(async move { engine.store_and_start(inbound).await });
        kept.await.map_err(|_| Error::Store(polyclaw_store::Error::Closed))?
    }

    async fn store_and_start(&self, inbound: IngressMessage) -> Result<AcceptedMessage> {
        self.hit_kill_point(KillPoint::IngressBefore).await;
        let mut verdict = self.store_ingress(&inbound).await;
        if matches!(verdict, Err(polyclaw_store::Error::Conflict(_))) {
            // Another copy of the same message was committed first; the second attempt finds it.
            verdict = self.store_ingress(&inbound).await;
        }
        match verdict? {
            Ok((accepted, claimed)) => {
                self.hit_kill_point(KillPoint::IngressCommitted).await;
                self.publish_accepted(&accepted, inbound);
                self.start_or_wake_turn(&accepted, claimed);
                if accepted.waiting {
                    // A busy notice may be in the outbox.
                    self.outbox_wake.notify_one();
                }
                Ok(accepted)
            }
            Err(refused) => Err(self.refusal_error(&inbound, refused).await),
        }
    }

    /// Hands a claimed turn to the worker, or wakes the lane for a queued one.
    pub(crate) fn start_or_wake_turn(&self, accepted: &AcceptedMessage, claimed: Option<ClaimedTurn>) {
        if accepted.released {
            self.lanes.wake_all();
        }
        match claimed {
            Some(ClaimedTurn { claim, rows, slot }) => {
                self.hand_to_worker(TurnStart { running: RunningTurn::new(claim, rows), slot });
            }
            None if !accepted.duplicate && !accepted.waiting => self.lanes.wake(accepted.lane),
            None => {}
        }
    }

    pub(crate) fn check_message(&self, inbound: &IngressMessage) -> Result<()> {
        let chars = inbound.text.chars().count();
        if self.is_draining() {
            return Err(Error::Draining);
        }
        if inbound.text.trim().is_empty() && inbound.parts.is_empty() && inbound.tool_results.is_empty() {
            return Err(Error::EmptyMessage);
        }
        if chars > MAX_MESSAGE_CHARS {
            return Err(Error::TooLong(chars, MAX_MESSAGE_CHARS));
        }
        let keys = [&inbound.platform_id, &inbound.idempotency_key];
        if let Some(key) = keys.into_iter().flatten().find(|key| key.len() > MAX_KEY_BYTES) {
            return Err(Error::KeyTooLong(key.len(), MAX_KEY_BYTES));
        }
        match redact::has_secret_name(&self.redactor(), inbound) {
            true => Err(Error::SecretInKey),
            false => Ok(()),
        }
    }

    async fn store_ingress(&self, inbound: &IngressMessage) -> polyclaw_store::Result<IngressResult> {
        let fresh = NewIds::new(self, inbound.relay.as_ref().map(|relayed| relayed.trace.clone()));
        let here =
            NodeContext { busy_notice: self.busy_notice_for(inbound), ..NodeContext::from_engine(self) };
        let inbound = inbound.clone();
        self.db().write(move |tx| store_message(tx, &inbound, &fresh, &here)).await
    }

    /// Returns the address of the busy notice for a person on a platform without a typing indicator.
    fn busy_notice_for(&self, inbound: &IngressMessage) -> Option<(ChatAddress, DeliveryPolicy)> {
        let address = &inbound.address;
        let channel = self.ports.channels.get(&address.channel)?;
        if !inbound.origin.is_person() || channel.capabilities(&address.account).acknowledges {
            return None;
        }
        // If several agents are addressed, only the first sends the notice.
        if broadcast_position_of(inbound.meta.as_ref()).is_some_and(|(_, position)| position > 0) {
            return None;
        }
        let policy = DeliveryPolicy { requested: inbound.deliver, ..DeliveryPolicy::ALLOW_ALL };
        Some((address.clone(), policy))
    }

    pub(crate) fn publish_accepted(&self, accepted: &AcceptedMessage, inbound: IngressMessage) {
        if accepted.duplicate {
            return;
        }
        let kind = FrameKind::Accepted {
            message_id: accepted.message_id.clone(),
            turn_id: accepted.turn_id.clone(),
            origin: inbound.origin,
            text: inbound.text,
            waiting: accepted.waiting,
        };
        self.hub.publish(&accepted.session_key, kind);
    }

    async fn refusal_error(&self, inbound: &IngressMessage, refused: IngressRefusal) -> Error {
        let error = match refused {
            IngressRefusal::UnknownAgent => Error::UnknownAgent(inbound.agent.to_string()),
            IngressRefusal::UnknownSession => Error::UnknownSession(inbound.session.to_string()),
            IngressRefusal::Full => Error::BacklogFull(MAX_WAITING_ITEMS),
            IngressRefusal::Deleted => Error::Deleted,
            IngressRefusal::MemberClosed => StateConflict::MemberClosed.into(),
            IngressRefusal::Relay(refusal) => Error::Relay(refusal),
        };
        let trace = inbound.relay.as_ref().map(|relayed| relayed.trace.clone());
        let about = (&inbound.session, &inbound.agent, trace);
        self.record_refusal(about, &inbound.origin, &error).await;
        error
    }

    pub(crate) async fn record_refusal(
        &self,
        (session, agent, trace): (&SessionKey, &AgentId, Option<TraceId>),
        origin: &MessageOrigin,
        error: &Error,
    ) {
        let event = NewEvent {
            kind: EventKind::MessageRefused,
            session: Some(session.clone()),
            turn: None,
            agent: Some(agent.clone()),
            trace,
            data: json!({ "code": error.code(), "origin": origin.to_string() }),
        };
        self.record_event(event).await;
    }
}
