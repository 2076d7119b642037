//! The registry of a control plane, in a file of its own: its instances and their desired state. Whether an instance
//! runs is not stored here but read from the process table.

use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::{DesiredState, InstanceName, RestartPolicy};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

pub mod audit;
pub mod envelopes;
pub mod idempotency;
pub mod imports;
pub mod rules;
pub mod tokens;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceRecord {
    pub id: InstanceId,
    pub name: InstanceName,
    /// Path below the home; `.` is the home itself.
    pub folder: String,
    pub port: u16,
    pub desired_state: DesiredState,
    pub restart: RestartPolicy,
    /// Why the circuit breaker is open.
    pub broken: Option<String>,
    pub pid: Option<ProcessId>,
    pub archived_at: Option<Millis>,
    pub created_at: Millis,
    /// A requested restart is not done yet.
    pub restarting: bool,
}

/// A process: its id, and its start time in kernel ticks, because process ids are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId {
    pub number: i32,
    pub started: i64,
}

/// The name or port that is already in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceConflict {
    Name,
    Port,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, folder, port, desired_state, restart, broken, pid, pid_started, archived_at, created_at,
                restarting FROM instances ",
            $rest
        )
    };
}

fn instance_from_row(row: &Row<'_>) -> Result<InstanceRecord> {
    let pid = row.opt_int(7)?.and_then(|number| i32::try_from(number).ok());
    let started = row.opt_int(8)?.unwrap_or_default();
    Ok(InstanceRecord {
        id: InstanceId::new(row.text(0)?),
        name: row.parse_column(1, |text| InstanceName::parse(text).ok())?,
        folder: row.text(2)?,
        port: u16::try_from(row.int(3)?).unwrap_or_default(),
        desired_state: row.parse_column(4, DesiredState::parse)?,
        restart: row.parse_column(5, RestartPolicy::parse)?,
        broken: row.opt_text(6)?,
        pid: pid.map(|number| ProcessId { number, started }),
        archived_at: row.opt_time(9)?,
        created_at: row.time(10)?,
        restarting: row.int(11)? != 0,
    })
}

/// Adds an instance, unless its name or port is in use.
pub fn insert(tx: &mut Tx<'_>, one: &InstanceRecord) -> Result<Option<InstanceConflict>> {
    const SQL: &str = "INSERT INTO instances (id, name, folder, port, desired_state, restart, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    if let Some(taken) = find_conflict(tx, &one.name, one.port)? {
        return Ok(Some(taken));
    }
    let params = params![
        &one.id,
        one.name.as_str(),
        &one.folder,
        u32::from(one.port),
        one.desired_state.as_str(),
        one.restart.as_str(),
        one.created_at
    ];
    tx.execute(SQL, params)?;
    Ok(None)
}

pub fn find_conflict(tx: &mut Tx<'_>, name: &InstanceName, port: u16) -> Result<Option<InstanceConflict>> {
    const FIND_BY_NAME: &str =
        "SELECT 1 FROM instances WHERE LOWER(name) = LOWER($1) AND archived_at IS NULL";
    const FIND_BY_PORT: &str = "SELECT 1 FROM instances WHERE port = $1 AND archived_at IS NULL";
    let named = tx.query_one(FIND_BY_NAME, params![name.as_str()], |row| row.int(0))?;
    let listening = tx.query_one(FIND_BY_PORT, params![u32::from(port)], |row| row.int(0))?;
    Ok(named.map(|_| InstanceConflict::Name).or(listening.map(|_| InstanceConflict::Port)))
}

/// Lists active instances, then archived ones, each in the order of creation.
pub fn list(tx: &mut Tx<'_>) -> Result<Vec<InstanceRecord>> {
    tx.query(select!("ORDER BY archived_at IS NOT NULL, seq"), &[], instance_from_row)
}

pub fn get(tx: &mut Tx<'_>, id: &InstanceId) -> Result<Option<InstanceRecord>> {
    tx.query_one(select!("WHERE id = $1"), params![id], instance_from_row)
}

/// Finds an instance by id or name. A name refers to the active instance, else to the one archived last.
pub fn find_by_id_or_name(tx: &mut Tx<'_>, word: &str) -> Result<Option<InstanceRecord>> {
    const SQL: &str = select!(
        "WHERE id = $1 OR name = $1 ORDER BY id = $1 DESC, archived_at IS NOT NULL, archived_at DESC LIMIT 1"
    );
    tx.query_one(SQL, params![word], instance_from_row)
}

/// Sets the desired state. This also closes the circuit breaker.
pub fn set_desired_state(tx: &mut Tx<'_>, id: &InstanceId, wanted: DesiredState) -> Result<()> {
    const SQL: &str = "UPDATE instances SET desired_state = $2, broken = NULL, restarting = 0 WHERE id = $1";
    const DELETE_CRASHES: &str = "DELETE FROM crashes WHERE instance_id = $1";
    tx.execute(SQL, params![id, wanted.as_str()])?;
    tx.execute(DELETE_CRASHES, params![id]).map(drop)
}

/// Requests a restart. It is done when a process is recorded, or dropped by [`mark_stopped`].
pub fn request_restart(tx: &mut Tx<'_>, id: &InstanceId) -> Result<()> {
    set_desired_state(tx, id, DesiredState::Running)?;
    tx.execute("UPDATE instances SET restarting = 1 WHERE id = $1", params![id]).map(drop)
}

/// Records that an instance ended without a request and should not run any more.
pub fn mark_stopped(tx: &mut Tx<'_>, id: &InstanceId) -> Result<()> {
    const SQL: &str = "UPDATE instances SET desired_state = 'stopped', restarting = 0 WHERE id = $1";
    tx.execute(SQL, params![id]).map(drop)
}

pub fn set_pid(tx: &mut Tx<'_>, id: &InstanceId, pid: Option<ProcessId>) -> Result<()> {
    const SQL: &str = "UPDATE instances SET pid = $2, pid_started = $3,
        restarting = CASE WHEN $2 IS NULL THEN restarting ELSE 0 END WHERE id = $1";
    let number = pid.map(|pid| i64::from(pid.number));
    tx.execute(SQL, params![id, number, pid.map(|pid| pid.started)]).map(drop)
}

pub fn set_restart_policy(tx: &mut Tx<'_>, id: &InstanceId, restart: RestartPolicy) -> Result<()> {
    const SQL: &str = "UPDATE instances SET restart = $2 WHERE id = $1";
    tx.execute(SQL, params![id, restart.as_str()]).map(drop)
}

/// Sets the port from the instance's config. Returns false if another instance has it.
pub fn set_port(tx: &mut Tx<'_>, id: &InstanceId, port: u16) -> Result<bool> {
    const FIND_PORT_OWNER: &str =
        "SELECT 1 FROM instances WHERE port = $1 AND id <> $2 AND archived_at IS NULL";
    const SQL: &str = "UPDATE instances SET port = $2 WHERE id = $1";
    if tx.query_one(FIND_PORT_OWNER, params![u32::from(port), id], |row| row.int(0))?.is_some() {
        return Ok(false);
    }
    tx.execute(SQL, params![id, u32::from(port)])?;
    Ok(true)
}

pub fn open_breaker(tx: &mut Tx<'_>, id: &InstanceId, why: &str) -> Result<()> {
    const SQL: &str = "UPDATE instances SET broken = $2 WHERE id = $1";
    tx.execute(SQL, params![id, why]).map(drop)
}

pub fn archive(tx: &mut Tx<'_>, id: &InstanceId, now: Millis) -> Result<()> {
    const SQL: &str =
        "UPDATE instances SET archived_at = $2, desired_state = 'stopped', broken = NULL, pid = NULL,
        restarting = 0
        WHERE id = $1 AND archived_at IS NULL";
    tx.execute(SQL, params![id, now]).map(drop)
}

/// Unarchives an instance, unless its name or port is in use by now.
pub fn unarchive(tx: &mut Tx<'_>, one: &InstanceRecord) -> Result<Option<InstanceConflict>> {
    const SQL: &str = "UPDATE instances SET archived_at = NULL, port = $2 WHERE id = $1";
    if let Some(taken) = find_conflict(tx, &one.name, one.port)? {
        return Ok(Some(taken));
    }
    tx.execute(SQL, params![&one.id, u32::from(one.port)])?;
    Ok(None)
}

pub fn remove(tx: &mut Tx<'_>, id: &InstanceId) -> Result<()> {
    const SQL: &str = "DELETE FROM instances WHERE id = $1";
    tx.execute(SQL, params![id]).map(drop)
}

/// Records a crash, and returns the crashes since a time, including this one, oldest first.
pub fn record_crash(
    tx: &mut Tx<'_>,
    id: &InstanceId,
    why: &str,
    now: Millis,
    since: Millis,
) -> Result<Vec<Millis>> {
    const SQL: &str = "INSERT INTO crashes (instance_id, reason, created_at) VALUES ($1, $2, $3)";
    const DELETE_OLD_CRASHES: &str = "DELETE FROM crashes WHERE instance_id = $1 AND created_at < $2";
    tx.execute(DELETE_OLD_CRASHES, params![id, since])?;
    tx.execute(SQL, params![id, why, now])?;
    list_crashes(tx, id)
}

pub fn list_crashes(tx: &mut Tx<'_>, id: &InstanceId) -> Result<Vec<Millis>> {
    const SQL: &str = "SELECT created_at FROM crashes WHERE instance_id = $1 ORDER BY created_at, seq";
    tx.query(SQL, params![id], |row| row.time(0))
}

/// Returns the time and reason of the last crash.
pub fn find_last_crash(tx: &mut Tx<'_>, id: &InstanceId) -> Result<Option<(Millis, String)>> {
    const SQL: &str =
        "SELECT created_at, reason FROM crashes WHERE instance_id = $1 ORDER BY seq DESC LIMIT 1";
    tx.query_one(SQL, params![id], |row| Ok((row.time(0)?, row.text(1)?)))
}
