//! Sessions. Every transaction that changes a session's activity locks its row first, so that on PostgreSQL two of them
//! never interleave.

mod cleanup;

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{AgentId, SessionId};
use polyclaw_domain::job::JobLane;
use polyclaw_domain::locale::{ConversationLanguage, LanguageSetting, Locale};
use polyclaw_domain::provider::{ModelRef, ReasoningEffort};
use polyclaw_domain::session::{Session, SessionStatus};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::TeamRole;
use polyclaw_domain::time::Millis;

use crate::error::{Error, Result};
use crate::messages::{from_json, to_json};
use crate::params;
use crate::runs;
use crate::tx::{Row, Tx};

pub use cleanup::{UnusedSession, delete_unused, list_unused};

macro_rules! columns {
    () => {
        "session_key, session_id, agent_id, active_agent_id, provider_override, model_override,
         deliver_policy, send_policy, owner_session_key, lane, spawn_depth, delegation_depth,
         channel, account, peer, thread, status, title, created_at, updated_at,
         focus_session_key, ttl_ms, team_role, inherited_tools_json, thinking,
         language, detected_language"
    };
}

macro_rules! select {
    ($($rest:literal)*) => {
        concat!("SELECT ", columns!(), " FROM sessions ", $($rest),*)
    };
}

pub fn get(tx: &mut Tx<'_>, key: &SessionKey) -> Result<Option<Session>> {
    tx.query_one(select!("WHERE session_key = $1"), params![key], session_from_row)
}

/// Lists the sessions started from an account, most recently used first.
pub fn list_by_account(tx: &mut Tx<'_>, channel: &str, account: &str, limit: usize) -> Result<Vec<Session>> {
    const SQL: &str = select!("WHERE channel = $1 AND account = $2 ORDER BY updated_at DESC LIMIT $3");
    tx.query(SQL, params![channel, account, limit], session_from_row)
}

/// Lists the sessions of an agent, and those switched to it.
pub fn list_by_agent(tx: &mut Tx<'_>, agent: &AgentId) -> Result<Vec<Session>> {
    const SQL: &str = select!("WHERE agent_id = $1 OR active_agent_id = $1 ORDER BY session_key");
    tx.query(SQL, params![agent], session_from_row)
}

/// Stores the session unless its key is taken, and returns the stored one.
pub fn ensure(tx: &mut Tx<'_>, session: &Session) -> Result<Session> {
    if let Some(found) = get(tx, &session.key)? {
        return Ok(found);
    }
    insert(tx, session)?;
    get(tx, &session.key)?
        .ok_or_else(|| Error::Other("the session that was just stored does not exist".into()))
}

fn insert(tx: &mut Tx<'_>, session: &Session) -> Result<()> {
    const SQL: &str = "INSERT INTO sessions (session_key, session_id, agent_id, active_agent_id,
          deliver_policy, send_policy, owner_session_key, lane, spawn_depth, delegation_depth,
          channel, account, peer, thread, status, title, created_at, updated_at, team_role,
          provider_override, model_override, inherited_tools_json, thinking, language, detected_language)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
          $24, $25)
        ON CONFLICT (session_key) DO NOTHING";
    let (address, model) = (session.address.as_ref(), session.model_override.as_ref());
    let inherited = session.inherited.as_ref().map(to_json).transpose()?;
    tx.execute(
        SQL,
        params![
            &session.key,
            &session.id,
            &session.agent,
            &session.active_agent,
            session.delivers,
            session.sends,
            session.owner.as_ref(),
            session.lane.as_str(),
            session.spawn_depth,
            session.delegation_depth,
            address.map(|a| &a.channel),
            address.map(|a| &a.account),
            address.map(|a| &a.peer),
            address.and_then(|a| a.thread.as_ref()),
            session.status.as_str(),
            session.title.as_ref(),
            session.created_at,
            session.updated_at,
            session.team_role.map(TeamRole::as_str),
            model.map(|model| &model.provider),
            model.map(|model| &model.model),
            inherited.as_ref(),
            session.thinking.map(ReasoningEffort::as_str),
            session.language.chosen.map(LanguageSetting::as_str),
            session.language.detected.map(Locale::tag),
        ],
    )
    .map(drop)
}

/// Locks the session's row and allocates `count` positions. Returns the first.
pub fn allocate_positions(
    tx: &mut Tx<'_>,
    key: &SessionKey,
    count: usize,
    now: Millis,
) -> Result<Option<i64>> {
    const SQL: &str = "UPDATE sessions SET next_position = next_position + $2, updated_at = $3
        WHERE session_key = $1 RETURNING next_position - $2";
    tx.query_one(SQL, params![key, count, now], |row| row.int(0))
}

/// A session with the state of its history.
#[derive(Clone, Debug)]
pub struct SessionSnapshot {
    pub session: Session,
    pub compaction: CompactionPoint,
    pub next_ticket: i64,
}

impl SessionSnapshot {
    /// Returns how many positions were allocated since the last compaction: at least the number of messages to read.
    pub fn uncompacted_tickets(&self) -> i64 {
        self.next_ticket - self.compaction.through
    }
}

pub fn get_snapshot(tx: &mut Tx<'_>, key: &SessionKey) -> Result<Option<SessionSnapshot>> {
    const SQL: &str = concat!(
        "SELECT ",
        columns!(),
        ", summary, compacted_position, next_position FROM sessions WHERE session_key = $1"
    );
    tx.query_one(SQL, params![key], snapshot_from_row)
}

/// Like `allocate_positions`, but returns the session's snapshot; the positions are the last ones before `next_ticket`.
pub fn allocate_and_get_snapshot(
    tx: &mut Tx<'_>,
    key: &SessionKey,
    count: usize,
    now: Millis,
) -> Result<Option<SessionSnapshot>> {
    const SQL: &str = concat!(
        "UPDATE sessions SET next_position = next_position + $2, updated_at = $3 WHERE session_key = $1 RETURNING ",
        columns!(),
        ", summary, compacted_position, next_position"
    );
    tx.query_one(SQL, params![key, count, now], snapshot_from_row)
}

fn snapshot_from_row(row: &Row<'_>) -> Result<SessionSnapshot> {
    let compaction = CompactionPoint { summary: row.opt_text(27)?, through: row.int(28)? };
    Ok(SessionSnapshot { session: session_from_row(row)?, compaction, next_ticket: row.int(29)? })
}

/// Locks the session's row without changing it.
pub fn lock(tx: &mut Tx<'_>, key: &SessionKey) -> Result<bool> {
    const SQL: &str = "SELECT session_id FROM sessions WHERE session_key = $1 /* lock */";
    Ok(tx.query_one(SQL, params![key], |row| row.text(0))?.is_some())
}

/// Locks the session's row unless another transaction has locked it, which never happens on SQLite.
pub fn try_lock(tx: &mut Tx<'_>, key: &SessionKey) -> Result<bool> {
    const SQL: &str = "SELECT session_id FROM sessions WHERE session_key = $1 /* skip locked */";
    Ok(tx.query_one(SQL, params![key], |row| row.text(0))?.is_some())
}

/// The start of a history: a summary of everything up to a position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionPoint {
    pub summary: Option<String>,
    pub through: i64,
}

/// Sets the compaction of one session id. A conversation started meanwhile has nothing to compact.
pub fn set_compaction(
    tx: &mut Tx<'_>,
    key: &SessionKey,
    id: &SessionId,
    compaction: &CompactionPoint,
) -> Result<()> {
    const SQL: &str = "UPDATE sessions SET summary = $3, compacted_position = $4
        WHERE session_key = $1 AND session_id = $2";
    tx.execute(SQL, params![key, id, compaction.summary.as_ref(), compaction.through]).map(drop)
}

/// `/new`: sets a new session id under the same key. The old transcript stays under the old id.
pub fn renew_session_id(tx: &mut Tx<'_>, key: &SessionKey, id: &SessionId, now: Millis) -> Result<bool> {
    const SQL: &str =
        "UPDATE sessions SET session_id = $2, summary = NULL, compacted_position = next_position - 1,
        updated_at = $3 WHERE session_key = $1";
    Ok(tx.execute(SQL, params![key, id, now])? > 0)
}

pub fn set_agent(tx: &mut Tx<'_>, key: &SessionKey, agent: &AgentId, now: Millis) -> Result<bool> {
    const SQL: &str = "UPDATE sessions SET active_agent_id = $2, updated_at = $3 WHERE session_key = $1";
    Ok(tx.execute(SQL, params![key, agent, now])? > 0)
}

/// Sets the model; `None` restores the agent's own model.
pub fn set_model(tx: &mut Tx<'_>, key: &SessionKey, model: Option<&ModelRef>, now: Millis) -> Result<bool> {
    const SQL: &str = "UPDATE sessions SET provider_override = $2, model_override = $3, updated_at = $4
        WHERE session_key = $1";
    let (provider, name) = (model.map(|m| &m.provider), model.map(|m| &m.model));
    Ok(tx.execute(SQL, params![key, provider, name, now])? > 0)
}

/// Sets whether text of this session may be delivered and whether it may send; `None` leaves a policy unchanged.
pub fn set_policies(
    tx: &mut Tx<'_>,
    key: &SessionKey,
    (delivers, sends): (Option<bool>, Option<bool>),
    now: Millis,
) -> Result<bool> {
    const SQL: &str = "UPDATE sessions SET deliver_policy = COALESCE($2, deliver_policy),
          send_policy = COALESCE($3, send_policy), updated_at = $4 WHERE session_key = $1";
    Ok(tx.execute(SQL, params![key, delivers.map(i64::from), sends.map(i64::from), now])? > 0)
}

/// Redirects messages written here to another session; `None` ends that.
pub fn set_focus(tx: &mut Tx<'_>, key: &SessionKey, focus: Option<&SessionKey>, now: Millis) -> Result<bool> {
    const SQL: &str = "UPDATE sessions SET focus_session_key = $2, updated_at = $3 WHERE session_key = $1";
    Ok(tx.execute(SQL, params![key, focus, now])? > 0)
}

/// Sets the idle time after which the next message starts a new conversation; `None` is never.
pub fn set_ttl(tx: &mut Tx<'_>, key: &SessionKey, ttl_ms: Option<i64>, now: Millis) -> Result<bool> {
    const SQL: &str = "UPDATE sessions SET ttl_ms = $2, updated_at = $3 WHERE session_key = $1";
    Ok(tx.execute(SQL, params![key, ttl_ms, now])? > 0)
}

/// Sets the language that a person chose for the conversation.
pub fn set_language(tx: &mut Tx<'_>, key: &SessionKey, chosen: LanguageSetting, now: Millis) -> Result<bool> {
    const SQL: &str = "UPDATE sessions SET language = $2, updated_at = $3 WHERE session_key = $1";
    Ok(tx.execute(SQL, params![key, chosen.as_str(), now])? > 0)
}

/// Sets the language of the newest message that decided it.
pub fn set_detected_language(tx: &mut Tx<'_>, key: &SessionKey, detected: Locale) -> Result<()> {
    const SQL: &str = "UPDATE sessions SET detected_language = $2 WHERE session_key = $1";
    tx.execute(SQL, params![key, detected.tag()]).map(drop)
}

/// Sets the session's role in a team, or clears it.
pub fn set_team_role(tx: &mut Tx<'_>, key: &SessionKey, role: Option<TeamRole>, now: Millis) -> Result<bool> {
    const SQL: &str = "UPDATE sessions SET team_role = $2, updated_at = $3 WHERE session_key = $1";
    Ok(tx.execute(SQL, params![key, role.map(TeamRole::as_str), now])? > 0)
}

/// Hides a session from lists or restores it. Its age does not change, because nothing happened in it.
pub fn set_status(tx: &mut Tx<'_>, key: &SessionKey, status: SessionStatus) -> Result<bool> {
    const SQL: &str = "UPDATE sessions SET status = $2 WHERE session_key = $1";
    Ok(tx.execute(SQL, params![key, status.as_str()])? > 0)
}

/// Deletes a session with its messages, jobs, backlog, open questions and ended runs. Deliveries and events stay as a
/// record.
pub fn delete(tx: &mut Tx<'_>, key: &SessionKey) -> Result<bool> {
    tx.execute("DELETE FROM approvals WHERE session_key = $1", params![key])?;
    runs::delete_ended_by_owner(tx, key)?;
    Ok(tx.execute("DELETE FROM sessions WHERE session_key = $1", params![key])? > 0)
}

#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    pub agent: Option<AgentId>,
    pub status: Option<SessionStatus>,
    pub owner: Option<SessionKey>,
    /// Paging cursor: only sessions after it.
    pub after: Option<SessionCursor>,
    pub limit: usize,
}

/// A position in the list of sessions: time of the last change, then key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCursor {
    pub updated_at: Millis,
    pub key: String,
}

impl SessionCursor {
    pub fn from_session(session: &Session) -> Self {
        Self { updated_at: session.updated_at, key: session.key.to_string() }
    }
}

/// Lists sessions, most recently changed first. A session that changes moves to the front, so paging shows none twice.
pub fn list(tx: &mut Tx<'_>, filter: &SessionFilter) -> Result<Vec<Session>> {
    macro_rules! newest {
        ($which:literal) => {
            select!($which
                "(CAST($1 AS TEXT) IS NULL OR agent_id = $1)
                   AND (CAST($2 AS TEXT) IS NULL OR status = $2)
                   AND (updated_at, session_key) < ($3, $4)
                 ORDER BY updated_at DESC, session_key DESC LIMIT $5")
        };
    }
    let (status, limit) = (filter.status.map(SessionStatus::as_str), filter.limit);
    let after =
        filter.after.clone().unwrap_or(SessionCursor { updated_at: Millis(i64::MAX), key: String::new() });
    let (agent, at, key) = (filter.agent.as_ref(), after.updated_at, after.key);
    match &filter.owner {
        Some(owner) => tx.query(
            newest!("WHERE owner_session_key = $6 AND "),
            params![agent, status, at, &key, limit, owner],
            session_from_row,
        ),
        None => tx.query(newest!("WHERE "), params![agent, status, at, &key, limit], session_from_row),
    }
}

pub fn count(tx: &mut Tx<'_>) -> Result<i64> {
    Ok(tx.query_one("SELECT COUNT(*) FROM sessions", &[], |row| row.int(0))?.unwrap_or(0))
}

/// Totals over all sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    pub sessions: i64,
    /// Running turns.
    pub running: i64,
    /// Messages and interrupted tasks that are still waiting.
    pub waiting: i64,
}

pub fn get_counts(tx: &mut Tx<'_>) -> Result<SessionCounts> {
    const SQL: &str = "SELECT (SELECT COUNT(*) FROM sessions),
        (SELECT COUNT(*) FROM jobs WHERE state = 'running'),
        (SELECT COALESCE(CAST(SUM(inputs) AS BIGINT), 0) FROM jobs WHERE state = 'queued')
          + (SELECT COUNT(*) FROM backlog WHERE drained_by_turn IS NULL)";
    let read = |row: &Row<'_>| {
        Ok(SessionCounts { sessions: row.int(0)?, running: row.int(1)?, waiting: row.int(2)? })
    };
    Ok(tx.query_one(SQL, &[], read)?.unwrap_or_default())
}

fn session_from_row(row: &Row<'_>) -> Result<Session> {
    let model_override = match (row.opt_text(4)?, row.opt_text(5)?) {
        (Some(provider), Some(model)) => Some(ModelRef { provider, model }),
        _ => None,
    };
    Ok(Session {
        key: row.session_key(0)?,
        id: SessionId::new(row.text(1)?),
        agent: row.agent_id(2)?,
        active_agent: row.agent_id(3)?,
        model_override,
        delivers: row.flag(6)?,
        sends: row.flag(7)?,
        owner: row.parse_opt_column(8, |text| SessionKey::parse(text).ok())?,
        lane: row.parse_column(9, JobLane::parse)?,
        spawn_depth: row.as_u32(10)?,
        delegation_depth: row.as_u32(11)?,
        address: address_from_row(row)?,
        focus: row.parse_opt_column(20, |text| SessionKey::parse(text).ok())?,
        ttl_ms: row.opt_int(21)?,
        language: ConversationLanguage {
            chosen: row.parse_opt_column(25, LanguageSetting::parse)?,
            detected: row.parse_opt_column(26, Locale::from_tag)?,
        },
        team_role: row.parse_opt_column(22, TeamRole::parse)?,
        thinking: row.parse_opt_column(24, ReasoningEffort::parse)?,
        inherited: row.opt_text(23)?.map(|json| from_json(&json)).transpose()?,
        status: row.parse_column(16, SessionStatus::parse)?,
        title: row.opt_text(17)?,
        created_at: row.time(18)?,
        updated_at: row.time(19)?,
    })
}

fn address_from_row(row: &Row<'_>) -> Result<Option<ChatAddress>> {
    let Some(channel) = row.opt_text(12)? else { return Ok(None) };
    Ok(Some(ChatAddress {
        channel,
        account: row.opt_text(13)?.unwrap_or_default(),
        peer: row.opt_text(14)?.unwrap_or_default(),
        thread: row.opt_text(15)?,
    }))
}
