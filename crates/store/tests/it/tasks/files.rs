//! What a ledger on a file promises to several processes. Here each `Db` stands for one: nothing is shared but the
//! file.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polyclaw_store::tasks;
use polyclaw_store::{Db, Result, Tx};

use super::meetings::hold;
use super::{create, task, team};
use crate::engines::drive;

fn open(folder: &Path) -> Db {
    Db::open_ledger(&folder.join("ledger.db")).unwrap()
}

/// Readers that have seen so many pictures have looked while others wrote.
const PICTURES: usize = 20;

/// Two tasks are made in each transaction: no reader ever sees an odd number. It goes on until each has seen many.
#[test]
fn readers_see_a_consistent_snapshot_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let writing = open(folder.path());
    let left = Arc::new(AtomicUsize::new(4));
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (db, left) = (open(folder.path()), Arc::clone(&left));
            std::thread::spawn(move || {
                drive(read_many_snapshots(&db));
                left.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    drive(async {
        for _ in 0..100_000 {
            if left.load(Ordering::SeqCst) == 0 {
                return Ok(());
            }
            writing.write(create_two_tasks).await?;
        }
        panic!("there is one who sees nothing new");
    });
    for reader in readers {
        reader.join().unwrap();
    }
}

fn create_two_tasks(tx: &mut Tx<'_>) -> Result<()> {
    for _ in 0..2 {
        let new = tasks::TaskInsert { task: task("x", &[]), key: None, max_open: usize::MAX };
        tasks::create(tx, &new)?.unwrap();
    }
    Ok(())
}

async fn read_many_snapshots(db: &Db) -> Result<()> {
    let mut pictures = HashSet::new();
    while pictures.len() < PICTURES {
        let seen = db.read(|tx| tasks::count_open(tx, &team())).await?;
        assert_eq!(seen % 2, 0, "half a transaction was seen");
        pictures.insert(seen);
    }
    Ok(())
}

/// As SQLite defines its locks: a transaction that writes has the one place to write from its beginning, before it has
/// written anything. Others may look, and none may begin to write.
#[test]
fn write_transaction_blocks_writers_but_not_readers() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let other = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    other.busy_timeout(Duration::ZERO).unwrap();
    let begins = |how: &str| match other.execute_batch(&format!("BEGIN {how}")) {
        Ok(()) => other.execute_batch("SELECT COUNT(*) FROM tasks; ROLLBACK").is_ok(),
        Err(error) => {
            assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy), "{error}");
            false
        }
    };
    let all = || ["DEFERRED", "IMMEDIATE", "EXCLUSIVE"].map(begins);
    assert_eq!(all(), [true, true, true]);
    let held = hold(db.clone(), |tx| tasks::count_open(tx, &team()));
    assert_eq!(all(), [true, false, false], "it has only looked so far");
    held.let_go();
    let held = hold(db.clone(), create_two_tasks);
    assert_eq!(all(), [true, false, false]);
    held.let_go();
    assert_eq!(all(), [true, true, true]);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let seen = crate::engines::answer(db.read(|tx| tasks::count_open(tx, &team()))).unwrap();
    assert_eq!(seen, 2, "and the other way round nobody who reads waits");
}

/// One holds the file for a while in a transaction of its own; the other's write waits and then succeeds.
#[test]
fn second_writer_waits_without_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (open(folder.path()), open(folder.path()));
    let (started, taken) = std::sync::mpsc::channel();
    let holder = std::thread::spawn(move || {
        drive(async {
            first
                .write(move |tx| {
                    let new = tasks::TaskInsert { task: task("slow", &[]), key: None, max_open: 9 };
                    tasks::create(tx, &new)?.unwrap();
                    let _ = started.send(());
                    std::thread::sleep(std::time::Duration::from_millis(300));
                    Ok(())
                })
                .await
        });
    });
    taken.recv().unwrap();
    let asked = std::time::Instant::now();
    drive(async {
        assert_eq!(create(&second, task("quick", &[])).await?, Ok(polyclaw_domain::task::TaskNo(2)));
        Ok(())
    });
    assert!(asked.elapsed().as_millis() >= 200, "it waited for the other");
    holder.join().unwrap();
}

/// Somebody looks at an old picture for long: nobody who writes waits for that, and when it is over the log is moved.
#[test]
fn long_reader_only_delays_the_wal_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    let reader = rusqlite::Connection::open(folder.path().join("ledger.db")).unwrap();
    let seen = |reader: &rusqlite::Connection| -> i64 {
        reader.query_row("SELECT COUNT(*) FROM tasks", [], |row| row.get(0)).unwrap()
    };
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(seen(&reader), 0);
    let size = || std::fs::metadata(folder.path().join("ledger.db")).unwrap().len();
    drive(async {
        for _ in 0..40 {
            let mut big = task("x", &[]);
            big.description = "x".repeat(200_000);
            create(&db, big).await?.unwrap();
        }
        Ok(())
    });
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert_eq!(seen(&reader), 0, "its picture is the one it began with");
    assert!(size() < 4_000_000, "what it may still want to see is not moved under it");
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(seen(&reader), 40);
    for _ in 0..100 {
        drive(async { create(&db, task("y", &[])).await.map(drop) });
        if size() > 4_000_000 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("nothing was moved");
}

#[test]
fn long_wal_is_checkpointed_into_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(folder.path());
    drive(async {
        for _ in 0..40 {
            let mut big = task("x", &[]);
            big.description = "x".repeat(200_000);
            create(&db, big).await?.unwrap();
        }
        Ok(())
    });
    let file = folder.path().join("ledger.db");
    let grown = || std::fs::metadata(&file).is_ok_and(|file| file.len() > 4_000_000);
    for _ in 0..100 {
        if grown() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("nothing was moved");
}
