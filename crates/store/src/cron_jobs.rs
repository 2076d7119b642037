//! Cron jobs: how far each schedule has been processed, and the jobs that are not in the config file.

use polyclaw_domain::config::CronJobConfig;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::tx::{Row, Tx};

/// A cron job created at run time.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCronJob {
    pub job: CronJobConfig,
    /// `None` if a person created it.
    pub created_by: Option<CronJobCreator>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

/// The agent that created a cron job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronJobCreator {
    pub agent: AgentId,
    /// The people it was created for, in the form used by sender rules.
    pub on_behalf_of: Vec<String>,
}

/// Returns the time up to which a schedule was processed. A schedule that is new or has changed starts now.
pub fn get_or_init_last_due(tx: &mut Tx<'_>, id: &str, rule: &str, now: Millis) -> Result<Millis> {
    const FIND_SAME_RULE: &str = "SELECT last_due FROM cron_schedules WHERE schedule_id = $1 AND rule = $2";
    const INSERT_OR_RESET: &str =
        "INSERT INTO cron_schedules (schedule_id, rule, last_due, updated_at) VALUES ($1, $2, $3, $3)
        ON CONFLICT (schedule_id) DO UPDATE SET rule = excluded.rule, last_due = excluded.last_due,
            updated_at = excluded.updated_at";
    if let Some(last) = tx.query_one(FIND_SAME_RULE, params![id, rule], |row| row.int(0))? {
        return Ok(Millis(last));
    }
    tx.execute(INSERT_OR_RESET, params![id, rule, now])?;
    Ok(now)
}

/// Like `get_or_init_last_due`, without starting the schedule.
pub fn find_last_due(tx: &mut Tx<'_>, id: &str) -> Result<Option<Millis>> {
    const SQL: &str = "SELECT last_due FROM cron_schedules WHERE schedule_id = $1";
    Ok(tx.query_one(SQL, params![id], |row| row.int(0))?.map(Millis))
}

/// Moves a schedule back to `now` after the clock was set back.
pub fn rewind_last_due(tx: &mut Tx<'_>, id: &str, now: Millis) -> Result<()> {
    const SQL: &str =
        "UPDATE cron_schedules SET last_due = $2, updated_at = $2 WHERE schedule_id = $1 AND last_due > $2";
    tx.execute(SQL, params![id, now]).map(drop)
}

/// Records that a due time was run or skipped. It never moves back.
pub fn advance_last_due(tx: &mut Tx<'_>, id: &str, due: Millis, now: Millis) -> Result<()> {
    const SQL: &str = "UPDATE cron_schedules SET last_due = $2, updated_at = $3
        WHERE schedule_id = $1 AND last_due < $2";
    tx.execute(SQL, params![id, due, now]).map(drop)
}

/// Stores a new job. Returns false if the name is taken.
pub fn insert(
    tx: &mut Tx<'_>,
    job: &CronJobConfig,
    made_by: Option<&CronJobCreator>,
    now: Millis,
) -> Result<bool> {
    const SQL: &str =
        "INSERT INTO cron_jobs (job_id, job_json, created_by, requested_by, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT (job_id) DO NOTHING";
    let (agent, asked_by) = made_by.map(|by| (&by.agent, to_json(&by.on_behalf_of))).unzip();
    let (json, asked_by) = (to_json(job)?, asked_by.transpose()?);
    let added = tx.execute(SQL, params![&job.id, &json, agent, asked_by.as_deref(), now])? > 0;
    tx.notify_nodes(CRON_JOBS_SIGNAL)?;
    Ok(added)
}

/// Replaces a job. Returns false if there is none of this name.
pub fn update(tx: &mut Tx<'_>, job: &CronJobConfig, now: Millis) -> Result<bool> {
    const SQL: &str = "UPDATE cron_jobs SET job_json = $2, updated_at = $3 WHERE job_id = $1";
    let changed = tx.execute(SQL, params![&job.id, &to_json(job)?, now])? > 0;
    tx.notify_nodes(CRON_JOBS_SIGNAL)?;
    Ok(changed)
}

/// Removes a job and the progress of its schedule, so that a later job of the same name starts fresh.
pub fn remove(tx: &mut Tx<'_>, id: &str) -> Result<bool> {
    let removed = tx.execute("DELETE FROM cron_jobs WHERE job_id = $1", params![id])? > 0;
    if removed {
        tx.execute("DELETE FROM cron_schedules WHERE schedule_id = $1", params![id])?;
    }
    tx.notify_nodes(CRON_JOBS_SIGNAL)?;
    Ok(removed)
}

/// Removes the jobs created for a sender, and returns their number.
pub fn remove_by_requester(tx: &mut Tx<'_>, sender: &str) -> Result<usize> {
    let is_theirs = |one: &StoredCronJob| {
        one.created_by.as_ref().is_some_and(|maker| maker.on_behalf_of.iter().any(|by| by == sender))
    };
    let theirs: Vec<StoredCronJob> = list(tx)?.into_iter().filter(is_theirs).collect();
    for one in &theirs {
        remove(tx, &one.job.id)?;
    }
    Ok(theirs.len())
}

pub fn get(tx: &mut Tx<'_>, id: &str) -> Result<Option<StoredCronJob>> {
    const SQL: &str =
        "SELECT job_json, created_by, requested_by, created_at, updated_at FROM cron_jobs WHERE job_id = $1";
    tx.query_one(SQL, params![id], cron_job_from_row)
}

pub fn list(tx: &mut Tx<'_>) -> Result<Vec<StoredCronJob>> {
    const SQL: &str =
        "SELECT job_json, created_by, requested_by, created_at, updated_at FROM cron_jobs ORDER BY job_id";
    tx.query(SQL, &[], cron_job_from_row)
}

pub fn count(tx: &mut Tx<'_>) -> Result<usize> {
    Ok(tx.query_one("SELECT COUNT(*) FROM cron_jobs", &[], |row| row.count(0))?.unwrap_or(0))
}

/// Signal to other nodes that cron jobs have changed.
pub const CRON_JOBS_SIGNAL: &str = "cron_jobs";

fn cron_job_from_row(row: &Row<'_>) -> Result<StoredCronJob> {
    let agent = row.parse_opt_column(1, |id| AgentId::parse(id).ok())?;
    let asked_by = row.opt_text(2)?.map(|json| from_json(&json)).transpose()?.unwrap_or_default();
    Ok(StoredCronJob {
        job: from_json(&row.text(0)?)?,
        created_by: agent.map(|agent| CronJobCreator { agent, on_behalf_of: asked_by }),
        created_at: row.time(3)?,
        updated_at: row.time(4)?,
    })
}
