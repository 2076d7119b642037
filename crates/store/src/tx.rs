//! One transaction on either engine. Parameters are written `$1`, `$2`, as in PostgreSQL; SQLite reads them as names.
//! `/* skip locked */` is a comment to SQLite and `FOR UPDATE SKIP LOCKED` to PostgreSQL. Likewise `/* lock */` is `FOR
//! UPDATE`, and `/* hold */` is `FOR NO KEY UPDATE`, which still allows inserting rows that reference the locked one.

use std::collections::HashMap;
use std::time::Instant;

use polyclaw_domain::id::{
    AgentId, ApprovalId, EnvelopeId, InstanceId, MemoryId, MessageId, NodeId, OutboxId, RunId, SessionId,
    TeamId, TeamMessageId, TraceId, TurnId,
};
use polyclaw_domain::media::MediaHash;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};

use crate::error::{Error, Result, catch_panic};

/// A transaction. A failed statement fails the whole transaction, even if the closure continues: PostgreSQL would turn
/// the commit into a silent rollback, and SQLite would keep the rest.
pub struct Tx<'a> {
    engine: TxEngine<'a>,
    failed: Option<Error>,
    /// The clock of a shared database when this transaction began, and the local time of that reading.
    clock: Option<(Millis, Instant)>,
    plans: Option<Vec<String>>,
}

enum TxEngine<'a> {
    Sqlite(&'a rusqlite::Connection),
    Postgres { client: &'a mut postgres::Client, statements: &'a mut PreparedStatements },
}

/// Prepared statements of one PostgreSQL connection, by their text.
#[derive(Default)]
pub(crate) struct PreparedStatements(HashMap<&'static str, postgres::Statement>);

#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Tx<'a> {
    pub(crate) fn for_sqlite(connection: &'a rusqlite::Connection) -> Self {
        Self { engine: TxEngine::Sqlite(connection), failed: None, clock: None, plans: None }
    }

    /// For a connection with an open transaction that began at `clock`. Without a clock every statement is its own
    /// transaction.
    pub(crate) fn for_postgres(
        client: &'a mut postgres::Client,
        statements: &'a mut PreparedStatements,
        clock: Option<(Millis, Instant)>,
    ) -> Self {
        Self { engine: TxEngine::Postgres { client, statements }, failed: None, clock, plans: None }
    }

    /// Runs the caller's closure. On `Err` nothing of it may be committed.
    pub(crate) fn run<T>(&mut self, body: &mut impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        let value = catch_panic(|| body(self))?;
        self.failed.take().map_or(Ok(value), Err)
    }

    /// Runs a statement and returns how many rows it changed.
    pub fn execute(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<usize> {
        self.record_plan(sql, params)?;
        let changed = self.engine.execute(sql, params);
        self.record_failure(changed)
    }

    pub fn query<T>(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.record_plan(sql, params)?;
        let rows = self.engine.query(sql, params, read);
        self.record_failure(rows)
    }

    pub fn query_one<T>(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.query(sql, params, read)?.into_iter().next())
    }

    fn record_failure<T>(&mut self, answer: Result<T>) -> Result<T> {
        if let Err(error) = &answer
            && !matches!(error, Error::Unreadable(_))
        {
            self.failed.get_or_insert_with(|| error.clone());
        }
        answer
    }

    /// For the few statements that one engine plans badly.
    pub(crate) fn is_sqlite(&self) -> bool {
        !matches!(self.engine, TxEngine::Postgres { .. })
    }

    /// Signals the other nodes when this transaction commits. On SQLite there are none.
    pub fn notify_nodes(&mut self, payload: &str) -> Result<()> {
        const NOTIFY_NODES: &str = "SELECT pg_notify('polyclaw', $1)";
        match self.engine {
            TxEngine::Sqlite(_) => Ok(()),
            TxEngine::Postgres { .. } => self.query(NOTIFY_NODES, &[payload.into()], |_| Ok(())).map(drop),
        }
    }

    /// Takes an advisory lock until the transaction ends. Not needed on SQLite.
    pub fn lock_advisory(&mut self, what: &str) -> Result<()> {
        const LOCK_ADVISORY: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        match self.engine {
            TxEngine::Sqlite(_) => Ok(()),
            TxEngine::Postgres { .. } => self.query(LOCK_ADVISORY, &[what.into()], |_| Ok(())).map(drop),
        }
    }

    /// Returns the clock that leases are measured by: the database's if nodes share it, otherwise the caller's. It
    /// advances while a transaction waits for others.
    pub fn lease_clock(&self, now: Millis) -> Millis {
        self.clock.map_or(now, |(clock, read)| {
            clock.plus(read.elapsed().as_millis().try_into().unwrap_or(i64::MAX))
        })
    }

    /// Runs `body` and returns the plan of each statement it ran, for tests of hot queries.
    pub fn explain_queries(&mut self, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<Vec<String>> {
        self.plans = Some(Vec::new());
        let outcome = body(self);
        let plans = self.plans.take().unwrap_or_default();
        outcome.map(|()| plans)
    }

    fn record_plan(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        if let Some(plans) = &mut self.plans {
            plans.push(self.engine.explain_plan(sql, params.len())?);
        }
        Ok(())
    }
}

impl TxEngine<'_> {
    fn execute(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<usize> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                bind_params(&mut statement, params)?;
                Ok(statement.raw_execute()?)
            }
            Self::Postgres { client, statements } => {
                let statement = statements.get(client, sql)?;
                let rows = client.execute(&statement, &to_sql_refs(params))?;
                usize::try_from(rows).map_err(|_| Error::Other("row count out of range".into()))
            }
        }
    }

    fn query<T>(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut out = Vec::new();
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                bind_params(&mut statement, params)?;
                let mut rows = statement.raw_query();
                while let Some(row) = rows.next()? {
                    out.push(read(&Row(RowSource::Sqlite(row)))?);
                }
            }
            Self::Postgres { client, statements } => {
                let statement = statements.get(client, sql)?;
                for row in client.query(&statement, &to_sql_refs(params))? {
                    out.push(read(&Row(RowSource::Postgres(&row)))?);
                }
            }
        }
        Ok(out)
    }

    fn explain_plan(&mut self, sql: &str, params: usize) -> Result<String> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let mut rows = statement.raw_query();
                let mut plan = String::new();
                while let Some(row) = rows.next()? {
                    plan.push_str(&row.get::<_, String>(3)?);
                    plan.push('\n');
                }
                Ok(plan)
            }
            // The generic plan, which a statement that runs often settles on.
            Self::Postgres { client, .. } => {
                let values = if params == 0 {
                    String::new()
                } else {
                    format!("({})", vec!["NULL"; params].join(", "))
                };
                let rows = client.simple_query(&format!(
                    "SET LOCAL plan_cache_mode = force_generic_plan; PREPARE explained AS {};
                     EXPLAIN EXECUTE explained{values}; DEALLOCATE explained",
                    to_postgres_sql(sql)
                ))?;
                let lines = rows.iter().filter_map(|row| match row {
                    postgres::SimpleQueryMessage::Row(row) => row.get(0),
                    _ => None,
                });
                Ok(lines.collect::<Vec<_>>().join("\n"))
            }
        }
    }
}

impl PreparedStatements {
    fn get(&mut self, client: &mut postgres::Client, sql: &'static str) -> Result<postgres::Statement> {
        if let Some(statement) = self.0.get(sql) {
            return Ok(statement.clone());
        }
        let statement = client.prepare(&to_postgres_sql(sql))?;
        self.0.insert(sql, statement.clone());
        Ok(statement)
    }
}

fn to_postgres_sql(sql: &str) -> String {
    sql.replace("/* skip locked */", "FOR UPDATE SKIP LOCKED")
        .replace("/* lock */", "FOR UPDATE")
        .replace("/* hold */", "FOR NO KEY UPDATE")
}

/// SQLite treats `$3` as a name and numbers parameters by first appearance, so each is bound by the number in its name.
fn bind_params(statement: &mut rusqlite::CachedStatement<'_>, params: &[Param<'_>]) -> Result<()> {
    for index in 1..=statement.parameter_count() {
        let number = statement.parameter_name(index).and_then(|name| name[1..].parse::<usize>().ok());
        let param =
            number.and_then(|n| params.get(n - 1)).ok_or_else(|| Error::Other("unbound parameter".into()))?;
        match param {
            Param::Null => statement.raw_bind_parameter(index, rusqlite::types::Null)?,
            Param::Int(value) => statement.raw_bind_parameter(index, value)?,
            Param::Text(value) => statement.raw_bind_parameter(index, value)?,
            Param::Bytes(value) => statement.raw_bind_parameter(index, value)?,
        }
    }
    Ok(())
}

fn to_sql_refs<'a>(params: &'a [Param<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            // Next to a bare number, as in `$2 = 1`, PostgreSQL infers `INT4`.
            Self::Int(value) if *ty == Type::INT4 => i32::try_from(*value)?.to_sql(ty, out),
            Self::Int(value) if *ty == Type::INT8 => value.to_sql(ty, out),
            Self::Int(_) => Err(format!("a number was given where {ty} is expected").into()),
            Self::Text(_) if !<&str as ToSql>::accepts(ty) => {
                Err(format!("text was given where {ty} is expected").into())
            }
            // PostgreSQL text cannot contain NUL, SQLite text can. The character carries nothing a person wrote.
            Self::Text(value) if value.contains('\0') => value.replace('\0', "\u{fffd}").to_sql(ty, out),
            Self::Text(value) => value.to_sql(ty, out),
            Self::Bytes(value) if *ty == Type::BYTEA => value.to_sql(ty, out),
            Self::Bytes(_) => Err(format!("bytes were given where {ty} is expected").into()),
        }
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT4 | Type::INT8 | Type::BYTEA) || <&str as ToSql>::accepts(ty)
    }

    to_sql_checked!();
}

/// One row of a result, read by position.
pub struct Row<'a>(RowSource<'a>);

enum RowSource<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a postgres::Row),
}

impl Row<'_> {
    pub fn text(&self, at: usize) -> Result<String> {
        self.opt_text(at)?.ok_or_else(|| Error::Unreadable(format!("column {at} is null")))
    }

    pub fn opt_text(&self, at: usize) -> Result<Option<String>> {
        match self.0 {
            RowSource::Sqlite(row) => Ok(row.get(at)?),
            RowSource::Postgres(row) => Ok(row.try_get(at)?),
        }
    }

    pub fn int(&self, at: usize) -> Result<i64> {
        self.opt_int(at)?.ok_or_else(|| Error::Unreadable(format!("column {at} is null")))
    }

    pub fn opt_int(&self, at: usize) -> Result<Option<i64>> {
        match self.0 {
            RowSource::Sqlite(row) => Ok(row.get(at)?),
            RowSource::Postgres(row) => Ok(row.try_get(at)?),
        }
    }

    /// Reads bytes without copying them.
    pub fn bytes<T>(&self, at: usize, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
        match self.0 {
            RowSource::Sqlite(row) => Ok(read(row.get_ref(at)?.as_blob().map_err(rusqlite::Error::from)?)),
            RowSource::Postgres(row) => Ok(read(row.try_get::<_, &[u8]>(at)?)),
        }
    }

    /// Reads a floating-point number, such as a rank.
    pub fn real(&self, at: usize) -> Result<f64> {
        match self.0 {
            RowSource::Sqlite(row) => Ok(row.get(at)?),
            RowSource::Postgres(row) => Ok(row.try_get(at)?),
        }
    }

    pub fn flag(&self, at: usize) -> Result<bool> {
        Ok(self.int(at)? != 0)
    }

    pub fn count(&self, at: usize) -> Result<usize> {
        usize::try_from(self.int(at)?).map_err(|_| Error::Unreadable(format!("column {at} is negative")))
    }

    pub fn as_u32(&self, at: usize) -> Result<u32> {
        u32::try_from(self.int(at)?).map_err(|_| Error::Unreadable(format!("column {at} is out of range")))
    }

    pub fn time(&self, at: usize) -> Result<Millis> {
        Ok(Millis(self.int(at)?))
    }

    pub fn opt_time(&self, at: usize) -> Result<Option<Millis>> {
        Ok(self.opt_int(at)?.map(Millis))
    }

    pub fn session_key(&self, at: usize) -> Result<SessionKey> {
        self.parse_column(at, |text| SessionKey::parse(text).ok())
    }

    pub fn agent_id(&self, at: usize) -> Result<AgentId> {
        self.parse_column(at, |text| AgentId::parse(text).ok())
    }

    /// Parses a text column.
    pub fn parse_column<T>(&self, at: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
        let text = self.text(at)?;
        parse(&text).ok_or_else(|| Error::Unreadable(format!("column {at} holds '{text}'")))
    }

    pub fn parse_opt_column<T>(&self, at: usize, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(text) = self.opt_text(at)? else { return Ok(None) };
        parse(&text).map(Some).ok_or_else(|| Error::Unreadable(format!("column {at} holds '{text}'")))
    }
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a String> for Param<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl From<i64> for Param<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Param<'_> {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<usize> for Param<'_> {
    fn from(value: usize) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Param<'_> {
    fn from(value: bool) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<Millis> for Param<'_> {
    fn from(value: Millis) -> Self {
        Self::Int(value.0)
    }
}

impl<'a, T> From<Option<T>> for Param<'a>
where
    Param<'a>: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Self::from)
    }
}

macro_rules! param_of_ids {
    ($($name:ty),*) => {$(
        impl<'a> From<&'a $name> for Param<'a> {
            fn from(value: &'a $name) -> Self {
                Self::Text(value.as_str())
            }
        }
    )*};
}

param_of_ids!(
    AgentId,
    ApprovalId,
    EnvelopeId,
    InstanceId,
    TeamMessageId,
    MediaHash,
    MemoryId,
    MessageId,
    NodeId,
    OutboxId,
    RunId,
    SessionId,
    SessionKey,
    TeamId,
    TraceId,
    TurnId
);

/// `params![a, b]`: parameters by reference or by value, as their types allow.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::Param::from($value)),*] };
}
