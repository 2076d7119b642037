//! `sessions_list` and `sessions_history`: a look at what a session began. Of other sessions only those are there that it
//! may write to, and nothing of what is said in them.

use polyclaw_domain::message::MessageRole;
use polyclaw_domain::sanitize;
use polyclaw_domain::session::{Session, SessionStatus};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::sessions::SessionFilter;
use polyclaw_store::{Tx, messages, sessions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Asked, Done, send, shown};
use crate::core::Engine;
use crate::error::Error;
use crate::family::is_below;
use crate::toolbox::Refused;

const LISTED: usize = 50;
/// Sessions among which those are looked for that may be written to.
const LOOKED_AT: usize = 500;
const MOST_LINES: usize = 100;
const LONGEST_LINE: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct History {
    session_key: String,
    /// How many of the last messages; 20 if left out, at most 100.
    limit: Option<usize>,
}

pub(super) async fn list(engine: &Engine, asked: Asked<'_>) -> Done {
    let children = engine.children(&asked.scope.session).await?;
    let listed = children.iter().rev().filter(|child| child.is_listed).take(LISTED);
    let runs: Vec<Value> = listed.map(|child| shown(&child.run)).collect();
    let others = others(engine, asked).await?;
    Ok(json!({ "runs": runs, "others": others }).to_string())
}

/// Conversations of agents that this one may write to.
async fn others(engine: &Engine, asked: Asked<'_>) -> Result<Vec<Value>, Refused> {
    if !engine.settings().agent_to_agent.enabled {
        return Ok(Vec::new());
    }
    let filter =
        SessionFilter { status: Some(SessionStatus::Active), limit: LOOKED_AT, ..SessionFilter::default() };
    let found = engine.db().read(move |tx| sessions::list(tx, &filter)).await.map_err(Error::from)?;
    let is_open = |session: &&Session| {
        session.owner.is_none()
            && session.key != asked.scope.session
            && send::check(engine, &asked.scope.agent, &session.active_agent).is_ok()
    };
    let line = |session: &Session| json!({ "session_key": session.key, "agent_id": session.active_agent });
    Ok(found.iter().filter(is_open).take(LISTED).map(line).collect())
}

pub(super) async fn history(engine: &Engine, asked: Asked<'_>, given: History) -> Done {
    let key = SessionKey::parse(&given.session_key).map_err(|error| Refused(error.to_string()))?;
    let limit = given.limit.unwrap_or(20).clamp(1, MOST_LINES);
    let (own, wanted) = (asked.scope.session.clone(), key.clone());
    let read = move |tx: &mut Tx<'_>| {
        if !is_below(tx, &own, &wanted)? {
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
        json!({ "from": role, "text": sanitize::limit_block(&message.text, LONGEST_LINE) })
    };
    Ok(json!({ "messages": found.iter().map(line).collect::<Vec<_>>() }).to_string())
}
