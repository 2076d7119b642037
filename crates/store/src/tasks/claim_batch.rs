//! Claims of many at once on PostgreSQL. Where every free task is for everybody, one statement hands them out.

use std::collections::{HashMap, HashSet};

use polyclaw_domain::id::TeamId;
use polyclaw_domain::task::{TaskRefusal, TeamTask};
use serde_json::{Value, json};

use super::{TaskClaimRequest, TaskClaimResult, columns, task_from_row, with_dependencies};
use crate::error::Result;
use crate::messages::to_json;
use crate::params;
use crate::tx::{Row, Tx};

const CLAIM_MANY: &str = concat!(
    "SELECT ",
    columns!(),
    ", claim_key, (SELECT COUNT(*) FROM task_needs n WHERE n.team_id = t.team_id AND n.task_no = t.task_no)
     FROM claim_tasks($1, $2, $3) t"
);

/// Where these are in what it returns.
const KEY_COLUMN: usize = 22;
const HAS_NEEDS_COLUMN: usize = 23;

/// What each gets of one team's tasks, in their order. `None`: there is nothing, or not all may take the same, so each looks
/// for itself.
pub(super) fn claim_many(
    tx: &mut Tx<'_>,
    team: &TeamId,
    claims: &[TaskClaimRequest],
) -> Result<Option<Vec<TaskClaimResult>>> {
    let keys: HashSet<&str> = claims.iter().map(|claim| claim.key.as_str()).collect();
    // What PostgreSQL would give back as another is no key to find anything by.
    if keys.len() < claims.len() || keys.iter().any(|key| key.contains('\0')) {
        return Ok(None);
    }
    let are_able = claims.iter().any(|claim| !claim.worker.capabilities.is_empty());
    let asked = to_json(&claims.iter().map(claim_to_json).collect::<Value>())?;
    let taken = |row: &Row<'_>| Ok((row.text(KEY_COLUMN)?, row.flag(HAS_NEEDS_COLUMN)?, task_from_row(row)?));
    let mut by_key: HashMap<String, TeamTask> = HashMap::new();
    for (key, has_needs, task) in tx.query(CLAIM_MANY, params![team, are_able, &asked], taken)? {
        by_key.insert(key, if has_needs { with_dependencies(tx, task)? } else { task });
    }
    if by_key.is_empty() {
        return Ok(None);
    }
    let got = |claim: &TaskClaimRequest| by_key.remove(claim.key.as_str()).ok_or(TaskRefusal::NothingFree);
    Ok(Some(claims.iter().map(got).collect()))
}

fn claim_to_json(claim: &TaskClaimRequest) -> Value {
    let TaskClaimRequest { key, worker, now, lease_ms, .. } = claim;
    json!({ "key": key, "name": worker.name, "session": worker.session, "at": now.0, "lease_ms": lease_ms })
}
