//! Batched claims on PostgreSQL. If every free task is open to everyone, one statement assigns them all.

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

/// Column positions in its result.
const KEY_COLUMN: usize = 22;
const HAS_NEEDS_COLUMN: usize = 23;

/// Returns the result of each claim, in order. `None` if nothing was claimed, or if not all members may take the same
/// tasks, so that each has to be claimed separately.
pub(super) fn claim_many(
    tx: &mut Tx<'_>,
    team: &TeamId,
    claims: &[TaskClaimRequest],
) -> Result<Option<Vec<TaskClaimResult>>> {
    let keys: HashSet<&str> = claims.iter().map(|claim| claim.key.as_str()).collect();
    // PostgreSQL cannot return keys with NUL unchanged, and equal keys are ambiguous.
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
