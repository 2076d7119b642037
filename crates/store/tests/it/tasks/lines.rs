//! What a line promises on PostgreSQL: those who wait are written in one transaction, and none of them for another.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use polyclaw_domain::task::{Task, TaskNo};
use polyclaw_store::{Db, Error, Result, Tx, tasks};

use super::{LEASE, some, team, worker};
use crate::engines::{Shared, answer, drive};
use crate::rows::NOW;

const NUMBER: &str = "SELECT txid_current()";

/// The number of its transaction.
fn number(tx: &mut Tx<'_>) -> Result<i64> {
    Ok(tx.query_one(NUMBER, &[], |row| row.int(0))?.unwrap())
}

/// A transaction that holds the line until it is let go.
struct Held {
    gate: mpsc::Sender<()>,
    first: JoinHandle<i64>,
}

impl Held {
    fn new(db: &Db) -> Self {
        let (gate, is_open) = mpsc::channel();
        let (begin, begun) = mpsc::channel();
        let hold = move |tx: &mut Tx<'_>| {
            let _ = begin.send(());
            let _ = is_open.recv();
            number(tx)
        };
        let db = db.clone();
        let first = thread::spawn(move || answer(db.write_in_line("line", hold)).unwrap());
        begun.recv().unwrap();
        Self { gate, first }
    }

    /// The number of its transaction.
    fn let_go(self) -> i64 {
        drop(self.gate);
        self.first.join().unwrap()
    }
}

async fn claim(db: &Db, name: &'static str, is_let_down: bool) -> Result<(i64, Task)> {
    let claim = move |tx: &mut Tx<'_>| {
        let task = tasks::claim(tx, &team(), (None, name), &worker(name), (NOW, LEASE))?.unwrap();
        if is_let_down {
            return Err(Error::Other("let down".into()));
        }
        Ok((number(tx)?, task))
    };
    db.write_in_line("line", claim).await
}

#[test]
fn those_who_wait_are_written_together() {
    let db = Shared::new().open().unwrap();
    drive(async {
        some(&db, &[("a", &[]), ("b", &[]), ("c", &[])]).await?;
        let held = Held::new(&db);
        let (ann, bob, cat, first) = tokio::join!(
            claim(&db, "ann", false),
            claim(&db, "bob", false),
            claim(&db, "cat", false),
            async { held.let_go() }
        );
        let (ann, bob, cat) = (ann?, bob?, cat?);
        assert_ne!(first, ann.0, "who came later is written later");
        assert_eq!((ann.0, ann.0), (bob.0, cat.0), "and all of them at once");
        assert_eq!([ann.1.no, bob.1.no, cat.1.no], [1, 2, 3].map(TaskNo), "in the order they came");
        Ok(())
    });
}

#[test]
fn one_that_fails_takes_nobody_along() {
    let db = Shared::new().open().unwrap();
    drive(async {
        some(&db, &[("a", &[]), ("b", &[])]).await?;
        let held = Held::new(&db);
        let (ann, bob, cat, _) = tokio::join!(
            claim(&db, "ann", false),
            claim(&db, "bob", true),
            claim(&db, "cat", false),
            async { held.let_go() }
        );
        assert_eq!(bob.unwrap_err().to_string(), "database error: let down");
        assert_eq!([ann?.1.no, cat?.1.no], [1, 2].map(TaskNo));
        let claimed = db.read(|tx| tasks::events(tx, &team(), 0, 9)).await?;
        let claimed = claimed.iter().filter(|event| event.kind == tasks::Kind::Claimed);
        assert_eq!(claimed.map(|event| event.actor.as_str()).collect::<Vec<_>>(), ["ann", "cat"]);
        Ok(())
    });
}

#[test]
fn what_nobody_waits_for_any_more_is_not_written() {
    let db = Shared::new().open().unwrap();
    drive(async {
        some(&db, &[("a", &[])]).await?;
        let held = Held::new(&db);
        tokio::select! {
            biased;
            _ = claim(&db, "ann", false) => panic!("it stands behind the first"),
            () = async {} => {}
        }
        held.let_go();
        assert_eq!(claim(&db, "bob", false).await?.1.lease.unwrap().owner, "bob");
        Ok(())
    });
}
