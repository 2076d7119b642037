//! Usage: one row per model call, with what the provider did not say left null.

use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::provider::Usage;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::Tx;

#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub session: &'a SessionKey,
    pub turn: &'a TurnId,
    pub agent: &'a AgentId,
    pub model: &'a str,
    pub usage: Usage,
}

pub fn record(tx: &mut Tx<'_>, call: &Call<'_>, now: Millis) -> Result<()> {
    const SQL: &str = "INSERT INTO usage (session_key, turn_id, agent_id, model, input_tokens, output_tokens,
          cached_tokens, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let tokens = |n: Option<u64>| n.and_then(|n| i64::try_from(n).ok());
    let usage = call.usage;
    let counts = (tokens(usage.input_tokens), tokens(usage.output_tokens), tokens(usage.cached_tokens));
    tx.execute(
        SQL,
        params![call.session, call.turn, call.agent, call.model, counts.0, counts.1, counts.2, now],
    )
    .map(drop)
}

/// Totals since a time. A sum with an unknown part counts the unknown calls beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    pub group: String,
    pub calls: i64,
    pub unknown_calls: i64,
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Agent,
    Model,
    Session,
}

pub fn totals(tx: &mut Tx<'_>, since: Millis, by: By) -> Result<Vec<Total>> {
    macro_rules! sql {
        ($column:literal) => {
            concat!(
                "SELECT ", $column, ", COUNT(*),
                 COUNT(*) - COUNT(CASE WHEN input_tokens IS NOT NULL AND output_tokens IS NOT NULL THEN 1 END),
                 CAST(SUM(input_tokens) AS BIGINT), CAST(SUM(output_tokens) AS BIGINT)
                 FROM usage WHERE created_at >= $1 GROUP BY ", $column, " ORDER BY ", $column
            )
        };
    }
    let sql = match by {
        By::Agent => sql!("agent_id"),
        By::Model => sql!("model"),
        By::Session => sql!("session_key"),
    };
    tx.query(sql, params![since], |row| {
        Ok(Total {
            group: row.text(0)?,
            calls: row.int(1)?,
            unknown_calls: row.int(2)?,
            input_tokens: row.opt_int(3)?,
            output_tokens: row.opt_int(4)?,
        })
    })
}
