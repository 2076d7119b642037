//! Usage: one row per model call. Values that the provider did not report are null.

use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

#[derive(Clone, Debug)]
pub struct ModelCallUsage<'a> {
    pub session: &'a SessionKey,
    pub turn: &'a TurnId,
    pub agent: &'a AgentId,
    pub model: &'a str,
    pub usage: TokenUsage,
    /// Billionths of a dollar, if usage and price are known.
    pub cost_nanos: Option<i64>,
}

pub fn record(tx: &mut Tx<'_>, call: &ModelCallUsage<'_>, now: Millis) -> Result<()> {
    const SQL: &str = "INSERT INTO usage (session_key, turn_id, agent_id, model, input_tokens, output_tokens,
          cached_tokens, cost_nanos, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let tokens = |n: Option<u64>| n.and_then(|n| i64::try_from(n).ok());
    let usage = call.usage;
    let counts = (tokens(usage.input_tokens), tokens(usage.output_tokens), tokens(usage.cached_tokens));
    let params = params![
        call.session,
        call.turn,
        call.agent,
        call.model,
        counts.0,
        counts.1,
        counts.2,
        call.cost_nanos,
        now
    ];
    tx.execute(SQL, params).map(drop)
}

/// Usage of one turn so far, over all its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnUsage {
    pub usage: TokenUsage,
    /// The known part of the cost.
    pub cost_nanos: i64,
    /// The model called last.
    pub model: Option<String>,
}

/// Sums the stored calls of a turn that continues after a restart or ends early.
pub fn sum_by_turn(tx: &mut Tx<'_>, turn: &TurnId) -> Result<TurnUsage> {
    const SQL: &str = "SELECT model, input_tokens, output_tokens, cached_tokens, cost_nanos FROM usage
        WHERE turn_id = $1 ORDER BY seq";
    let tokens = |row: &Row<'_>, at| row.opt_int(at).map(|tokens| tokens.map(i64::unsigned_abs));
    let calls = tx.query(SQL, params![turn], |row| {
        let usage = TokenUsage {
            input_tokens: tokens(row, 1)?,
            output_tokens: tokens(row, 2)?,
            cached_tokens: tokens(row, 3)?,
        };
        Ok((row.text(0)?, usage, row.opt_int(4)?))
    })?;
    let none = TurnUsage { usage: TokenUsage::ZERO, ..TurnUsage::default() };
    Ok(calls.into_iter().fold(none, |spent, (model, usage, cost)| TurnUsage {
        usage: spent.usage.plus(usage),
        cost_nanos: spent.cost_nanos + cost.unwrap_or(0),
        model: Some(model),
    }))
}

/// Totals since a time. Unknown values are left out of the sums and counted separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupedUsage {
    pub group: String,
    pub calls: i64,
    pub unknown_calls: i64,
    /// Calls with unknown cost, because their usage or the model's price is unknown.
    pub unpriced_calls: i64,
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub cached_tokens: Option<i64>,
    pub cost_nanos: Option<i64>,
}

impl GroupedUsage {
    /// Returns input plus output tokens, as far as known.
    pub fn total_tokens(&self) -> Option<i64> {
        match (self.input_tokens, self.output_tokens) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or(0) + output.unwrap_or(0)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageGroupKey {
    Agent,
    Model,
    Session,
    /// Days since 1970, for a clock this many milliseconds ahead of UTC.
    Day(i64),
}

macro_rules! sums {
    ($group:literal, $which:literal) => {
        concat!(
            "SELECT ", $group, ", COUNT(*),
             COUNT(*) - COUNT(CASE WHEN input_tokens IS NOT NULL AND output_tokens IS NOT NULL THEN 1 END),
             COUNT(*) - COUNT(cost_nanos),
             CAST(SUM(input_tokens) AS BIGINT), CAST(SUM(output_tokens) AS BIGINT),
             CAST(SUM(cached_tokens) AS BIGINT), CAST(SUM(cost_nanos) AS BIGINT)
             FROM usage WHERE ", $which, " GROUP BY 1 ORDER BY 1"
        )
    };
}

pub fn sum_totals(tx: &mut Tx<'_>, since: Millis, by: UsageGroupKey) -> Result<Vec<GroupedUsage>> {
    macro_rules! sql {
        ($group:literal) => {
            sums!($group, "created_at >= $1")
        };
    }
    let named = |row: &Row<'_>| grouped_usage_from_row(row.text(0)?, row);
    match by {
        UsageGroupKey::Agent => tx.query(sql!("agent_id"), params![since], named),
        UsageGroupKey::Model => tx.query(sql!("model"), params![since], named),
        UsageGroupKey::Session => tx.query(sql!("session_key"), params![since], named),
        UsageGroupKey::Day(offset) => {
            let dated = |row: &Row<'_>| grouped_usage_from_row(row.int(0)?.to_string(), row);
            tx.query(sql!("(created_at + $2) / 86400000"), params![since, offset], dated)
        }
    }
}

/// Returns the total usage of one session; `None` if it made no model call.
pub fn sum_by_session(tx: &mut Tx<'_>, session: &SessionKey) -> Result<Option<GroupedUsage>> {
    const SQL: &str = sums!("session_key", "session_key = $1");
    tx.query_one(SQL, params![session], |row| grouped_usage_from_row(row.text(0)?, row))
}

fn grouped_usage_from_row(group: String, row: &Row<'_>) -> Result<GroupedUsage> {
    Ok(GroupedUsage {
        group,
        calls: row.int(1)?,
        unknown_calls: row.int(2)?,
        unpriced_calls: row.int(3)?,
        input_tokens: row.opt_int(4)?,
        output_tokens: row.opt_int(5)?,
        cached_tokens: row.opt_int(6)?,
        cost_nanos: row.opt_int(7)?,
    })
}
