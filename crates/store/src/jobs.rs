//! Turn jobs: the durable queue. Unique indexes enforce that a session has at most one running and one queued turn.

use polyclaw_domain::backlog::SessionLoad;
use polyclaw_domain::id::{AgentId, MessageId, NodeId, TraceId, TurnId};
use polyclaw_domain::job::{JobLane, JobPriority, JobState};
use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;

use crate::error::{Error, Result};
use crate::params;
use crate::tx::{Row, Tx};

mod claim;
mod end;
mod process_deaths;

pub(crate) use claim::earlier_epoch_prefix;
pub use claim::{
    ClaimRenewal, ClaimStatus, TurnClaim, TurnClaimer, claim_next, insert_claimed, is_session_host,
    renew_claim, take_over_orphan, verify_claim,
};
pub use end::{TurnJobEnd, end_turn, release_claim, release_held};
pub use process_deaths::{
    ORPHAN_BATCH_SIZE, OrphanSearch, list_orphans, list_suspects, record_deaths, record_drain,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnJobKind {
    Turn,
    /// Compact old history into a summary, without a reply.
    Compact,
}

impl TurnJobKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Compact => "compact",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Turn, Self::Compact].into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Clone, Debug)]
pub struct NewTurnJob {
    pub turn: TurnId,
    pub session: SessionKey,
    pub agent: AgentId,
    pub kind: TurnJobKind,
    pub lane: JobLane,
    pub priority: JobPriority,
    /// Waits for the running turn of its session.
    pub held: bool,
    pub inputs: usize,
    /// A person's message is among the inputs, so the running turn yields to it.
    pub is_steering: bool,
    pub hop: u32,
    pub trace: TraceId,
    pub queued_at: Millis,
}

/// Moves a session's queued turn from the old agent to the new one.
pub fn reassign_queued(tx: &mut Tx<'_>, session: &SessionKey, from: &AgentId, to: &AgentId) -> Result<()> {
    const SQL: &str =
        "UPDATE jobs SET agent_id = $3 WHERE session_key = $1 AND state = 'queued' AND agent_id = $2";
    tx.execute(SQL, params![session, from, to]).map(drop)
}

/// Assigns a session's queued turn to an agent.
pub fn assign_queued(tx: &mut Tx<'_>, session: &SessionKey, agent: &AgentId) -> Result<()> {
    const SQL: &str = "UPDATE jobs SET agent_id = $2 WHERE session_key = $1 AND state = 'queued'";
    tx.execute(SQL, params![session, agent]).map(drop)
}

pub fn insert(tx: &mut Tx<'_>, job: &NewTurnJob) -> Result<()> {
    insert_with_lease(tx, job, None)
}

/// Stores a job, either queued or already running under a lease.
fn insert_with_lease(tx: &mut Tx<'_>, job: &NewTurnJob, lease: Option<&JobLease<'_>>) -> Result<()> {
    const SQL: &str = "INSERT INTO jobs (turn_id, session_key, agent_id, kind, lane, priority, state, held,
          was_held, inputs, is_steering, hop, trace_id, queued_at, node, lease_until, attempt, started_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
    let state = if lease.is_some() { JobState::Running } else { JobState::Queued };
    let params = params![
        &job.turn,
        &job.session,
        &job.agent,
        job.kind.as_str(),
        job.lane.as_str(),
        job.priority as i64,
        state.as_str(),
        job.held,
        job.inputs,
        job.is_steering,
        job.hop,
        &job.trace,
        job.queued_at,
        lease.map(|lease| lease.node),
        lease.map(|lease| lease.until),
        usize::from(lease.is_some()),
        lease.map(|lease| lease.from),
    ];
    tx.execute(SQL, params).map(drop)
}

/// The node that runs a job, its start and the end of its lease.
struct JobLease<'a> {
    node: &'a NodeId,
    from: Millis,
    until: Millis,
}

/// One more input of a turn that has not started.
#[derive(Clone, Debug)]
pub struct JoiningInput {
    /// It was written by a person.
    pub is_steering: bool,
    pub lane: JobLane,
    pub priority: JobPriority,
    pub hop: u32,
    pub trace: TraceId,
}

/// Adds an input to a turn that has not started.
pub fn add_input(tx: &mut Tx<'_>, turn: &TurnId, joining: &JoiningInput) -> Result<()> {
    // A person's message moves the turn to the person's lane, and work that agents started continues on the person's
    // trace. A compaction becomes a normal turn, because it has something to answer now.
    const SQL: &str = "UPDATE jobs SET inputs = inputs + 1, kind = 'turn',
          is_steering = CASE WHEN $2 = 1 THEN 1 ELSE is_steering END,
          lane = CASE WHEN $2 = 1 THEN $3 ELSE lane END,
          priority = CASE WHEN $4 < priority THEN $4 ELSE priority END,
          hop = CASE WHEN $2 = 1 THEN 0 WHEN is_steering = 0 AND $5 > hop THEN $5 ELSE hop END,
          trace_id = CASE WHEN $2 = 1 AND is_steering = 0 THEN $6 ELSE trace_id END
        WHERE turn_id = $1 AND state = 'queued'";
    let JoiningInput { is_steering: steers, lane, priority, hop, trace } = joining;
    match tx.execute(SQL, params![turn, *steers, lane.as_str(), *priority as i64, *hop, trace])? {
        1 => Ok(()),
        _ => Err(Error::Other(format!("turn {turn} is no longer queued"))),
    }
}

/// Holds a turn until a person writes in its session, because agents have used up their automatic turns.
pub fn hold_for_person(tx: &mut Tx<'_>, turn: &TurnId) -> Result<()> {
    tx.execute("UPDATE jobs SET held = 2 WHERE turn_id = $1 AND state = 'queued'", params![turn]).map(drop)
}

/// Like `hold_for_person`, for a session's queued turn, if only agents have written to it.
pub fn hold_agent_only_turn(tx: &mut Tx<'_>, session: &SessionKey) -> Result<()> {
    const SQL: &str = "UPDATE jobs SET held = 2
        WHERE session_key = $1 AND state = 'queued' AND held = 1 AND inputs > 0
          AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn_id = jobs.turn_id AND m.origin NOT LIKE 'agent:%')";
    tx.execute(SQL, params![session]).map(drop)
}

/// Resumes a turn held for a person, behind the running turn if `is_behind`. Returns `false` if it was not held for
/// one.
pub fn resume_held(tx: &mut Tx<'_>, turn: &TurnId, is_behind: bool) -> Result<bool> {
    const SQL: &str = "UPDATE jobs SET held = $2 WHERE turn_id = $1 AND state = 'queued' AND held = 2";
    Ok(tx.execute(SQL, params![turn, is_behind])? > 0)
}

pub fn is_held_for_person(tx: &mut Tx<'_>, turn: &TurnId) -> Result<bool> {
    const SQL: &str = "SELECT 1 FROM jobs WHERE turn_id = $1 AND state = 'queued' AND held = 2";
    Ok(tx.query_one(SQL, params![turn], |_| Ok(()))?.is_some())
}

/// Removes an input from a turn that has not started, and returns how many are left. `None` if it has started.
pub fn remove_input(tx: &mut Tx<'_>, turn: &TurnId) -> Result<Option<i64>> {
    const SQL: &str = "UPDATE jobs SET inputs = inputs - 1
        WHERE turn_id = $1 AND state = 'queued' AND inputs > 0 RETURNING inputs";
    tx.query_one(SQL, params![turn], |row| row.int(0))
}

/// Returns the load of a session. Lock the session's row first.
pub fn session_load(tx: &mut Tx<'_>, session: &SessionKey) -> Result<SessionLoad> {
    // Two halves, so that each uses a partial index; a session has many past turns.
    const ACTIVE: &str = "SELECT turn_id, state, inputs FROM jobs WHERE session_key = $1 AND state = 'queued'
        UNION ALL SELECT turn_id, state, inputs FROM jobs WHERE session_key = $1 AND state = 'running'";
    const BACKLOG: &str = "SELECT COUNT(*) FROM backlog WHERE session_key = $1 AND drained_by_turn IS NULL";
    let mut load = SessionLoad::default();
    for (turn, state, inputs) in
        tx.query(ACTIVE, params![session], |row| Ok((row.text(0)?, row.text(1)?, row.count(2)?)))?
    {
        if state == "running" {
            load.running = Some(TurnId::new(turn));
        } else {
            load.queued = Some(TurnId::new(turn));
            load.waiting += inputs;
        }
    }
    // An interrupted task never waits alone: its session has a running turn, or a queued one that resumes it.
    if load.running.is_some() || load.queued.is_some() {
        load.waiting += tx.query_one(BACKLOG, params![session], |row| row.count(0))?.unwrap_or(0);
    }
    Ok(load)
}

/// Messages waiting in a session, by author. Announces are in neither count: they cannot be sent again, so they are
/// always accepted and use up no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingCounts {
    pub people: usize,
    /// From other sessions, cron jobs, webhooks and other instances.
    pub internal: usize,
}

/// Counts the inputs of the queued turn and the interrupted tasks.
pub fn count_waiting(tx: &mut Tx<'_>, session: &SessionKey) -> Result<WaitingCounts> {
    const SQL: &str = "SELECT COUNT(CASE WHEN m.origin = 'user' THEN 1 END),
          COUNT(CASE WHEN m.origin <> 'user' THEN 1 END) FROM messages m
        WHERE (m.turn_id IN (SELECT j.turn_id FROM jobs j WHERE j.session_key = $1 AND j.state = 'queued')
            OR m.id IN (SELECT b.message_id FROM backlog b WHERE b.session_key = $1 AND b.drained_by_turn IS NULL))
          AND (m.idempotency_key IS NULL OR m.origin = 'user' OR
            m.idempotency_key NOT LIKE 'announce:%' AND m.idempotency_key NOT LIKE 'news:%')";
    let read = |row: &Row<'_>| Ok(WaitingCounts { people: row.count(0)?, internal: row.count(1)? });
    Ok(tx.query_one(SQL, params![session], read)?.unwrap_or_default())
}

/// The queued turn of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedTurnRow {
    pub turn: TurnId,
    /// It has a person's message, so the running turn yields.
    pub is_steering: bool,
}

pub fn find_queued(tx: &mut Tx<'_>, session: &SessionKey) -> Result<Option<QueuedTurnRow>> {
    const SQL: &str = "SELECT turn_id, is_steering FROM jobs WHERE session_key = $1 AND state = 'queued'";
    let read =
        |row: &Row<'_>| Ok(QueuedTurnRow { turn: TurnId::new(row.text(0)?), is_steering: row.flag(1)? });
    tx.query_one(SQL, params![session], read)
}

/// A running turn, on any node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTurnRow {
    pub turn: TurnId,
    pub session: SessionKey,
    pub agent: AgentId,
}

/// Lists all running turns, at most as many as the lanes have slots.
pub fn list_running(tx: &mut Tx<'_>) -> Result<Vec<RunningTurnRow>> {
    const SQL: &str = "SELECT turn_id, session_key, agent_id FROM jobs WHERE state = 'running'";
    tx.query(SQL, &[], |row| {
        Ok(RunningTurnRow {
            turn: TurnId::new(row.text(0)?),
            session: row.session_key(1)?,
            agent: row.agent_id(2)?,
        })
    })
}

/// Whether a newer message of a person waits for the running turn to yield.
pub fn is_steered(tx: &mut Tx<'_>, session: &SessionKey) -> Result<bool> {
    Ok(find_queued(tx, session)?.is_some_and(|queued| queued.is_steering))
}

/// Requests the running turn to stop. Its node gets a signal, and every step it stores checks the flag.
pub fn request_stop(tx: &mut Tx<'_>, session: &SessionKey) -> Result<Option<TurnId>> {
    const SQL: &str = "UPDATE jobs SET cancel = 1
        WHERE session_key = $1 AND state = 'running' RETURNING turn_id";
    let turn = tx.query_one(SQL, params![session], |row| row.text(0))?.map(TurnId::new);
    if let Some(turn) = &turn {
        tx.notify_nodes(&format!("stop {turn}"))?;
    }
    Ok(turn)
}

/// Cancels the queued turn, unless it is held for a person.
pub fn cancel_queued(tx: &mut Tx<'_>, session: &SessionKey, now: Millis) -> Result<Option<TurnId>> {
    const SQL: &str = "UPDATE jobs SET state = 'cancelled', ended_at = $2, error_code = 'stopped'
        WHERE session_key = $1 AND state = 'queued' AND held <> 2 RETURNING turn_id";
    Ok(tx.query_one(SQL, params![session, now], |row| row.text(0))?.map(TurnId::new))
}

/// Cancels the queued turn even if it is held for a person, because its session is stopped for good.
pub fn cancel_queued_and_held(tx: &mut Tx<'_>, session: &SessionKey, now: Millis) -> Result<Option<TurnId>> {
    const SQL: &str = "UPDATE jobs SET state = 'cancelled', ended_at = $2, error_code = 'stopped'
        WHERE session_key = $1 AND state = 'queued' RETURNING turn_id";
    Ok(tx.query_one(SQL, params![session, now], |row| row.text(0))?.map(TurnId::new))
}

/// Lists turns that were queued after another one and cancelled before they started.
pub fn list_cancelled_behind(tx: &mut Tx<'_>, session: &SessionKey, turn: &TurnId) -> Result<Vec<TurnId>> {
    const SQL: &str = "SELECT turn_id FROM jobs
        WHERE session_key = $1 AND state = 'cancelled' AND started_at IS NULL
          AND seq > (SELECT r.seq FROM jobs r WHERE r.turn_id = $2) ORDER BY seq";
    tx.query(SQL, params![session, turn], |row| row.text(0).map(TurnId::new))
}

/// Whether every message of a turn was written by a person.
pub fn is_from_people(tx: &mut Tx<'_>, turn: &TurnId) -> Result<bool> {
    const SQL: &str = "SELECT COUNT(*), SUM(CASE WHEN origin = 'user' THEN 1 ELSE 0 END)
        FROM messages WHERE turn_id = $1";
    let counted = tx.query_one(SQL, params![turn], |row| Ok((row.int(0)?, row.opt_int(1)?)))?;
    Ok(counted.is_some_and(|(all, people)| all > 0 && people == Some(all)))
}

/// Cancels a queued turn without inputs, whose task to resume was cancelled.
pub fn cancel_empty(tx: &mut Tx<'_>, session: &SessionKey, now: Millis) -> Result<()> {
    const SQL: &str = "UPDATE jobs SET state = 'cancelled', ended_at = $2, error_code = 'stopped'
        WHERE session_key = $1 AND state = 'queued' AND inputs = 0";
    tx.execute(SQL, params![session, now]).map(drop)
}

/// Marks the queued turn as held, so that its inputs move behind everything stored before it starts.
pub fn mark_queued_as_held(tx: &mut Tx<'_>, session: &SessionKey) -> Result<()> {
    const SQL: &str = "UPDATE jobs SET was_held = 1 WHERE session_key = $1 AND state = 'queued'";
    tx.execute(SQL, params![session]).map(drop)
}

#[derive(Clone, Debug)]
pub struct TurnJob {
    pub turn: TurnId,
    pub session: SessionKey,
    pub agent: AgentId,
    pub lane: JobLane,
    pub state: JobState,
    pub attempt: u32,
    pub hop: u32,
    pub trace: TraceId,
    pub cancel: bool,
    pub model: Option<String>,
    pub usage: TokenUsage,
    pub reply: Option<MessageId>,
    pub continued_by: Option<TurnId>,
    pub error_code: Option<String>,
    pub error: Option<String>,
    pub node: Option<NodeId>,
    pub queued_at: Millis,
    pub started_at: Option<Millis>,
    pub ended_at: Option<Millis>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT turn_id, session_key, agent_id, lane, state, attempt, hop, trace_id, cancel, model,
             input_tokens, output_tokens, cached_tokens, reply_id, continued_by, error_code, error, node,
             queued_at, started_at, ended_at FROM jobs ",
            $rest
        )
    };
}

pub fn get(tx: &mut Tx<'_>, turn: &TurnId) -> Result<Option<TurnJob>> {
    tx.query_one(select!("WHERE turn_id = $1"), params![turn], turn_job_from_row)
}

/// Returns the turn that answers for `turn`: itself, or the one that resumed its task after steering.
pub fn find_answering(tx: &mut Tx<'_>, turn: &TurnId) -> Result<Option<TurnJob>> {
    let mut job = get(tx, turn)?;
    while let Some(next) = job.as_ref().and_then(|job| job.continued_by.clone()) {
        job = get(tx, &next)?;
    }
    Ok(job)
}

pub fn list(
    tx: &mut Tx<'_>,
    session: Option<&SessionKey>,
    state: Option<JobState>,
    limit: usize,
) -> Result<Vec<TurnJob>> {
    const ALL: &str = select!("WHERE CAST($1 AS TEXT) IS NULL OR state = $1 ORDER BY seq DESC LIMIT $2");
    const OF_SESSION: &str = select!(
        "WHERE session_key = $3 AND (CAST($1 AS TEXT) IS NULL OR state = $1) ORDER BY seq DESC LIMIT $2"
    );
    let state = state.map(JobState::as_str);
    match session {
        Some(session) => tx.query(OF_SESSION, params![state, limit, session], turn_job_from_row),
        None => tx.query(ALL, params![state, limit], turn_job_from_row),
    }
}

/// Counts queued and running turns for the health page.
pub fn count_by_state(tx: &mut Tx<'_>) -> Result<Vec<(String, i64)>> {
    const SQL: &str = "SELECT 'queued', COUNT(*) FROM jobs WHERE state = 'queued' HAVING COUNT(*) > 0
        UNION ALL SELECT 'running', COUNT(*) FROM jobs WHERE state = 'running' HAVING COUNT(*) > 0";
    tx.query(SQL, &[], |row| Ok((row.text(0)?, row.int(1)?)))
}

fn turn_job_from_row(row: &Row<'_>) -> Result<TurnJob> {
    let tokens = |at| -> Result<Option<u64>> { Ok(row.opt_int(at)?.and_then(|n| u64::try_from(n).ok())) };
    Ok(TurnJob {
        turn: TurnId::new(row.text(0)?),
        session: row.session_key(1)?,
        agent: row.agent_id(2)?,
        lane: row.parse_column(3, JobLane::parse)?,
        state: row.parse_column(4, JobState::parse)?,
        attempt: row.as_u32(5)?,
        hop: row.as_u32(6)?,
        trace: TraceId::new(row.text(7)?),
        cancel: row.flag(8)?,
        model: row.opt_text(9)?,
        usage: TokenUsage {
            input_tokens: tokens(10)?,
            output_tokens: tokens(11)?,
            cached_tokens: tokens(12)?,
        },
        reply: row.opt_text(13)?.map(MessageId::new),
        continued_by: row.opt_text(14)?.map(TurnId::new),
        error_code: row.opt_text(15)?,
        error: row.opt_text(16)?,
        node: row.opt_text(17)?.map(NodeId::new),
        queued_at: row.time(18)?,
        started_at: row.opt_time(19)?,
        ended_at: row.opt_time(20)?,
    })
}
