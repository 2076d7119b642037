//! Claiming, leasing and taking over turns. A lease names its node and attempt, so a node that was away too long cannot
//! write for a turn that another node has taken over.

use polyclaw_domain::id::{AgentId, NodeId, TraceId, TurnId};
use polyclaw_domain::job::{JobLane, JobPriority};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::jobs::{JobLease, NewTurnJob, TurnJobKind, insert_with_lease};
use crate::tx::{Row, Tx};
use crate::{params, sessions};

/// A job that has waited this long counts as the most urgent.
const URGENT_AFTER_MS: i64 = 30_000;

/// The right to run one turn until the lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnClaim {
    pub turn: TurnId,
    pub session: SessionKey,
    pub agent: AgentId,
    pub kind: TurnJobKind,
    pub lane: JobLane,
    pub node: NodeId,
    pub attempt: u32,
    /// Consecutive deaths of its process that are blamed on this turn.
    pub blamed_deaths: u32,
    /// The inputs waited behind another turn and must move behind what that turn stored.
    pub was_held: bool,
    pub inputs: usize,
    /// A person's message is among the inputs: interrupted tasks wait for a later turn.
    pub has_person: bool,
    /// A person requested a stop before the turn was taken over.
    pub stopping: bool,
    pub hop: u32,
    pub trace: TraceId,
}

/// The claiming node and the length of its lease.
#[derive(Clone, Debug)]
pub struct TurnClaimer {
    pub node: NodeId,
    pub now: Millis,
    pub lease_ms: i64,
    /// The agent served last in this lane. Among equals it comes last.
    pub last: Option<AgentId>,
}

/// Starts the next job of a lane. The order is: the agent's priority, fewest running turns of the agent, the job's
/// priority, order of arrival. A job that has waited too long gets the highest of both priorities.
pub fn claim_next(tx: &mut Tx<'_>, lane: JobLane, claimer: &TurnClaimer) -> Result<Option<TurnClaim>> {
    let Some((first, last)) = ready_agents(tx, lane)? else { return Ok(None) };
    let agent = if first == last { Some(first) } else { select_next_agent(tx, lane, claimer)? };
    let Some(agent) = agent else { return Ok(None) };
    for head in list_ready_jobs(tx, lane, &agent, claimer.now)? {
        if sessions::try_lock(tx, &head.session)?
            && let Some(claim) = start_job(tx, head.seq, claimer)?
        {
            return Ok(Some(claim));
        }
    }
    Ok(None)
}

/// Returns the first and last agent with a ready job. Usually they are the same, and nothing has to be compared.
fn ready_agents(tx: &mut Tx<'_>, lane: JobLane) -> Result<Option<(AgentId, AgentId)>> {
    const SQL: &str = "SELECT
        (SELECT MIN(agent_id) FROM jobs WHERE lane = $1 AND state = 'queued' AND held = 0),
        (SELECT MAX(agent_id) FROM jobs WHERE lane = $1 AND state = 'queued' AND held = 0)";
    let read = |row: &Row<'_>| match row.opt_text(0)? {
        Some(_) => Ok(Some((row.agent_id(0)?, row.agent_id(1)?))),
        None => Ok(None),
    };
    Ok(tx.query_one(SQL, params![lane.as_str()], read)?.flatten())
}

/// Walks the ready agents of a lane by skipping from one to the next in the index, without reading every job.
pub(crate) const NEXT_AGENT_SQL: &str = "WITH RECURSIVE ready (agent_id) AS (
      SELECT MIN(agent_id) FROM jobs WHERE lane = $1 AND state = 'queued' AND held = 0
      UNION ALL
      SELECT (SELECT MIN(j.agent_id) FROM jobs j
              WHERE j.lane = $1 AND j.state = 'queued' AND j.held = 0 AND j.agent_id > ready.agent_id)
      FROM ready WHERE ready.agent_id IS NOT NULL
    ), heads AS (
      SELECT ready.agent_id,
        COALESCE((SELECT a.priority FROM agent_specs a WHERE a.agent_id = ready.agent_id), 0) AS own,
        (SELECT j.seq FROM jobs j WHERE j.lane = $1 AND j.state = 'queued' AND j.held = 0
           AND j.agent_id = ready.agent_id ORDER BY j.priority, j.seq LIMIT 1) AS seq,
        (SELECT COUNT(*) FROM jobs r WHERE r.lane = $1 AND r.state = 'running'
           AND r.agent_id = ready.agent_id) AS running
      FROM ready WHERE ready.agent_id IS NOT NULL
    )
    SELECT heads.agent_id FROM heads JOIN jobs ON jobs.seq = heads.seq
    ORDER BY CASE WHEN jobs.queued_at < $2 THEN (SELECT MAX(own) FROM heads) ELSE heads.own END DESC,
      heads.running, CASE WHEN jobs.queued_at < $2 THEN 0 ELSE jobs.priority END,
      CASE WHEN heads.agent_id = $3 THEN 1 ELSE 0 END, jobs.seq
    LIMIT 1";

fn select_next_agent(tx: &mut Tx<'_>, lane: JobLane, claimer: &TurnClaimer) -> Result<Option<AgentId>> {
    let last = claimer.last.as_ref().map_or("", AgentId::as_str);
    let aged = claimer.now.minus(URGENT_AFTER_MS);
    tx.query_one(NEXT_AGENT_SQL, params![lane.as_str(), aged, last], |row| row.agent_id(0))
}

/// A candidate for the next job.
struct ReadyJob {
    seq: i64,
    session: SessionKey,
    /// Priority; the highest one for a job that has waited too long.
    urgency: i64,
}

/// Lists the first jobs of each priority, read from the index one priority at a time, in the order they may run.
fn list_ready_jobs(tx: &mut Tx<'_>, lane: JobLane, agent: &AgentId, now: Millis) -> Result<Vec<ReadyJob>> {
    const SQL: &str = "SELECT seq, session_key, queued_at FROM jobs
        WHERE lane = $1 AND agent_id = $2 AND priority = $3 AND state = 'queued' AND held = 0
        ORDER BY seq LIMIT 8";
    let aged = now.minus(URGENT_AFTER_MS);
    let mut heads = Vec::new();
    for priority in JobPriority::ALL {
        let priority = priority as i64;
        let read = |row: &Row<'_>| {
            let urgency = if row.time(2)? < aged { 0 } else { priority };
            Ok(ReadyJob { seq: row.int(0)?, session: row.session_key(1)?, urgency })
        };
        heads.extend(tx.query(SQL, params![lane.as_str(), agent, priority], read)?);
    }
    heads.sort_by_key(|head| (head.urgency, head.seq));
    Ok(heads)
}

fn start_job(tx: &mut Tx<'_>, seq: i64, claimer: &TurnClaimer) -> Result<Option<TurnClaim>> {
    const SQL: &str = "UPDATE jobs SET state = 'running', node = $2, lease_until = $3, attempt = attempt + 1,
          started_at = $4
        WHERE seq = $1 AND state = 'queued' AND held = 0
        RETURNING turn_id, session_key, agent_id, kind, lane, node, attempt, was_held, inputs, is_steering, hop,
          trace_id, cancel, blamed_deaths";
    let now = tx.lease_clock(claimer.now);
    // The transaction's clock, so that a turn never seems to start before its predecessor ended.
    tx.query_one(SQL, params![seq, &claimer.node, now.plus(claimer.lease_ms), now], turn_claim_from_row)
}

/// Inserts a job that is already claimed. Nothing may wait in its lane, and no turn of its session may be running.
pub fn insert_claimed(tx: &mut Tx<'_>, job: &NewTurnJob, claimer: &TurnClaimer) -> Result<TurnClaim> {
    let now = tx.lease_clock(claimer.now);
    let lease = JobLease { node: &claimer.node, from: now, until: now.plus(claimer.lease_ms) };
    insert_with_lease(tx, job, Some(&lease))?;
    Ok(TurnClaim {
        turn: job.turn.clone(),
        session: job.session.clone(),
        agent: job.agent.clone(),
        kind: job.kind,
        lane: job.lane,
        node: claimer.node.clone(),
        attempt: 1,
        blamed_deaths: 0,
        was_held: false,
        inputs: job.inputs,
        has_person: job.is_steering,
        stopping: false,
        hop: job.hop,
        trace: job.trace.clone(),
    })
}

/// The result of renewing a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimRenewal {
    Renewed,
    /// The turn has ended, so there is nothing to renew.
    Ended,
    /// A person requested a stop, or another node has the turn.
    Stop,
}

pub fn renew_claim(tx: &mut Tx<'_>, claim: &TurnClaim, now: Millis, lease_ms: i64) -> Result<ClaimRenewal> {
    const FIND: &str = "SELECT state, cancel FROM jobs WHERE turn_id = $1";
    const RENEW: &str = "UPDATE jobs SET lease_until = $4
        WHERE turn_id = $1 AND node = $2 AND attempt = $3 AND state = 'running'";
    let until = tx.lease_clock(now).plus(lease_ms);
    let kept = tx.execute(RENEW, params![&claim.turn, &claim.node, claim.attempt, until])? == 1;
    let found = tx.query_one(FIND, params![&claim.turn], |row| Ok((row.text(0)?, row.flag(1)?)))?;
    Ok(match found {
        Some((state, _)) if state != "running" => ClaimRenewal::Ended,
        Some((_, false)) if kept => ClaimRenewal::Renewed,
        _ => ClaimRenewal::Stop,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimStatus {
    Valid,
    /// The claim is valid, but a person requested a stop.
    Stopping,
    Lost,
}

/// Checks whether this node still holds the claim, before each stored step. The row is locked, so that a takeover waits
/// for the step and finds it.
pub fn verify_claim(tx: &mut Tx<'_>, claim: &TurnClaim) -> Result<ClaimStatus> {
    const SQL: &str = "SELECT cancel FROM jobs
        WHERE turn_id = $1 AND node = $2 AND attempt = $3 AND state = 'running' /* lock */";
    let params = params![&claim.turn, &claim.node, claim.attempt];
    Ok(match tx.query_one(SQL, params, |row| row.flag(0))? {
        Some(false) => ClaimStatus::Valid,
        Some(true) => ClaimStatus::Stopping,
        None => ClaimStatus::Lost,
    })
}

/// Whether a session's last turn ran on this node, including its earlier processes. A session without turns is hosted
/// by every node.
pub fn is_session_host(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    node: &NodeId,
    node_name: Option<&str>,
) -> Result<bool> {
    const SQL: &str =
        "SELECT node FROM jobs WHERE session_key = $1 AND node IS NOT NULL AND node <> 'handed-back'
        ORDER BY seq DESC LIMIT 1";
    let host = tx.query_one(SQL, params![session], |row| row.text(0))?;
    Ok(host.is_none_or(|host| host == node.as_str() || host.starts_with(&earlier_epoch_prefix(node_name))))
}

/// Returns the prefix of the names of a node's earlier processes. Without a node name every other node matches: a
/// SQLite file has one process at a time, so turns of others have no owner.
pub(crate) fn earlier_epoch_prefix(node_name: Option<&str>) -> String {
    node_name.map_or_else(String::new, |node_name| format!("{node_name}/"))
}

/// Takes over an orphan; `None` if another node was faster.
pub fn take_over_orphan(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    claimer: &TurnClaimer,
    node_name: Option<&str>,
) -> Result<Option<TurnClaim>> {
    // A node that takes over from itself must have its next death counted again.
    const SQL: &str = "UPDATE jobs SET node = $2, lease_until = $3, attempt = attempt + 1,
          cut_off_node = CASE WHEN cut_off_node = $2 THEN NULL ELSE cut_off_node END
        WHERE turn_id = $1 AND state = 'running'
          AND (lease_until < $4 OR node <> $2 AND substr(node, 1, length($5)) = $5)
        RETURNING turn_id, session_key, agent_id, kind, lane, node, attempt, was_held, inputs, is_steering, hop,
          trace_id, cancel, blamed_deaths";
    let now = tx.lease_clock(claimer.now);
    let earlier = earlier_epoch_prefix(node_name);
    tx.query_one(
        SQL,
        params![turn, &claimer.node, now.plus(claimer.lease_ms), now, &earlier],
        turn_claim_from_row,
    )
}

fn turn_claim_from_row(row: &Row<'_>) -> Result<TurnClaim> {
    Ok(TurnClaim {
        turn: TurnId::new(row.text(0)?),
        session: row.session_key(1)?,
        agent: row.agent_id(2)?,
        kind: row.parse_column(3, TurnJobKind::parse)?,
        lane: row.parse_column(4, JobLane::parse)?,
        node: NodeId::new(row.text(5)?),
        attempt: row.as_u32(6)?,
        was_held: row.flag(7)?,
        inputs: row.count(8)?,
        has_person: row.flag(9)?,
        hop: row.as_u32(10)?,
        trace: TraceId::new(row.text(11)?),
        stopping: row.flag(12)?,
        blamed_deaths: row.as_u32(13)?,
    })
}
