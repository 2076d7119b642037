//! Failure streaks of team members, and when each is retried.

use polyclaw_domain::id::TeamId;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::failures::FailureStreak;
use polyclaw_domain::time::Millis;

use crate::error::{Error, Result};
use crate::params;
use crate::tx::{Row, Tx};

/// A due time for retrying a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRetry {
    pub team: TeamId,
    pub name: String,
    pub at: Millis,
}

/// Records a failed turn of a member.
pub fn record_failure(tx: &mut Tx<'_>, team: &TeamId, name: &str, code: &str, now: Millis) -> Result<()> {
    const SQL: &str = "INSERT INTO member_failures (team_id, name, since, code, failures, retry_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (team_id, name) DO UPDATE SET code = excluded.code, failures = excluded.failures,
          retry_at = excluded.retry_at";
    let next = FailureStreak::after_failure(get_failure_streak(tx, team, name)?, code, now);
    let params = params![team, name, next.since, &next.code, i64::from(next.failures), next.retry_at];
    tx.execute(SQL, params).map(drop)
}

/// Ends a failure streak after a successful turn, or when the name is given to another session.
pub fn clear_failures(tx: &mut Tx<'_>, team: &TeamId, name: &str) -> Result<()> {
    const SQL: &str = "DELETE FROM member_failures WHERE team_id = $1 AND name = $2";
    tx.execute(SQL, params![team, name]).map(drop)
}

pub fn get_failure_streak(tx: &mut Tx<'_>, team: &TeamId, name: &str) -> Result<Option<FailureStreak>> {
    const SQL: &str =
        "SELECT since, code, failures, retry_at, name FROM member_failures WHERE team_id = $1 AND name = $2";
    tx.query_one(SQL, params![team, name], failure_streak_from_row)
}

/// Lists a team's failure streaks by name.
pub fn list_failure_streaks(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<(String, FailureStreak)>> {
    const SQL: &str =
        "SELECT since, code, failures, retry_at, name FROM member_failures WHERE team_id = $1 ORDER BY name";
    tx.query(SQL, params![team], |row| Ok((row.text(4)?, failure_streak_from_row(row)?)))
}

/// Lists all scheduled retries in all teams, earliest first.
pub fn list_retries(tx: &mut Tx<'_>) -> Result<Vec<MemberRetry>> {
    const SQL: &str =
        "SELECT team_id, name, retry_at FROM member_failures WHERE retry_at IS NOT NULL ORDER BY retry_at";
    tx.query(SQL, &[], |row| {
        Ok(MemberRetry { team: TeamId::new(row.text(0)?), name: row.text(1)?, at: row.time(2)? })
    })
}

/// Takes a retry and schedules the next. Returns `false` if it was taken before or cancelled.
pub fn claim_retry(tx: &mut Tx<'_>, retry: &MemberRetry, next: Option<Millis>) -> Result<bool> {
    const SQL: &str =
        "UPDATE member_failures SET retry_at = $4 WHERE team_id = $1 AND name = $2 AND retry_at = $3";
    Ok(tx.execute(SQL, params![&retry.team, &retry.name, retry.at, next])? > 0)
}

/// Retries the failing members of a lead's teams now, because a person wrote to the lead.
pub fn retry_teams_led_by(tx: &mut Tx<'_>, lead: &SessionKey, now: Millis) -> Result<usize> {
    const SQL: &str = "UPDATE member_failures SET retry_at = $2
        WHERE team_id IN (SELECT t.team_id FROM teams t WHERE t.lead_key = $1 AND t.status <> 'shutdown')";
    tx.execute(SQL, params![lead, now])
}

/// Cancels automatic retries of a session that a person stopped, and of members it leads.
pub fn cancel_retries(tx: &mut Tx<'_>, session: &SessionKey) -> Result<usize> {
    const SQL: &str = "UPDATE member_failures SET retry_at = NULL WHERE retry_at IS NOT NULL
        AND (team_id IN (SELECT t.team_id FROM teams t WHERE t.lead_key = $1)
          OR EXISTS (SELECT 1 FROM members m WHERE m.session_key = $1
            AND m.team_id = member_failures.team_id AND m.name = member_failures.name))";
    tx.execute(SQL, params![session])
}

fn failure_streak_from_row(row: &Row<'_>) -> Result<FailureStreak> {
    let failures = u32::try_from(row.int(2)?);
    Ok(FailureStreak {
        since: row.time(0)?,
        code: row.text(1)?,
        failures: failures.map_err(|error| Error::Unreadable(error.to_string()))?,
        retry_at: row.opt_time(3)?,
    })
}
