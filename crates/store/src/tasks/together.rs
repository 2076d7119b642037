//! Claims of many at once. Where every free task is for everybody, one statement hands them out.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use polyclaw_domain::id::TeamId;
use polyclaw_domain::task::{Refusal, Task, Worker};

use super::claim::{facts, note_claim, ready};
use super::{Claim, Claimed, Kind, claim_oldest, columns, read, with_needs};
use crate::error::Result;
use crate::messages::to_json;
use crate::params;
use crate::tx::{Row, Tx};

/// What each gets of one team's tasks, in their order.
pub fn claim_together(tx: &mut Tx<'_>, team: &TeamId, asked: &[Claim]) -> Result<Vec<Claimed>> {
    let mut got = Vec::with_capacity(asked.len());
    let mut left = asked;
    for size in &*SIZES {
        while let Some((claims, rest)) = left.split_at_checked(size.count) {
            got.extend(handed_out(tx, team, size, claims)?);
            left = rest;
        }
    }
    for claim in left {
        got.push(claim_oldest(tx, claim)?);
    }
    Ok(got)
}

fn handed_out(tx: &mut Tx<'_>, team: &TeamId, size: &'static Size, claims: &[Claim]) -> Result<Vec<Claimed>> {
    let mut by_key = taken(tx, team, size, claims)?;
    if by_key.is_empty() {
        // There is nothing, or not all may take the same: each looks for itself.
        return claims.iter().map(|claim| claim_oldest(tx, claim)).collect();
    }
    let got = |claim: &Claim| by_key.remove(claim.key.as_str()).ok_or(Refusal::NothingFree);
    Ok(claims.iter().map(got).collect())
}

/// What was handed out, by the key of whoever got it.
fn taken(
    tx: &mut Tx<'_>,
    team: &TeamId,
    size: &'static Size,
    claims: &[Claim],
) -> Result<HashMap<String, Task>> {
    let keys: HashSet<&str> = claims.iter().map(|claim| claim.key.as_str()).collect();
    // What PostgreSQL would give back as another is no key to find anything by.
    if keys.len() < claims.len() || keys.iter().any(|key| key.contains('\0')) {
        return Ok(HashMap::new());
    }
    let are_able = claims.iter().any(|claim| !claim.worker.capabilities.is_empty());
    let mut params = params![team, are_able].to_vec();
    for Claim { key, worker: Worker { name, session, .. }, now, lease_ms, .. } in claims {
        let until = tx.lease_clock(*now).plus(*lease_ms);
        params.extend(params![name, session, key, until, *now]);
    }
    let read = |row: &Row<'_>| Ok((row.text(KEY)?, row.flag(HAS_NEEDS)?, read(row)?));
    let mut taken = tx.query(&size.hand_out, &params, read)?;
    taken.sort_by_key(|(_, _, task)| task.no);
    let tasks: Vec<&Task> = taken.iter().map(|(_, _, task)| task).collect();
    match tasks.len() == size.count {
        true => note_claims(tx, team, size, &tasks)?,
        false => tasks.iter().try_for_each(|task| note_claim(tx, task))?,
    }
    let mut by_key = HashMap::new();
    for (key, has_needs, task) in taken {
        by_key.insert(key, if has_needs { with_needs(tx, task)? } else { task });
    }
    Ok(by_key)
}

/// An event for each.
fn note_claims(tx: &mut Tx<'_>, team: &TeamId, size: &'static Size, tasks: &[&Task]) -> Result<()> {
    let facts = tasks.iter().map(|task| to_json(&facts(task))).collect::<Result<Vec<_>>>()?;
    let mut params = params![team, Kind::Claimed.as_str()].to_vec();
    for (task, data) in tasks.iter().zip(&facts) {
        let owner = task.lease.as_ref().map(|lease| &lease.owner);
        params.extend(params![task.no.0, owner, data, task.claimed_at]);
    }
    tx.execute(&size.note, &params).map(drop)
}

macro_rules! bound {
    () => {
        "b.team_id = $1 AND b.state = 'pending' AND (b.assignee IS NOT NULL OR b.capability IS NOT NULL)"
    };
}

/// What is asked for so many at once. The number is written out: for one it does not know PostgreSQL plans each time anew.
struct Size {
    count: usize,
    hand_out: String,
    note: String,
}

/// Few, for each is prepared on each connection.
static SIZES: LazyLock<[Size; 4]> =
    LazyLock::new(|| [16, 8, 4, 2].map(|count| Size { count, hand_out: hand_out(count), note: note(count) }));

/// The oldest to the first who asked, the next to the second. Where others are at some, those are stepped over.
fn hand_out(count: usize) -> String {
    let workers = list(count, |n| {
        let at = 3 + 5 * n;
        let texts = format!("${at}, ${}, ${}", at + 1, at + 2);
        format!("({n}, {texts}, CAST(${} AS BIGINT), CAST(${} AS BIGINT))", at + 3, at + 4)
    });
    format!(
        "WITH asked (place, name, session, key, until, at) AS (VALUES {workers}),
         free AS MATERIALIZED (
           SELECT t.task_no FROM tasks t
           WHERE t.team_id = $1 AND t.state = 'pending' AND t.owner IS NULL
             AND t.assignee IS NULL AND t.capability IS NULL AND {ready} AND ({SPECIAL}) IS NULL
           ORDER BY t.task_no LIMIT {count} /* skip locked */),
         handed AS (
           SELECT f.task_no AS no, a.* FROM asked a
           JOIN (SELECT task_no, row_number() OVER (ORDER BY task_no) - 1 AS place FROM free) f ON f.place = a.place)
         UPDATE tasks SET state = 'claimed', owner = h.name, owner_key = h.session, fence = fence + 1,
           lease_until = h.until, claimed_at = h.at, claim_key = h.key
         FROM handed h WHERE tasks.team_id = $1 AND tasks.task_no = h.no
         RETURNING {columns}, claim_key, (SELECT COUNT(*) FROM task_needs n
           WHERE n.team_id = tasks.team_id AND n.task_no = tasks.task_no)",
        ready = ready!(),
        columns = columns!(),
    )
}

/// Something if one of these was answered before, or there is a task that some may take and others may not. Each is looked
/// for by itself: a list of them would be compared with every task there is.
const SPECIAL: &str = concat!(
    "SELECT 1 FROM asked a
     WHERE (SELECT 1 FROM tasks b WHERE b.team_id = $1 AND b.claim_key = a.key LIMIT 1) IS NOT NULL
       OR (SELECT 1 FROM tasks b WHERE ",
    bound!(),
    " AND b.assignee = a.name LIMIT 1) IS NOT NULL
       OR ($2 = 1 AND (SELECT 1 FROM tasks b WHERE ",
    bound!(),
    " AND b.assignee IS NULL LIMIT 1) IS NOT NULL)
     LIMIT 1"
);

/// Where these are in what it returns.
const KEY: usize = 22;
const HAS_NEEDS: usize = 23;

fn note(count: usize) -> String {
    let rows = list(count, |n| {
        let at = 3 + 4 * n;
        format!("($1, ${at}, $2, ${}, ${}, ${})", at + 1, at + 2, at + 3)
    });
    format!("INSERT INTO task_events (team_id, task_no, kind, actor, data_json, created_at) VALUES {rows}")
}

fn list(count: usize, one: impl Fn(usize) -> String) -> String {
    (0..count).map(one).collect::<Vec<_>>().join(", ")
}
