//! Shutdown requests to team members, and their answers.

use polyclaw_domain::id::TeamId;
use polyclaw_domain::team::shutdown::{ShutdownAnswer, ShutdownRequest};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::{Row, Tx};

pub fn insert_shutdown_request(
    tx: &mut Tx<'_>,
    team: &TeamId,
    request: &ShutdownRequest,
    now: Millis,
) -> Result<()> {
    const SQL: &str = "INSERT INTO shutdown_requests (request_id, team_id, member, deadline, created_at)
        VALUES ($1, $2, $3, $4, $5)";
    tx.execute(SQL, params![&request.id, team, &request.member, request.deadline, now]).map(drop)
}

/// Binds a call to the team it ends. Returns `false` if it is bound to another team.
pub fn record_shutdown_call(tx: &mut Tx<'_>, call: &str, team: &TeamId) -> Result<bool> {
    const SQL: &str =
        "INSERT INTO shutdown_calls (call_id, team_id) VALUES ($1, $2) ON CONFLICT (call_id) DO NOTHING";
    const FIND_SAME_TEAM: &str = "SELECT COUNT(*) FROM shutdown_calls WHERE call_id = $1 AND team_id = $2";
    tx.execute(SQL, params![call, team])?;
    Ok(tx.query_one(FIND_SAME_TEAM, params![call, team], |row| row.int(0))?.unwrap_or(0) > 0)
}

pub fn list_shutdown_requests(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<ShutdownRequest>> {
    const SQL: &str = "SELECT request_id, member, deadline, answer_json FROM shutdown_requests
        WHERE team_id = $1 ORDER BY member";
    tx.query(SQL, params![team], shutdown_request_from_row)
}

/// Stores the first answer. Returns `false` if there is one already, or no such request.
pub fn record_shutdown_answer(tx: &mut Tx<'_>, id: &str, answer: &ShutdownAnswer) -> Result<bool> {
    const SQL: &str = "UPDATE shutdown_requests SET answer_json = $2
        WHERE request_id = $1 AND answer_json IS NULL";
    Ok(tx.execute(SQL, params![id, &to_json(answer)?])? > 0)
}

/// Deletes answered requests.
pub fn delete_answered_requests(tx: &mut Tx<'_>, team: &TeamId) -> Result<()> {
    const SQL: &str = "DELETE FROM shutdown_requests WHERE team_id = $1 AND answer_json IS NOT NULL";
    tx.execute(SQL, params![team]).map(drop)
}

/// Deletes the request to one member.
pub(super) fn delete_request_of_member(tx: &mut Tx<'_>, team: &TeamId, member: &str) -> Result<()> {
    const SQL: &str = "DELETE FROM shutdown_requests WHERE team_id = $1 AND member = $2";
    tx.execute(SQL, params![team, member]).map(drop)
}

/// Deletes all requests of a team that continues. An ended team keeps them, for queries about its end.
pub fn delete_shutdown_requests(tx: &mut Tx<'_>, team: &TeamId) -> Result<()> {
    tx.execute("DELETE FROM shutdown_requests WHERE team_id = $1", params![team]).map(drop)
}

fn shutdown_request_from_row(row: &Row<'_>) -> Result<ShutdownRequest> {
    Ok(ShutdownRequest {
        id: row.text(0)?,
        member: row.text(1)?,
        deadline: row.time(2)?,
        answer: row.opt_text(3)?.map(|json| from_json(&json)).transpose()?,
    })
}
