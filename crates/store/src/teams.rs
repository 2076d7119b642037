//! Teams, with their leads, members and shutdown requests.

mod activity;
mod failures;
mod members;
mod shutdown_requests;

use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{AgentId, TeamId, TraceId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{LEAD_NAME, Team, TeamStatus};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::team_messages;
use crate::tx::{Row, Tx};

pub use activity::{TeamActivity, list_activity, list_ledger_activity};
pub use failures::{
    MemberRetry, cancel_retries, claim_retry, clear_failures, get_failure_streak, list_failure_streaks,
    list_retries, record_failure, retry_teams_led_by,
};
pub use members::{
    MemberTurnEnd, add_member, clear_turn_end, find_member_by_session, find_waiting_turn, get_member,
    list_members, list_members_at_work, list_members_with_runs, list_members_with_turns,
    list_members_without_session, list_turn_ends, record_turn_end, replace_member, set_member_state,
    set_plan_approval,
};
use shutdown_requests::delete_request_of_member;
pub use shutdown_requests::{
    delete_answered_requests, delete_shutdown_requests, insert_shutdown_request, list_shutdown_requests,
    record_shutdown_answer, record_shutdown_call,
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

/// Signal to other nodes that a team was created; its members may work on any node.
pub const TEAMS_SIGNAL: &str = "teams";

/// Inserts a team. Its name must be unique among teams that have not ended.
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
    tx.notify_nodes(TEAMS_SIGNAL)
}

pub fn get(tx: &mut Tx<'_>, id: &TeamId) -> Result<Option<Team>> {
    tx.query_one(select!("WHERE team_id = $1"), params![id], team_from_row)
}

/// Returns the open team of this name.
pub fn find_open_by_name(tx: &mut Tx<'_>, name: &str) -> Result<Option<Team>> {
    tx.query_one(select!("WHERE name = $1 AND status <> 'shutdown'"), params![name], team_from_row)
}

/// Locks the team's row for this transaction.
pub fn lock_team(tx: &mut Tx<'_>, id: &TeamId) -> Result<Option<Team>> {
    tx.query_one(select!("WHERE team_id = $1 /* hold */"), params![id], team_from_row)
}

/// Lists open teams by name.
pub fn list_open(tx: &mut Tx<'_>) -> Result<Vec<Team>> {
    tx.query(select!("WHERE status <> 'shutdown' ORDER BY name"), &[], team_from_row)
}

/// Lists ended teams, newest first.
pub fn list_ended(tx: &mut Tx<'_>, limit: usize) -> Result<Vec<Team>> {
    tx.query(
        select!("WHERE status = 'shutdown' ORDER BY updated_at DESC LIMIT $1"),
        params![limit],
        team_from_row,
    )
}

/// Lists ended teams of a name, newest first.
pub fn list_ended_by_name(tx: &mut Tx<'_>, name: &str) -> Result<Vec<Team>> {
    const SQL: &str =
        select!("WHERE name = $1 AND status = 'shutdown' ORDER BY updated_at DESC, team_id DESC");
    tx.query(SQL, params![name], team_from_row)
}

/// Returns the team that a call was bound to end.
pub fn find_by_shutdown_call(tx: &mut Tx<'_>, call: &str) -> Result<Option<Team>> {
    const SQL: &str = select!("WHERE team_id = (SELECT team_id FROM shutdown_calls WHERE call_id = $1)");
    tx.query_one(SQL, params![call], team_from_row)
}

/// Lists the teams a session leads, including ended ones.
pub fn list_led_by(tx: &mut Tx<'_>, lead: &SessionKey) -> Result<Vec<Team>> {
    tx.query(select!("WHERE lead_key = $1 ORDER BY created_at, team_id"), params![lead], team_from_row)
}

/// Changes the status. Returns `false` if the current one is not in `from`.
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

/// Makes another session the lead. It also gets the messages that wait for the lead, or that the previous lead was
/// shown in a turn that has not ended.
pub fn set_lead(tx: &mut Tx<'_>, id: &TeamId, lead: &SessionKey, agent: &AgentId, now: Millis) -> Result<()> {
    const SQL: &str = "UPDATE teams SET lead_key = $2, lead_agent = $3, updated_at = $4 WHERE team_id = $1";
    let is_another = lock_team(tx, id)?.is_some_and(|team| team.lead != *lead);
    tx.execute(SQL, params![id, lead, agent, now])?;
    if !is_another {
        return Ok(());
    }
    clear_failures(tx, id, LEAD_NAME)?;
    team_messages::requeue_by_recipient(tx, id, LEAD_NAME)
}

/// Sets the trace and addresses of a person's latest message to the lead, for which the team now works.
pub fn set_request_origin(
    tx: &mut Tx<'_>,
    lead: &SessionKey,
    trace: &TraceId,
    reply_to: &[ChatAddress],
) -> Result<()> {
    const SQL: &str = "UPDATE teams SET trace_id = $2, reply_to_json = $3
        WHERE lead_key = $1 AND status <> 'shutdown'";
    tx.execute(SQL, params![lead, trace, &to_json(&reply_to)?]).map(drop)
}

/// Lowers the team's authority to that of the people it acted for.
pub fn lower_authority(tx: &mut Tx<'_>, id: &TeamId, authority: Authority) -> Result<()> {
    const SQL: &str = "UPDATE teams SET authority = $2 WHERE team_id = $1";
    match lock_team(tx, id)? {
        Some(team) if team.authority > authority => {
            tx.execute(SQL, params![id, authority.as_str()]).map(drop)
        }
        _ => Ok(()),
    }
}

/// Records that a ledger event was relayed. Returns `false` if it was before.
pub fn mark_event_relayed(tx: &mut Tx<'_>, id: &TeamId, seq: i64) -> Result<bool> {
    const SQL: &str = "INSERT INTO relayed_task_events (team_id, seq) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    Ok(tx.execute(SQL, params![id, seq])? > 0)
}

fn team_from_row(row: &Row<'_>) -> Result<Team> {
    Ok(Team {
        id: TeamId::new(row.text(0)?),
        name: row.text(1)?,
        description: row.text(2)?,
        agent_type: row.text(3)?,
        status: row.parse_column(4, TeamStatus::parse)?,
        lead: row.session_key(5)?,
        lead_agent: row.agent_id(6)?,
        trace: TraceId::new(row.text(7)?),
        reply_to: from_json(&row.text(8)?)?,
        authority: row.parse_column(9, Authority::parse)?,
        created_at: row.time(10)?,
        updated_at: row.time(11)?,
    })
}
