//! Many who claim at once: real threads, and processes of their own where the ledger is a file.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Instant;

use polyclaw_domain::task::{TaskNo, TaskRefusal};
use polyclaw_store::tasks::{self, TaskListFilter};
use polyclaw_store::{Db, Error, Result, Tx};
use serde_json::json;

use super::meetings::{GUARD, Place, hold};
use super::{asked, claim, create, get, some, task, team, worker};
use crate::engines::{Shared, answer, drive};

on_every_ledger!(
    one_of_two_concurrent_claims_wins,
    claims_of_many_tasks_in_any_order_do_not_deadlock,
    rolled_back_claim_leaves_nothing_behind,
    concurrent_claimers_claim_each_free_task_once,
);

async fn one_of_two_concurrent_claims_wins(db: Db) -> Result<()> {
    for no in 1..=20 {
        some(&db, &[("a", &[])]).await?;
        let (ann, bob) = (worker("ann"), worker("bob"));
        let (first, second) = tokio::join!(claim(&db, &ann, Some(no)), claim(&db, &bob, Some(no)));
        let (winner, loser) = match (first?, second?) {
            (Ok(task), Err(refusal)) | (Err(refusal), Ok(task)) => (task.lease.unwrap().owner, refusal),
            both => panic!("{both:?}"),
        };
        assert_eq!(loser, TaskRefusal::Taken(TaskNo(no), winner.clone()));
        assert_eq!(get(&db, no).await?.lease.unwrap().owner, winner);
    }
    Ok(())
}

/// Each takes several in one transaction, one forwards and one backwards.
async fn claims_of_many_tasks_in_any_order_do_not_deadlock(db: Db) -> Result<()> {
    for _ in 0..20 {
        create(&db, task("x", &[])).await?.unwrap();
    }
    let take = |name: &'static str, order: Vec<i64>| {
        let db = db.clone();
        async move {
            db.write(move |tx| {
                let mut got = 0;
                for no in &order {
                    let asked = asked(name, &format!("{name}-{no}"));
                    got += usize::from(tasks::claim_task(tx, TaskNo(*no), &asked)?.is_ok());
                }
                Ok(got)
            })
            .await
        }
    };
    let (forwards, backwards) =
        tokio::join!(take("ann", (1..=20).collect()), take("bob", (1..=20).rev().collect()));
    assert_eq!(forwards? + backwards?, 20);
    Ok(())
}

async fn rolled_back_claim_leaves_nothing_behind(db: Db) -> Result<()> {
    some(&db, &[("a", &[])]).await?;
    let cut = db
        .write(|tx| {
            tasks::claim_oldest(tx, &asked("ann", "k"))?.unwrap();
            Err::<(), _>(Error::Other("the process ends here".into()))
        })
        .await;
    assert!(cut.is_err());
    assert!(get(&db, 1).await?.lease.is_none());
    assert_eq!(
        db.read(|tx| tasks::list_events(tx, &team(), 0, 9)).await?.len(),
        1,
        "created, and nothing else"
    );
    Ok(())
}

async fn concurrent_claimers_claim_each_free_task_once(db: Db) -> Result<()> {
    for _ in 0..60 {
        create(&db, task("x", &[])).await?.unwrap();
    }
    let claimers = (0..16).map(|n| {
        let db = db.clone();
        tokio::spawn(async move {
            let who = worker(&format!("w{n}"));
            let mut got = Vec::new();
            while let Ok(task) = claim(&db, &who, None).await.unwrap() {
                got.push(task.no);
            }
            got
        })
    });
    let mut all = Vec::new();
    for claimer in claimers.collect::<Vec<_>>() {
        all.extend(claimer.await.unwrap());
    }
    all.sort_unstable();
    assert_eq!(all, (1..=60).map(TaskNo).collect::<Vec<_>>());
    Ok(())
}

/// What a claimer of another process is told in its environment.
const LEDGER: &str = "POLYCLAW_TEST_LEDGER";
const NAME: &str = "POLYCLAW_TEST_CLAIMER";
/// `CLAIM_TASKS=10000` makes it the full size; the suite takes a smaller one, as real.
const TASKS: &str = "CLAIM_TASKS";
const PROCESSES: usize = 4;
const CLAIMERS: usize = 16;

pub fn open(place: &str) -> Db {
    match place.starts_with("postgres") {
        true => Shared { url: place.to_owned() }.open().unwrap(),
        false => Db::open_ledger(Path::new(place)).unwrap(),
    }
}

/// Run by the test below, once for each process; on its own it has nothing to do.
#[test]
fn child_process_that_claims_tasks() {
    let (Ok(place), Ok(name)) = (std::env::var(LEDGER), std::env::var(NAME)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let db = open(&place);
    let mut waits = runtime.block_on(async move {
        let claimers = (0..CLAIMERS).map(|n| {
            let (db, who) = (db.clone(), worker(&format!("{name}-{n}")));
            tokio::spawn(async move {
                let mut waits = Vec::new();
                loop {
                    let asked = Instant::now();
                    // Not one error is seen, whoever else is at it.
                    let got = claim(&db, &who, None).await.unwrap();
                    waits.push(asked.elapsed().as_micros());
                    if got.is_err() {
                        return waits;
                    }
                }
            })
        });
        let mut waits = Vec::new();
        for claimer in claimers.collect::<Vec<_>>() {
            waits.extend(claimer.await.unwrap());
        }
        waits
    });
    waits.sort_unstable();
    let at = |share: usize| waits[(waits.len() * share / 1000).min(waits.len() - 1)];
    eprintln!("{} claims, p50 {} µs, p99 {} µs, most {} µs", waits.len(), at(500), at(990), at(1000));
}

fn claimers_in_processes(place: &str, db: &Db) {
    let count: usize = std::env::var(TASKS).ok().and_then(|n| n.parse().ok()).unwrap_or(1_000);
    drive(async {
        for _ in 0..count {
            create_unchecked(db).await?;
        }
        Ok(())
    });
    let start = |n: usize| -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["tasks::claims::child_process_that_claims_tasks", "--exact", "--nocapture"])
            .env(LEDGER, place)
            .env(NAME, format!("p{n}"))
            .spawn()
            .unwrap()
    };
    for mut child in (0..PROCESSES).map(start).collect::<Vec<_>>() {
        assert!(child.wait().unwrap().success());
    }
    drive(async {
        let filter =
            TaskListFilter { with_ended: true, limit: usize::from(u16::MAX), ..TaskListFilter::default() };
        let all = db.read(move |tx| tasks::list(tx, &team(), &filter)).await?;
        assert_eq!(all.len(), count);
        assert!(all.iter().all(|task| task.lease.as_ref().is_some_and(|lease| lease.fencing_token == 1)));
        let events = db.read(|tx| tasks::list_events(tx, &team(), 0, 1_000_000)).await?;
        let mut claims: HashMap<TaskNo, usize> = HashMap::new();
        for event in events.iter().filter(|event| event.kind == tasks::TaskEventKind::Claimed) {
            *claims.entry(event.task).or_default() += 1;
        }
        assert!(claims.len() == count && claims.values().all(|times| *times == 1), "each has one owner");
        Ok(())
    });
}

/// Without the look for circles, which grows with the ledger and is not what is measured here.
async fn create_unchecked(db: &Db) -> Result<()> {
    create(db, task("x", &[])).await?.unwrap();
    Ok(())
}

#[test]
fn sixty_four_claimers_in_four_processes_share_a_ledger_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let db = Db::open_ledger(&path).unwrap();
    claimers_in_processes(path.to_str().unwrap(), &db);
}

#[test]
fn sixty_four_claimers_in_four_processes_share_a_postgres_ledger() {
    let shared = Shared::new();
    let db = shared.open().unwrap();
    claimers_in_processes(&shared.url, &db);
}

/// However many tasks a team has had, a claim reads those that are free, and its own.
#[test]
fn claim_of_oldest_task_uses_indexes() {
    let db = Db::ledger_in_memory().unwrap();
    drive(async {
        some(&db, &[("a", &[])]).await?;
        let body = |tx: &mut Tx<'_>| tasks::claim_oldest(tx, &asked("ann", "k")).map(drop);
        let plans = db.write(move |tx| tx.explain_queries(body)).await?.join("\n");
        for index in ["tasks_by_state (team_id=? AND state=?)", "tasks_claimed_once"] {
            assert!(plans.contains(index), "{index} is not used:\n{plans}");
        }
        assert!(!plans.contains("PRIMARY KEY (team_id=?)\n"), "all tasks are read:\n{plans}");
        Ok(())
    });
}

/// Whether or not the planner knows how many there are.
#[test]
fn batched_claims_use_indexes() {
    const MANY: &str =
        "INSERT INTO tasks (team_id, task_no, subject, description, state, created_by, created_at)
        SELECT $1, n, 'x', '', 'pending', 'lead', 0 FROM generate_series(1, 20000) n";
    let db = Shared::new().open().unwrap();
    drive(async {
        db.write(|tx| tx.execute(MANY, &[team().as_str().into()]).map(drop)).await?;
        for first in [1, 17, 33] {
            let (taken, whole, read) = db.write(move |tx| handed_out(tx, first)).await?;
            assert_eq!(taken, (first..first + 16).collect::<Vec<_>>());
            assert_eq!(whole, 0, "all tasks are read");
            assert!(read <= 200, "{read} tasks are read for 16");
            db.write(|tx| tx.execute("ANALYZE tasks", &[]).map(drop)).await?;
        }
        Ok(())
    });
}

/// Sixteen tasks, how often the whole table was read for them, and how many rows by an index.
fn handed_out(tx: &mut Tx<'_>, first: i64) -> Result<(Vec<i64>, i64, i64)> {
    const CLAIM: &str = "SELECT task_no FROM claim_tasks($1, 1, $2) ORDER BY task_no";
    const READ: &str = "SELECT seq_scan, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'tasks'";
    let one =
        |key: i64| json!({ "key": key.to_string(), "name": "w", "session": "s", "at": 0, "lease_ms": 1 });
    let asked = json!((first..first + 16).map(one).collect::<Vec<_>>()).to_string();
    // Of what this connection did before, not all may have been counted elsewhere yet.
    let reads = |tx: &mut Tx<'_>| tx.query_one(READ, &[], |row| Ok((row.int(0)?, row.int(1)?)));
    let before = reads(tx)?.unwrap();
    let taken = tx.query(CLAIM, &[team().as_str().into(), (&asked).into()], |row| row.int(0))?;
    let after = reads(tx)?.unwrap();
    Ok((taken, after.0 - before.0, after.1 - before.1))
}

/// The answer to a call was lost, and the call still waits for its turn when it is made again.
#[test]
fn concurrent_calls_with_one_key_claim_one_task() {
    let shared = Shared::new();
    let first = shared.open().unwrap();
    drive(some(&first, &[("a", &[]), ("b", &[])]));
    let held = hold(first, |tx| tx.lock_advisory(&format!("claims of {}", team())));
    // Each on a node of its own, so that neither knows of the other.
    let call = |db: Db| {
        std::thread::spawn(move || answer(db.claim_oldest_task(asked("bob", "k"))).unwrap().unwrap().no)
    };
    let calls = [(); 2].map(|()| call(shared.open().unwrap()));
    let place = Place::Server(shared);
    let began = Instant::now();
    while place.waiting() < 2 {
        assert!(began.elapsed() < GUARD, "they do not wait for their turn");
    }
    held.let_go();
    assert_eq!(calls.map(|call| call.join().unwrap()), [TaskNo(1), TaskNo(1)]);
}
