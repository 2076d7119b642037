//! What a ledger on a file promises to several processes. Here each `Db` stands for one: nothing is shared but the
//! file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polyclaw_store::Db;
use polyclaw_store::tasks::{self, Filter};

use super::{create, task, team};
use crate::engines::drive;

fn open(folder: &Path) -> Db {
    Db::open_ledger(&folder.join("ledger.db")).unwrap()
}

/// Two tasks are made in each transaction: no reader ever sees an odd number, and none waits.
#[test]
fn readers_see_one_picture_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let (writing, reading) = (open(folder.path()), open(folder.path()));
    let done = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&done);
    let readers = std::thread::spawn(move || {
        let mut looks = 0;
        drive(async {
            while !stop.load(Ordering::Relaxed) {
                let filter = Filter { limit: 10_000, ..Filter::default() };
                let seen = reading.read(move |tx| tasks::list(tx, &team(), &filter)).await?.len();
                assert_eq!(seen % 2, 0, "half a transaction was seen");
                looks += 1;
            }
            Ok(())
        });
        looks
    });
    drive(async {
        for _ in 0..200 {
            writing
                .write(|tx| {
                    for _ in 0..2 {
                        let new = tasks::NewTask { task: task("x", &[]), key: None, max_open: 10_000 };
                        tasks::create(tx, &new)?.unwrap();
                    }
                    Ok(())
                })
                .await?;
        }
        Ok(())
    });
    done.store(true, Ordering::Relaxed);
    assert!(readers.join().unwrap() > 0);
}

/// One holds the file for a while in a transaction of its own; the other's write waits and then succeeds.
#[test]
fn a_second_writer_waits_and_sees_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (open(folder.path()), open(folder.path()));
    let (begun, taken) = std::sync::mpsc::channel();
    let holder = std::thread::spawn(move || {
        drive(async {
            first
                .write(move |tx| {
                    let new = tasks::NewTask { task: task("slow", &[]), key: None, max_open: 9 };
                    tasks::create(tx, &new)?.unwrap();
                    let _ = begun.send(());
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
fn a_long_reader_keeps_no_log_from_being_moved() {
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
fn a_long_log_is_moved_into_the_file() {
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
