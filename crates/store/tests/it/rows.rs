//! Plain rows; a check names only what it is about.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::OutboxState;
use polyclaw_domain::id::{AgentId, MessageId, NodeId, OutboxId, SessionId, TraceId, TurnId};
use polyclaw_domain::job::{JobLane, JobPriority, JobState};
use polyclaw_domain::message::{MessageOrigin, MessageRole};
use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::jobs::{self, NewTurnJob, TurnClaim, TurnClaimer, TurnJobEnd, TurnJobKind};
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::outbox::OutboxMessage;
use polyclaw_store::{Db, Result, sessions};

pub const NOW: Millis = Millis(1_800_000_000_000);
pub const LEASE_MS: i64 = 60_000;
/// A lease that has already ended, on whichever clock.
pub const ENDED: i64 = -1;

pub fn agent(id: &str) -> AgentId {
    AgentId::parse(id).unwrap()
}

pub fn turn(id: &str) -> TurnId {
    TurnId::new(id)
}

pub fn key(peer: &str) -> SessionKey {
    SessionKey::for_direct(&AgentId::main(), "test", peer)
}

pub fn address() -> ChatAddress {
    ChatAddress { channel: "test".into(), account: "a".into(), peer: "p".into(), thread: None }
}

pub fn session(peer: &str) -> Session {
    Session::new_for_person(key(peer), SessionId::new(format!("{peer}-1")), AgentId::main(), NOW)
}

pub fn message(id: &str, peer: &str, ticket: i64, of: &str) -> SessionMessage {
    SessionMessage {
        id: MessageId::new(id),
        session: key(peer),
        session_id: SessionId::new(format!("{peer}-1")),
        position: ticket,
        role: MessageRole::User,
        text: format!("text of {id}"),
        parts: vec![],
        origin: MessageOrigin::User,
        channel: "test".into(),
        deliver: true,
        address: None,
        meta: None,
        idempotency_key: None,
        turn: turn(of),
        created_at: NOW,
    }
}

pub fn job(id: &str, peer: &str) -> NewTurnJob {
    NewTurnJob {
        turn: turn(id),
        session: key(peer),
        agent: AgentId::main(),
        kind: TurnJobKind::Turn,
        lane: JobLane::Main,
        priority: JobPriority::Direct,
        held: false,
        inputs: 1,
        is_steering: false,
        hop: 0,
        trace: TraceId::new(format!("trace-{id}")),
        queued_at: NOW,
    }
}

pub fn claimer(node: &str) -> TurnClaimer {
    TurnClaimer { node: NodeId::new(node), now: NOW, lease_ms: LEASE_MS, last: None }
}

pub fn ended(state: JobState) -> TurnJobEnd {
    TurnJobEnd {
        state,
        model: None,
        usage: TokenUsage::default(),
        reply: None,
        error_code: None,
        error: None,
    }
}

pub fn parcel(id: &str, peer: &str) -> OutboxMessage {
    OutboxMessage {
        id: OutboxId::new(id),
        part_key: format!("part-{id}"),
        session: key(peer),
        turn: turn("t"),
        part: 0,
        address: address(),
        text: "hello".into(),
        state: OutboxState::Pending,
        attempts: 0,
        expires_at: NOW.plus(900_000),
        platform_id: None,
        error: None,
        created_at: NOW,
        updated_at: NOW,
    }
}

/// Stores the sessions that rows refer to.
pub async fn with_sessions(db: &Db, peers: &'static [&'static str]) -> Result<()> {
    db.write(move |tx| peers.iter().try_for_each(|peer| sessions::ensure(tx, &session(peer)).map(drop))).await
}

/// Queues jobs whose sessions exist.
pub async fn queue(db: &Db, jobs: Vec<NewTurnJob>) -> Result<()> {
    db.write(move |tx| jobs.iter().try_for_each(|job| jobs::insert(tx, job))).await
}

pub async fn claim(db: &Db, claimer: TurnClaimer) -> Result<Option<TurnClaim>> {
    db.write(move |tx| jobs::claim_next(tx, JobLane::Main, &claimer)).await
}

/// Claims as one node and names the turn.
pub async fn next(db: &Db) -> Result<Option<String>> {
    Ok(claim(db, claimer("one/1")).await?.map(|claim| claim.turn.to_string()))
}

pub async fn end(db: &Db, claim: &TurnClaim, state: JobState) -> Result<()> {
    let claim = claim.clone();
    db.write(move |tx| jobs::end_turn(tx, &claim, &ended(state), NOW)).await
}
