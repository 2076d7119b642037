//! Budgets: the amounts spent per scope and day, and the reservations of running calls. The reserving transaction
//! checks the limit against both with the scope's row locked, so concurrent calls cannot overspend together.

use polyclaw_domain::budget::{BudgetAmount, BudgetScope, DailyLimits, ReachedLimit};
use polyclaw_domain::id::TurnId;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::jobs::TurnClaim;
use crate::params;
use crate::tx::{Row, Tx};

/// A budget scope with its limits and the current day.
#[derive(Clone, Debug)]
pub struct BudgetLimit {
    pub scope: BudgetScope,
    pub limits: DailyLimits,
    pub day: i64,
    /// When the day started.
    pub since: Millis,
}

/// The usage of one budget scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetUsage {
    pub spent: BudgetAmount,
    pub reserved: BudgetAmount,
    /// Calls whose provider reported no usage. They count with their reserved amount.
    pub unknown_calls: i64,
}

/// Days for which past usage is kept.
const RETAINED_USAGE_DAYS: i64 = 35;

/// Reserves an amount for one call in every scope, or returns the scope whose limit is reached. Scopes are locked in
/// the order of their names, so that two calls never deadlock.
pub fn reserve_budget(
    tx: &mut Tx<'_>,
    claim: &TurnClaim,
    allowances: &[BudgetLimit],
    amount: BudgetAmount,
    now: Millis,
) -> Result<Option<(BudgetScope, ReachedLimit)>> {
    const INSERT_RESERVATION: &str =
        "INSERT INTO budget_reservations (scope, turn_id, node, attempt, tokens, nanos, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (scope, turn_id) DO UPDATE SET node = excluded.node, attempt = excluded.attempt,
          tokens = excluded.tokens, nanos = excluded.nanos, created_at = excluded.created_at";
    for allowance in allowances {
        let name = allowance.scope.name();
        let spent = lock_usage_row(tx, allowance, &name)?;
        let used = spent.plus(sum_reserved(tx, &name, Some(&claim.turn))?);
        if let Some(reached) = allowance.limits.reached_limit(used) {
            return Ok(Some((allowance.scope.clone(), reached)));
        }
    }
    for allowance in allowances {
        let (name, BudgetAmount { tokens, nanos }) = (allowance.scope.name(), amount);
        tx.execute(
            INSERT_RESERVATION,
            params![&name, &claim.turn, &claim.node, claim.attempt, tokens, nanos, now],
        )?;
    }
    Ok(None)
}

/// Adds a call's usage to every scope and ends its reservations, in the transaction that stores the call. Returns the
/// scopes that have now passed 80 % of a limit, each once a day.
pub fn commit_usage(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    allowances: &[BudgetLimit],
    amount: BudgetAmount,
    is_unknown: bool,
) -> Result<Vec<(BudgetScope, ReachedLimit)>> {
    const ADD_USAGE: &str = "UPDATE budget_usage SET tokens = tokens + $3, nanos = nanos + $4,
          unknown_calls = unknown_calls + $5 WHERE day = $1 AND scope = $2 RETURNING tokens, nanos";
    const MARK_WARNED: &str =
        "UPDATE budget_usage SET warned = 1 WHERE day = $1 AND scope = $2 AND warned = 0";
    let mut warned = Vec::new();
    for allowance in allowances {
        let (day, name) = (allowance.day, allowance.scope.name());
        lock_usage_row(tx, allowance, &name)?;
        let params = params![day, &name, amount.tokens, amount.nanos, is_unknown];
        let spent = tx.query_one(ADD_USAGE, params, amount_from_row)?.unwrap_or_default();
        if let Some(nearly) = allowance.limits.nearly_reached_limit(spent)
            && tx.execute(MARK_WARNED, params![day, &name])? == 1
        {
            warned.push((allowance.scope.clone(), nearly));
        }
    }
    release_reservations(tx, turn)?;
    Ok(warned)
}

/// Releases the reservations of a call that cost nothing.
pub fn release_reservations(tx: &mut Tx<'_>, turn: &TurnId) -> Result<()> {
    const SQL: &str = "DELETE FROM budget_reservations WHERE turn_id = $1";
    tx.execute(SQL, params![turn]).map(drop)
}

pub fn get_usage(tx: &mut Tx<'_>, allowance: &BudgetLimit) -> Result<BudgetUsage> {
    const SQL: &str = "SELECT tokens, nanos, unknown_calls FROM budget_usage WHERE day = $1 AND scope = $2";
    let name = allowance.scope.name();
    let read = |row: &Row<'_>| Ok((amount_from_row(row)?, row.int(2)?));
    let (spent, unknown_calls) = match tx.query_one(SQL, params![allowance.day, &name], read)? {
        Some(found) => found,
        None => (sum_stored_usage(tx, allowance)?, 0),
    };
    Ok(BudgetUsage { spent, reserved: sum_reserved(tx, &name, None)?, unknown_calls })
}

/// Lists the sessions with usage on a day, most expensive first.
pub fn list_session_scopes(tx: &mut Tx<'_>, day: i64, limit: usize) -> Result<Vec<BudgetScope>> {
    const SQL: &str =
        "SELECT scope FROM budget_usage WHERE day = $1 AND scope >= 'session:' AND scope < 'session;'
        ORDER BY nanos DESC, tokens DESC, scope LIMIT $2";
    let names = tx.query(SQL, params![day, limit], |row| row.text(0))?;
    Ok(names.iter().filter_map(|name| BudgetScope::parse(name)).collect())
}

/// Locks the scope's usage row. The first call of a day creates it from the usage stored since the day started.
fn lock_usage_row(tx: &mut Tx<'_>, allowance: &BudgetLimit, name: &str) -> Result<BudgetAmount> {
    const LOCK_USAGE: &str =
        "SELECT tokens, nanos FROM budget_usage WHERE day = $1 AND scope = $2 /* lock */";
    const INSERT_USAGE: &str = "INSERT INTO budget_usage (day, scope, tokens, nanos, unknown_calls)
        VALUES ($1, $2, $3, $4, 0) ON CONFLICT (day, scope) DO NOTHING";
    const DELETE_OLD_USAGE: &str = "DELETE FROM budget_usage WHERE day < $1";
    if let Some(spent) = tx.query_one(LOCK_USAGE, params![allowance.day, name], amount_from_row)? {
        return Ok(spent);
    }
    let before = sum_stored_usage(tx, allowance)?;
    tx.execute(DELETE_OLD_USAGE, params![allowance.day - RETAINED_USAGE_DAYS])?;
    tx.execute(INSERT_USAGE, params![allowance.day, name, before.tokens, before.nanos])?;
    Ok(tx.query_one(LOCK_USAGE, params![allowance.day, name], amount_from_row)?.unwrap_or_default())
}

/// Sums the usage stored since the day started, so that a budget set at noon counts the morning.
fn sum_stored_usage(tx: &mut Tx<'_>, allowance: &BudgetLimit) -> Result<BudgetAmount> {
    macro_rules! sum {
        ($which:literal) => {
            concat!(
                "SELECT CAST(COALESCE(SUM(COALESCE(input_tokens, 0) + COALESCE(output_tokens, 0)), 0) AS BIGINT),
                 CAST(COALESCE(SUM(cost_nanos), 0) AS BIGINT) FROM usage WHERE created_at >= $1",
                $which
            )
        };
    }
    let since = allowance.since;
    let found = match &allowance.scope {
        BudgetScope::Instance => tx.query_one(sum!(""), params![since], amount_from_row),
        BudgetScope::Agent(id) => {
            tx.query_one(sum!(" AND agent_id = $2"), params![since, id], amount_from_row)
        }
        BudgetScope::Session(key) => {
            tx.query_one(sum!(" AND session_key = $2"), params![since, key], amount_from_row)
        }
        BudgetScope::Team(name) => {
            const TEAM_SUM: &str = sum!(
                " AND session_key IN (SELECT m.session_key FROM members m
                   JOIN teams t ON t.team_id = m.team_id WHERE t.name = $2)"
            );
            tx.query_one(TEAM_SUM, params![since, name], amount_from_row)
        }
    };
    Ok(found?.unwrap_or_default())
}

/// Sums the reservations of running calls. A reservation of a dead process does not count: its turn has or will get
/// another claim before it is used.
fn sum_reserved(tx: &mut Tx<'_>, scope: &str, except: Option<&TurnId>) -> Result<BudgetAmount> {
    const SQL: &str =
        "SELECT CAST(COALESCE(SUM(r.tokens), 0) AS BIGINT), CAST(COALESCE(SUM(r.nanos), 0) AS BIGINT)
        FROM budget_reservations r JOIN jobs j ON j.turn_id = r.turn_id
        WHERE r.scope = $1 AND r.turn_id <> $2
          AND j.state = 'running' AND j.node = r.node AND j.attempt = r.attempt";
    let except = except.map_or("", TurnId::as_str);
    Ok(tx.query_one(SQL, params![scope, except], amount_from_row)?.unwrap_or_default())
}

fn amount_from_row(row: &Row<'_>) -> Result<BudgetAmount> {
    Ok(BudgetAmount { tokens: row.int(0)?, nanos: row.int(1)? })
}
