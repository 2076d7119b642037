//! `sessions_list` and `sessions_history`: list and read the sessions that a session started. Of other sessions only
//! those it may write to are listed, and none can be read.

use polyclaw_domain::message::MessageRole;
use polyclaw_domain::sanitize;
use polyclaw_domain::session::{Session, SessionStatus};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::sessions::SessionFilter;
use polyclaw_store::{Tx, messages, sessions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ToolCallResult, ToolInvocation, run_json, send};
use crate::core::Engine;
use crate::error::Error;
use crate::subagents::is_descendant;
use crate::toolbox::ToolRefusal;

const MAX_LISTED_RUNS: usize = 50;
/// Maximum number of sessions searched for those that may be written to.
const MAX_SCANNED_SESSIONS: usize = 500;
const MAX_HISTORY_LINES: usize = 100;
const MAX_LINE_CHARS: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsListArguments {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsHistoryArguments {
    session_key: String,
    /// Number of newest messages. Defaults to 20, at most 100.
    limit: Option<usize>,
}

pub(super) async fn list(engine: &Engine, asked: ToolInvocation<'_>) -> ToolCallResult {
    let children = engine.child_runs(&asked.scope.session).await?;
    let listed = children.iter().rev().filter(|child| child.is_listed).take(MAX_LISTED_RUNS);
    let runs: Vec<Value> = listed.map(|child| run_json(&child.run)).collect();
    let others = list_writable_sessions(engine, asked).await?;
    Ok(json!({ "runs": runs, "others": others }).to_string())
}

/// Returns the sessions of other agents that this one may write to.
async fn list_writable_sessions(
    engine: &Engine,
    asked: ToolInvocation<'_>,
) -> Result<Vec<Value>, ToolRefusal> {
    if !engine.settings().agent_to_agent.enabled {
        return Ok(Vec::new());
    }
    let filter = SessionFilter {
        status: Some(SessionStatus::Active),
        limit: MAX_SCANNED_SESSIONS,
        ..SessionFilter::default()
    };
    let found = engine.db().read(move |tx| sessions::list(tx, &filter)).await.map_err(Error::from)?;
    let is_open = |session: &&Session| {
        session.owner.is_none()
            && session.key != asked.scope.session
            && send::check_agent_to_agent(engine, &asked.scope.agent, &session.active_agent).is_ok()
    };
    let line = |session: &Session| json!({ "session_key": session.key, "agent_id": session.active_agent });
    Ok(found.iter().filter(is_open).take(MAX_LISTED_RUNS).map(line).collect())
}

pub(super) async fn read_history(
    engine: &Engine,
    asked: ToolInvocation<'_>,
    given: SessionsHistoryArguments,
) -> ToolCallResult {
    let key = SessionKey::parse(&given.session_key).map_err(|error| ToolRefusal(error.to_string()))?;
    let limit = given.limit.unwrap_or(20).clamp(1, MAX_HISTORY_LINES);
    let (own, wanted) = (asked.scope.session.clone(), key.clone());
    let read = move |tx: &mut Tx<'_>| {
        if !is_descendant(tx, &own, &wanted)? {
            return Ok(None);
        }
        let Some(session) = sessions::get(tx, &wanted)? else { return Ok(None) };
        messages::list_newest(tx, &wanted, &session.id, limit).map(Some)
    };
    let found = engine.db().read(read).await.map_err(Error::from)?;
    let found = found.ok_or_else(|| Error::UnknownSession(key.to_string()))?;
    let line = |message: &messages::SessionMessage| -> Value {
        let role = match message.role {
            MessageRole::User => message.origin.to_string(),
            other => other.as_str().to_owned(),
        };
        json!({ "from": role, "text": sanitize::limit_block(&message.text, MAX_LINE_CHARS) })
    };
    Ok(json!({ "messages": found.iter().map(line).collect::<Vec<_>>() }).to_string())
}
