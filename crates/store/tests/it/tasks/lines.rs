//! What a line promises: those who wait for a task are written in one transaction, and none of them for another.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use polyclaw_domain::task::TaskNo;
use polyclaw_store::tasks::TaskClaimResult;
use polyclaw_store::{Db, DbTarget, Result, Tx, tasks};

use super::{asked, some, team};
use crate::engines::{Shared, answer, drive};

/// A node whose one connection is held until it is let go.
struct Held {
    gate: mpsc::Sender<()>,
    first: JoinHandle<()>,
}

impl Held {
    fn new(db: &Db) -> Self {
        let (gate, is_open) = mpsc::channel();
        let (begin, started_rx) = mpsc::channel();
        let hold = move |_: &mut Tx<'_>| {
            let _ = begin.send(());
            let _ = is_open.recv();
            Ok(())
        };
        let db = db.clone();
        let first = thread::spawn(move || answer(db.write(hold)).unwrap());
        started_rx.recv().unwrap();
        Self { gate, first }
    }

    fn let_go(self) {
        drop(self.gate);
        self.first.join().unwrap();
    }
}

fn node() -> Db {
    let url = Shared::new().url;
    Db::open(&DbTarget::Postgres { url, connections: 1 }).unwrap()
}

async fn claim(db: &Db, name: &str) -> Result<TaskClaimResult> {
    db.claim_oldest_task(asked(name, name)).await
}

/// The numbers of the transactions that wrote the tasks.
async fn writing_transactions(db: &Db) -> Result<Vec<i64>> {
    const NUMBERS: &str = "SELECT CAST(CAST(xmin AS TEXT) AS BIGINT) FROM tasks ORDER BY task_no";
    db.read(|tx| tx.query(NUMBERS, &[], |row| row.int(0))).await
}

#[test]
fn waiting_claims_are_written_in_one_transaction() {
    let db = node();
    drive(async {
        some(&db, &[("a", &[]), ("b", &[]), ("c", &[])]).await?;
        let held = Held::new(&db);
        // The first is on its way to the database when the others come.
        let later = async {
            tokio::task::yield_now().await;
            tokio::join!(claim(&db, "bob"), claim(&db, "cat"), async { held.let_go() })
        };
        let (ann, (bob, cat, ())) = tokio::join!(claim(&db, "ann"), later);
        let numbers = [ann?, bob?, cat?].map(|claimed| claimed.unwrap().no);
        assert_eq!(numbers, [1, 2, 3].map(TaskNo), "in the order they came");
        let by = writing_transactions(&db).await?;
        assert!(
            by[0] < by[1] && by[1] == by[2],
            "who came later is written later, and all of them at once: {by:?}"
        );
        Ok(())
    });
}

#[test]
fn failing_claim_does_not_fail_its_batch() {
    let db = node();
    drive(async {
        some(&db, &[("a", &[]), ("b", &[])]).await?;
        let held = Held::new(&db);
        // More than an index takes, and nothing that could be packed.
        let mut key = "k".to_owned();
        (0..3_000)
            .for_each(|n: u64| key.push_str(&format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 17)));
        let too_long = asked("bob", &key);
        let (ann, bob, cat, ()) =
            tokio::join!(claim(&db, "ann"), db.claim_oldest_task(too_long), claim(&db, "cat"), async {
                held.let_go();
            });
        assert!(bob.is_err(), "{bob:?}");
        assert_eq!([ann?, cat?].map(|claimed| claimed.unwrap().no), [1, 2].map(TaskNo));
        let claimed = db.read(|tx| tasks::list_events(tx, &team(), 0, 9)).await?;
        let claimed = claimed.iter().filter(|event| event.kind == tasks::TaskEventKind::Claimed);
        assert_eq!(claimed.map(|event| event.actor.as_str()).collect::<Vec<_>>(), ["ann", "cat"]);
        Ok(())
    });
}

#[test]
fn cancelled_claim_is_not_written() {
    let db = node();
    drive(async {
        some(&db, &[("a", &[])]).await?;
        let held = Held::new(&db);
        tokio::select! {
            biased;
            _ = claim(&db, "ann") => panic!("the connection is held"),
            () = async {} => {}
        }
        held.let_go();
        assert_eq!(claim(&db, "bob").await?.unwrap().lease.unwrap().owner, "bob");
        Ok(())
    });
}

/// A runtime that ends in the middle takes the one along who served the line.
#[test]
fn claim_queue_is_served_after_its_runtime_ended() {
    let db = node();
    drive(some(&db, &[("a", &[])]));
    let held = Held::new(&db);
    answer(async {
        let wait = tokio::time::timeout(std::time::Duration::from_millis(50), claim(&db, "ann"));
        assert!(wait.await.is_err(), "the connection is held");
    });
    held.let_go();
    drive(async {
        let bob = claim(&db, "bob").await?;
        assert!(bob.is_ok_and(|task| task.lease.unwrap().owner == "bob"));
        Ok(())
    });
}
