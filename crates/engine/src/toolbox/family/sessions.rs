//! `sessions_list` and `sessions_history`: a look at what a session began. Other sessions are not there.

use polyclaw_domain::key::SessionKey;
use polyclaw_domain::message::Role;
use polyclaw_domain::plain;
use polyclaw_store::{Tx, messages, sessions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Asked, Done, shown};
use crate::core::Engine;
use crate::error::Error;
use crate::toolbox::Refused;

const LISTED: usize = 50;
const MOST_LINES: usize = 100;
const LONGEST_LINE: usize = 2_000;
/// Deeper than any family may be.
const DEEPEST: usize = 8;

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
    let runs = engine.runs_of(&asked.scope.session, LISTED).await?;
    Ok(json!({ "runs": runs.iter().map(shown).collect::<Vec<_>>() }).to_string())
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
        messages::newest(tx, &wanted, &session.id, limit).map(Some)
    };
    let found = engine.db().read(read).await.map_err(Error::from)?;
    let found = found.ok_or_else(|| Error::UnknownSession(key.to_string()))?;
    let line = |message: &messages::Message| -> Value {
        let role = match message.role {
            Role::User => message.origin.to_string(),
            other => other.as_str().to_owned(),
        };
        json!({ "from": role, "text": plain::block(&message.text, LONGEST_LINE) })
    };
    Ok(json!({ "messages": found.iter().map(line).collect::<Vec<_>>() }).to_string())
}

/// Whether a session was begun by another, or by one that it began.
fn is_below(tx: &mut Tx<'_>, own: &SessionKey, wanted: &SessionKey) -> polyclaw_store::Result<bool> {
    let mut at = wanted.clone();
    for _ in 0..DEEPEST {
        match sessions::get(tx, &at)?.and_then(|session| session.owner) {
            Some(owner) if owner == *own => return Ok(true),
            Some(owner) => at = owner,
            None => return Ok(false),
        }
    }
    Ok(false)
}
