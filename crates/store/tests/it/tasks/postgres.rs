//! What a ledger on PostgreSQL promises: those who claim do not stand in line, and those who cross come through.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use polyclaw_domain::task::{TaskNo, TaskRefusal};
use polyclaw_store::tasks::{self, TaskEventKind};
use polyclaw_store::{Db, Tx};
use postgres::{Client, NoTls};

use super::meetings::{GUARD, hold};
use super::{asked, claim, get, some, team, worker};
use crate::engines::{Shared, answer, drive};

#[test]
fn claim_skips_task_locked_by_another_claim() {
    let shared = Shared::new();
    let (first, second) = (shared.open().unwrap(), shared.open().unwrap());
    drive(some(&first, &[("a", &[]), ("b", &[])]));
    let held = hold(first, |tx| tasks::claim_oldest(tx, &asked("ann", "k")));
    let bob = answer(claim(&second, &worker("bob"), None)).unwrap();
    assert_eq!(bob.unwrap().no, TaskNo(2), "it neither waited for the first nor took it");
    assert_eq!(held.let_go().unwrap().no, TaskNo(1));
}

/// All of them are in their transactions at the same time, or none gets on.
#[test]
fn pool_runs_one_transaction_per_connection_at_a_time() {
    let db = Shared::new().open().unwrap();
    drive(some(&db, &[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[])]));
    let meet = Arc::new(Barrier::new(4));
    let claimers = ["ann", "bob", "cat", "dan"].map(|name| {
        let (db, meet, mut met) = (db.clone(), Arc::clone(&meet), false);
        let claim = move |tx: &mut Tx<'_>| {
            let claimed = tasks::claim_oldest(tx, &asked(name, name))?;
            if !std::mem::replace(&mut met, true) {
                meet.wait();
            }
            Ok(claimed.unwrap().no)
        };
        thread::spawn(move || answer(db.write(claim)).unwrap())
    });
    let mut taken = claimers.map(|claimer| claimer.join().unwrap());
    taken.sort_unstable();
    assert_eq!(taken, [1, 2, 3, 4].map(TaskNo));
}

/// Each has taken one task when it reaches for the other's: one is undone and comes again, and finds both taken.
#[test]
fn crosswise_claims_deadlock_and_both_complete_after_retry() {
    let db = Shared::new().open().unwrap();
    drive(some(&db, &[("a", &[]), ("b", &[])]));
    let (meet, runs) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
    let both = [("ann", [1, 2]), ("bob", [2, 1])].map(|(name, order)| {
        let (db, meet, runs) = (db.clone(), Arc::clone(&meet), Arc::clone(&runs));
        let mut met = false;
        let take = move |tx: &mut Tx<'_>| {
            runs.fetch_add(1, Ordering::SeqCst);
            let take = |tx: &mut Tx<'_>, no: i64| {
                let key = format!("{name}-{no}");
                tasks::claim_task(tx, TaskNo(no), &asked(name, &key))
            };
            let first = take(tx, order[0])?.is_ok();
            if !std::mem::replace(&mut met, true) {
                meet.wait();
            }
            Ok(usize::from(first) + usize::from(take(tx, order[1])?.is_ok()))
        };
        thread::spawn(move || answer(db.write(take)).unwrap())
    });
    let mut taken = both.map(|one| one.join().unwrap());
    taken.sort_unstable();
    assert_eq!((taken, runs.load(Ordering::SeqCst)), ([0, 2], 3), "the loser ran twice");
    drive(async {
        let owners = [get(&db, 1).await?, get(&db, 2).await?].map(|task| task.lease.unwrap());
        assert_eq!(owners[0].owner, owners[1].owner);
        assert!(owners.iter().all(|lease| lease.fencing_token == 1), "what was undone left nothing");
        let events = db.read(|tx| tasks::list_events(tx, &team(), 0, 9)).await?;
        assert_eq!(events.iter().filter(|event| event.kind == TaskEventKind::Claimed).count(), 2);
        Ok(())
    });
}

/// The server has ended a connection.
fn wait_until_disconnected(url: &str, pid: i64) {
    const THERE: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = $1";
    let mut client = Client::connect(url, NoTls).unwrap();
    let (began, pid) = (Instant::now(), i32::try_from(pid).unwrap());
    while client.query_one(THERE, &[&pid]).unwrap().get::<_, i64>(0) > 0 {
        assert!(began.elapsed() < GUARD, "nobody cut it off");
    }
}

/// It has taken a task and says nothing more, as a machine does that is gone: its lock ends, another takes the task, and
/// should it come back it is told so.
#[test]
fn idle_transaction_is_ended_and_its_task_claimed_by_another() {
    const PATIENCE: &str = "SHOW idle_in_transaction_session_timeout";
    const LESS: &str = "SET LOCAL idle_in_transaction_session_timeout = '50ms'";
    const PID: &str = "SELECT CAST(pg_backend_pid() AS BIGINT)";
    let shared = Shared::new();
    let (still, other) = (shared.open().unwrap(), shared.open().unwrap());
    drive(some(&still, &[("a", &[])]));
    let (url, mut stood, by) = (shared.url.clone(), false, other.clone());
    let ann = answer(still.write(move |tx| {
        let timeout = tx.query_one(PATIENCE, &[], |row| row.text(0))?;
        assert_eq!(timeout.as_deref(), Some("30s"), "that is how long others wait at the most");
        let claimed = tasks::claim_task(tx, TaskNo(1), &asked("ann", "k"))?;
        if !std::mem::replace(&mut stood, true) {
            let pid = tx.query_one(PID, &[], |row| row.int(0))?.unwrap();
            tx.execute(LESS, &[])?;
            wait_until_disconnected(&url, pid);
            claim_as_bob(&by);
        }
        tx.execute(LESS, &[])?;
        Ok(claimed)
    }));
    assert_eq!(ann.unwrap().unwrap_err(), TaskRefusal::Taken(TaskNo(1), "bob".into()));
    drive(async {
        let lease = get(&other, 1).await?.lease.unwrap();
        assert_eq!((lease.owner.as_str(), lease.fencing_token), ("bob", 1));
        Ok(())
    });
}

fn claim_as_bob(db: &Db) {
    let db = db.clone();
    let bob = thread::spawn(move || answer(claim(&db, &worker("bob"), Some(1))).unwrap());
    assert!(bob.join().unwrap().is_ok());
}
