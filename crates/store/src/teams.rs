//! Teams: who leads, who belongs to them, and who was asked to stop.

mod activity;
mod members;
mod requests;
mod setbacks;

use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{AgentId, TeamId, TraceId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{LEAD_NAME, Team, TeamStatus};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::letters;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::{Row, Tx};

pub use activity::{Activity, activity, ledger_activity};
pub use members::{
    Rested, add_member, at_work, member, member_of, members, note_ended, note_known, replace_member, rested,
    set_member_state, set_plan, waiting_turn, with_runs, with_turns, without_session,
};
use requests::drop_request_of;
pub use requests::{answer, ask, drop_answered, drop_requests, note_call, requests};
pub use setbacks::{
    Retry, drop_retries, forget_failures, note_failure, retries, retry_led_by, setback, setbacks, take_retry,
};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT team_id, name, description, agent_type, status, lead_key, lead_agent, trace_id, reply_to_json,
             authority, created_at, updated_at FROM teams ",
            $rest
        )
    };
}

/// What other nodes hear when a team begins: its members may work on any of them.
pub const BEGUN: &str = "teams";

/// The name is taken while the team has not ended: two of one name are a conflict.
pub fn insert(tx: &mut Tx<'_>, team: &Team) -> Result<()> {
    const SQL: &str =
        "INSERT INTO teams (team_id, name, description, agent_type, status, lead_key, lead_agent,
          trace_id, reply_to_json, authority, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let reply_to = to_json(&team.reply_to)?;
    let params = params![
        &team.id,
        &team.name,
        &team.description,
        &team.agent_type,
        team.status.as_str(),
        &team.lead,
        &team.lead_agent,
        &team.trace,
        &reply_to,
        team.authority.as_str(),
        team.created_at,
        team.updated_at,
    ];
    tx.execute(SQL, params)?;
    tx.notify(BEGUN)
}

pub fn get(tx: &mut Tx<'_>, id: &TeamId) -> Result<Option<Team>> {
    tx.query_one(select!("WHERE team_id = $1"), params![id], read)
}

/// The team that bears a name now.
pub fn named(tx: &mut Tx<'_>, name: &str) -> Result<Option<Team>> {
    tx.query_one(select!("WHERE name = $1 AND status <> 'shutdown'"), params![name], read)
}

/// Takes the team's row for this transaction.
pub fn lock(tx: &mut Tx<'_>, id: &TeamId) -> Result<Option<Team>> {
    tx.query_one(select!("WHERE team_id = $1 /* hold */"), params![id], read)
}

/// Teams that have not ended, by name.
pub fn open(tx: &mut Tx<'_>) -> Result<Vec<Team>> {
    tx.query(select!("WHERE status <> 'shutdown' ORDER BY name"), &[], read)
}

/// Those that have ended, the newest first.
pub fn ended(tx: &mut Tx<'_>, limit: usize) -> Result<Vec<Team>> {
    tx.query(select!("WHERE status = 'shutdown' ORDER BY updated_at DESC LIMIT $1"), params![limit], read)
}

/// Those of a name that have ended, the newest first.
pub fn ended_of(tx: &mut Tx<'_>, name: &str) -> Result<Vec<Team>> {
    const SQL: &str =
        select!("WHERE name = $1 AND status = 'shutdown' ORDER BY updated_at DESC, team_id DESC");
    tx.query(SQL, params![name], read)
}

/// The team that a call was made to end.
pub fn of_call(tx: &mut Tx<'_>, call: &str) -> Result<Option<Team>> {
    const SQL: &str = select!("WHERE team_id = (SELECT team_id FROM shutdown_calls WHERE call_id = $1)");
    tx.query_one(SQL, params![call], read)
}

/// Teams that a session leads, and those it led that ended.
pub fn led_by(tx: &mut Tx<'_>, lead: &SessionKey) -> Result<Vec<Team>> {
    tx.query(select!("WHERE lead_key = $1 ORDER BY created_at, team_id"), params![lead], read)
}

/// Moves from one status to another; `false` if it was in neither.
pub fn set_status(
    tx: &mut Tx<'_>,
    id: &TeamId,
    (from, to): (&[TeamStatus], TeamStatus),
    now: Millis,
) -> Result<bool> {
    const SQL: &str = "UPDATE teams SET status = $3, updated_at = $4 WHERE team_id = $1 AND status = $2";
    for from in from {
        if tx.execute(SQL, params![id, from.as_str(), to.as_str(), now])? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Gives a team to another session, with the mail that waits for its lead or that the earlier one was shown in a turn that
/// has not ended.
pub fn set_lead(tx: &mut Tx<'_>, id: &TeamId, lead: &SessionKey, agent: &AgentId, now: Millis) -> Result<()> {
    const SQL: &str = "UPDATE teams SET lead_key = $2, lead_agent = $3, updated_at = $4 WHERE team_id = $1";
    let is_another = lock(tx, id)?.is_some_and(|team| team.lead != *lead);
    tx.execute(SQL, params![id, lead, agent, now])?;
    if !is_another {
        return Ok(());
    }
    forget_failures(tx, id, LEAD_NAME)?;
    letters::give_back(tx, id, LEAD_NAME)
}

/// A person spoke to the lead: from here on the team works for that.
pub fn set_asked(
    tx: &mut Tx<'_>,
    lead: &SessionKey,
    trace: &TraceId,
    reply_to: &[ChatAddress],
) -> Result<()> {
    const SQL: &str = "UPDATE teams SET trace_id = $2, reply_to_json = $3
        WHERE lead_key = $1 AND status <> 'shutdown'";
    tx.execute(SQL, params![lead, trace, &to_json(&reply_to)?]).map(drop)
}

/// The team did something for people with this authority: it has no more from here on.
pub fn lower_authority(tx: &mut Tx<'_>, id: &TeamId, authority: Authority) -> Result<()> {
    const SQL: &str = "UPDATE teams SET authority = $2 WHERE team_id = $1";
    match lock(tx, id)? {
        Some(team) if team.authority > authority => {
            tx.execute(SQL, params![id, authority.as_str()]).map(drop)
        }
        _ => Ok(()),
    }
}

/// Notes that sessions are told an event of the team's ledger; `false` if they were before.
pub fn tell(tx: &mut Tx<'_>, id: &TeamId, seq: i64) -> Result<bool> {
    const SQL: &str = "INSERT INTO told (team_id, seq) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    Ok(tx.execute(SQL, params![id, seq])? > 0)
}

fn read(row: &Row<'_>) -> Result<Team> {
    Ok(Team {
        id: TeamId::new(row.text(0)?),
        name: row.text(1)?,
        description: row.text(2)?,
        agent_type: row.text(3)?,
        status: row.parsed(4, TeamStatus::parse)?,
        lead: row.key(5)?,
        lead_agent: row.agent(6)?,
        trace: TraceId::new(row.text(7)?),
        reply_to: from_json(&row.text(8)?)?,
        authority: row.parsed(9, Authority::parse)?,
        created_at: row.time(10)?,
        updated_at: row.time(11)?,
    })
}
