//! Claims of many at once. Where every free task is for everybody, one statement hands them out.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use polyclaw_domain::id::TeamId;
use polyclaw_domain::task::{Task, Worker};

use super::claim::{facts, ready};
use super::{Claim, Claimed, Kind, claim_oldest, columns, read, with_needs_of};
use crate::error::Result;
use crate::messages::to_json;
use crate::params;
use crate::tx::{Param, Tx};

/// Handed out by one statement at most.
const MOST: usize = 16;

/// What each gets, in their order.
pub fn claim_together(tx: &mut Tx<'_>, asked: &[Claim]) -> Result<Vec<Claimed>> {
    let mut got = Vec::with_capacity(asked.len());
    for claims in asked.chunk_by(|one, next| one.team == next.team).flat_map(|team| team.chunks(MOST)) {
        match is_plain(tx, claims)? {
            true => got.extend(handed_out(tx, claims)?),
            false => {
                for claim in claims {
                    got.push(claim_oldest(tx, claim)?);
                }
            }
        }
    }
    Ok(got)
}

/// Whether they may all take the same tasks, and none of them has had its answer before.
fn is_plain(tx: &mut Tx<'_>, claims: &[Claim]) -> Result<bool> {
    let keys: HashSet<&str> = claims.iter().map(|claim| claim.key.as_str()).collect();
    if claims.len() == 1 || keys.len() < claims.len() {
        return Ok(false);
    }
    let are_able = claims.iter().any(|claim| !claim.worker.capabilities.is_empty());
    let mut params = params![&claims[0].team, are_able].to_vec();
    params.extend(padded(claims, |claim| [(&claim.key).into(), (&claim.worker.name).into()]));
    Ok(tx.query_one(&SPECIAL, &params, |_| Ok(()))?.is_none())
}

fn handed_out(tx: &mut Tx<'_>, claims: &[Claim]) -> Result<Vec<Claimed>> {
    let team = &claims[0].team;
    let mut params = params![team, claims.len()].to_vec();
    params.extend(padded(claims, |claim| {
        let until = tx.lease_clock(claim.now).plus(claim.lease_ms);
        let Worker { name, session, .. } = &claim.worker;
        [name.into(), session.into(), (&claim.key).into(), until.into(), claim.now.into()]
    }));
    let taken = tx.query(&HAND_OUT, &params, |row| Ok((row.text(KEY)?, read(row)?)))?;
    let (keys, mut tasks): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
    with_needs_of(tx, team, &mut tasks)?;
    note_claims(tx, team, &tasks)?;
    let mut taken: HashMap<String, Task> = keys.into_iter().zip(tasks).collect();
    let mut got = Vec::with_capacity(claims.len());
    for claim in claims {
        got.push(match taken.remove(&claim.key) {
            Some(task) => Ok(task),
            // There were fewer than were asked for, or others were at the rest: each looks for itself.
            None => claim_oldest(tx, claim)?,
        });
    }
    Ok(got)
}

/// An event for each, in the order of the tasks.
fn note_claims(tx: &mut Tx<'_>, team: &TeamId, tasks: &[Task]) -> Result<()> {
    let facts = tasks.iter().map(|task| Ok((task, to_json(&facts(task))?)));
    let facts = facts.collect::<Result<Vec<_>>>()?;
    let mut params = params![team, Kind::Claimed.as_str()].to_vec();
    params.extend(padded(&facts, |(task, data)| {
        let owner = task.lease.as_ref().map(|lease| &lease.owner);
        [task.no.0.into(), owner.into(), data.into(), task.claimed_at.into()]
    }));
    tx.execute(&NOTE, &params).map(drop)
}

/// The parameters of as many rows as a statement has; those that are not needed are empty.
fn padded<'a, T, const N: usize>(
    rows: &'a [T],
    params: impl Fn(&'a T) -> [Param<'a>; N],
) -> impl Iterator<Item = Param<'a>> {
    rows.iter().flat_map(params).chain(std::iter::repeat(Param::Null)).take(MOST * N)
}

/// Whether one of these was answered before, or there is a task that some may take and others may not.
static SPECIAL: LazyLock<String> = LazyLock::new(|| {
    let (keys, names) = (list(|n| format!("${}", 3 + 2 * n)), list(|n| format!("${}", 4 + 2 * n)));
    format!(
        "SELECT 1 FROM tasks t WHERE t.team_id = $1 AND t.claim_key IN ({keys})
         UNION ALL
         SELECT 1 FROM tasks t WHERE t.team_id = $1 AND t.state = 'pending'
           AND (t.assignee IS NOT NULL OR t.capability IS NOT NULL)
           AND (t.assignee IN ({names}) OR (t.assignee IS NULL AND $2 = 1))
         LIMIT 1"
    )
});

/// The oldest to the first who asked, the next to the second. Where others are at some, those are stepped over.
static HAND_OUT: LazyLock<String> = LazyLock::new(|| {
    let workers = list(|n| {
        let first = 3 + 5 * n;
        let texts = format!("${}, ${}, ${}", first, first + 1, first + 2);
        format!("({n}, {texts}, CAST(${} AS BIGINT), CAST(${} AS BIGINT))", first + 3, first + 4)
    });
    format!(
        "WITH free AS MATERIALIZED (
           SELECT t.task_no FROM tasks t
           WHERE t.team_id = $1 AND t.state = 'pending' AND t.owner IS NULL
             AND t.assignee IS NULL AND t.capability IS NULL AND {}
           ORDER BY t.task_no LIMIT $2 /* skip locked */),
         handed AS (
           SELECT f.task_no AS no, w.column2 AS name, w.column3 AS session, w.column4 AS key, w.column5 AS until,
             w.column6 AS at
           FROM (SELECT task_no, row_number() OVER (ORDER BY task_no) - 1 AS place FROM free) f
           JOIN (VALUES {workers}) w ON w.column1 = f.place)
         UPDATE tasks AS t SET state = 'claimed', owner = h.name, owner_key = h.session, fence = t.fence + 1,
           lease_until = h.until, claimed_at = h.at, claim_key = h.key
         FROM handed h WHERE t.team_id = $1 AND t.task_no = h.no
         RETURNING {}, claim_key",
        ready!(),
        columns!(),
    )
});
/// Where the key is in what it returns.
const KEY: usize = 22;

static NOTE: LazyLock<String> = LazyLock::new(|| {
    let rows = list(|n| {
        let first = 3 + 4 * n;
        let texts = format!("${}, ${}", first + 1, first + 2);
        format!("(CAST(${first} AS BIGINT), {texts}, CAST(${} AS BIGINT))", first + 3)
    });
    format!(
        "INSERT INTO task_events (team_id, task_no, kind, actor, data_json, created_at)
         SELECT $1, r.column1, $2, r.column2, r.column3, r.column4 FROM (VALUES {rows}) r
         WHERE r.column1 IS NOT NULL ORDER BY r.column1"
    )
});

fn list(one: impl Fn(usize) -> String) -> String {
    (0..MOST).map(one).collect::<Vec<_>>().join(", ")
}
