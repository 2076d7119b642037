//! How long a task is its owner's, and what becomes of it then.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use polyclaw_domain::task::{TaskMember, TaskNo, TeamTaskState};
use polyclaw_domain::time::Millis;
use polyclaw_store::tasks::{self, TaskEventKind};
use polyclaw_store::{Db, Result, Tx};
use serde_json::json;
use tokio::sync::Notify;

use super::{LEASE, claim, code, end, end_with, get, key, kinds, some, team, worker};
use crate::rows::NOW;

on_every_ledger!(
    expired_task_lease_frees_task_and_fences_old_owner,
    renewed_lease_keeps_its_task,
    tasks_are_reassigned_to_new_session_of_a_member,
    task_released_while_its_lease_expires_is_freed_once,
);

/// Far behind every lease, on whichever clock.
fn late() -> Millis {
    Millis(i64::MAX / 2)
}

async fn expired(db: &Db) -> Result<Vec<i64>> {
    let is_shared = db.is_shared();
    db.write(move |tx| expire(tx, is_shared)).await
}

fn expire(tx: &mut Tx<'_>, is_shared: bool) -> Result<Vec<i64>> {
    // PostgreSQL measures leases by its own clock: there the lease is moved back instead.
    if is_shared {
        tx.execute("UPDATE tasks SET lease_until = 1 WHERE owner IS NOT NULL", &[])?;
    }
    let freed = tasks::expire_leases(tx, &team(), late())?;
    Ok(freed.into_iter().map(|freed| freed.no.0).collect())
}

async fn expired_task_lease_frees_task_and_fences_old_owner(db: Db) -> Result<()> {
    some(&db, &[("a", &[])]).await?;
    let (ann, bob) = (worker("ann"), worker("bob"));
    claim(&db, &ann, Some(1)).await?.unwrap();
    assert_eq!(db.write(|tx| tasks::expire_leases(tx, &team(), NOW)).await?, []);
    assert_eq!(expired(&db).await?, [1]);
    assert_eq!(get(&db, 1).await?.state, TeamTaskState::Pending);
    assert_eq!(code(end_with(&db, &ann, 1, TeamTaskState::Completed, 1).await?), "task_not_yours");
    assert_eq!(code(end_with(&db, &worker("eve"), 1, TeamTaskState::Completed, 1).await?), "task_not_yours");
    let late = db.read(|tx| tasks::list_events(tx, &team(), 0, 99)).await?;
    let late: Vec<_> = late.iter().filter(|event| event.kind == TaskEventKind::Late).collect();
    assert_eq!(late.len(), 1, "what ann did is kept though nobody has the task; eve never had it");
    assert_eq!((late[0].actor.as_str(), &late[0].data["artifacts"][0]["path"]), ("ann", &json!("a.txt")));
    assert_eq!(claim(&db, &bob, Some(1)).await?.unwrap().lease.unwrap().fencing_token, 2);
    assert_eq!(code(end_with(&db, &ann, 1, TeamTaskState::Completed, 1).await?), "stale_claim");
    assert_eq!(
        code(end_with(&db, &bob, 1, TeamTaskState::Completed, 1).await?),
        "stale_claim",
        "an old check"
    );
    assert_eq!(code(end_with(&db, &bob, 1, TeamTaskState::Completed, 2).await?), "ok");
    let events = db.read(|tx| tasks::list_events(tx, &team(), 0, 99)).await?;
    let late =
        events.iter().filter(|event| event.kind == TaskEventKind::Late).map(|event| event.actor.as_str());
    assert_eq!(late.collect::<Vec<_>>(), ["ann", "ann", "bob"]);
    Ok(())
}

async fn renewed_lease_keeps_its_task(db: Db) -> Result<()> {
    // Both leases have ended, on whichever clock.
    const ENDED: &str = "UPDATE tasks SET lease_until = 1 WHERE owner IS NOT NULL";
    some(&db, &[("a", &[]), ("b", &[])]).await?;
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    claim(&db, &worker("bob"), Some(2)).await?.unwrap();
    assert_eq!(db.write(|tx| tx.execute(ENDED, &[])).await?, 2);
    let before = db.read(|tx| Ok(tx.lease_clock(NOW))).await?;
    let renewed = db.write(|tx| tasks::renew_leases(tx, &team(), &key("ann"), (NOW, LEASE))).await?;
    assert_eq!(renewed, 1);
    assert!(get(&db, 1).await?.lease.unwrap().until >= before.plus(LEASE));
    let freed = db.write(|tx| tasks::expire_leases(tx, &team(), NOW)).await?;
    assert_eq!(freed.into_iter().map(|freed| freed.no.0).collect::<Vec<_>>(), [2]);
    assert_eq!(get(&db, 1).await?.lease.unwrap().fencing_token, 1, "ann has it as before");
    Ok(())
}

async fn tasks_are_reassigned_to_new_session_of_a_member(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[])]).await?;
    let old = worker("ann");
    let new = TaskMember { session: key("ann2"), ..worker("ann") };
    claim(&db, &old, Some(1)).await?.unwrap();
    claim(&db, &worker("bob"), Some(2)).await?.unwrap();
    let given =
        db.write(|tx| tasks::reassign_to_session(tx, &team(), "ann", &key("ann2"), (NOW, LEASE))).await?;
    assert_eq!(given, [TaskNo(1)]);
    let again =
        db.write(|tx| tasks::reassign_to_session(tx, &team(), "ann", &key("ann2"), (NOW, LEASE))).await?;
    assert_eq!(again, [], "once");
    assert_eq!(code(end_with(&db, &old, 1, TeamTaskState::Completed, 1).await?), "stale_claim");
    assert_eq!(code(end(&db, &new, 1, TeamTaskState::Completed).await?), "ok");
    Ok(())
}

async fn task_released_while_its_lease_expires_is_freed_once(db: Db) -> Result<()> {
    some(&db, &[("a", &[])]).await?;
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    let (started_signal, is_shared) = (Arc::new(Notify::new()), db.is_shared());
    let tell = Arc::clone(&started_signal);
    let ends = db.write(move |tx| {
        let freed = expire(tx, is_shared)?;
        tell.notify_one();
        // On a server the other has looked, and waits for the row, before this is committed.
        thread::sleep(Duration::from_millis(300));
        Ok(freed)
    });
    let release = async {
        started_signal.notified().await;
        db.write(|tx| tasks::release_task(tx, &team(), TaskNo(1), &worker("ann"), NOW)).await
    };
    let (freed, released) = tokio::join!(ends, release);
    assert_eq!(freed?, [1]);
    assert!(released?.map_or(true, |task| task.state == TeamTaskState::Pending));
    assert_eq!(kinds(&db).await?, ["created", "claimed", "expired"]);
    Ok(())
}
