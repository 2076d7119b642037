//! Two who meet at a ledger: each `Db` stands for a process, and one is known to be inside its transaction when the
//! other comes. On a file and on PostgreSQL.

use std::fs::{File, TryLockError};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use polyclaw_domain::task::{TaskNo, TaskRefusal, TeamTaskState};
use polyclaw_store::tasks::{
    self, TaskChange, TaskClaimResult, TaskEnding, TaskEventKind, TaskInsert, TaskListFilter,
};
use polyclaw_store::{Db, Result, Tx};
use postgres::{Client, NoTls};
use serde_json::json;
use tempfile::TempDir;

use super::{asked, claim, code, get, lead, list, some, task, team, worker};
use crate::engines::{Shared, answer, drive};
use crate::rows::NOW;

/// Only ends a test that waits for something that never comes.
pub const GUARD: Duration = Duration::from_secs(60);

/// A ledger that several processes open.
pub enum Place {
    File(TempDir),
    Server(Shared),
}

impl Place {
    pub fn open(&self) -> Db {
        match self {
            Self::File(folder) => Db::open_ledger(&folder.path().join("ledger.db")).unwrap(),
            Self::Server(shared) => shared.open().unwrap(),
        }
    }

    fn address(&self) -> String {
        match self {
            Self::File(folder) => folder.path().join("ledger.db").to_str().unwrap().to_owned(),
            Self::Server(shared) => shared.url.clone(),
        }
    }

    /// How many wait for another's transaction to end; of a file whether somebody does.
    pub fn waiting(&self) -> i64 {
        const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        match self {
            Self::File(folder) => {
                let turn = File::open(folder.path().join("ledger.db-turn")).unwrap();
                i64::from(matches!(turn.try_lock(), Err(TryLockError::WouldBlock)))
            }
            Self::Server(shared) => {
                let mut client = Client::connect(&shared.url, NoTls).unwrap();
                client.query_one(WAITING, &[]).unwrap().get(0)
            }
        }
    }

    /// Returns when the other waits. One that does not is found out by what it answers.
    fn until_waiting<T>(&self, other: &JoinHandle<T>) {
        let began = std::time::Instant::now();
        while self.waiting() == 0 && !other.is_finished() {
            assert!(began.elapsed() < GUARD, "it neither waits nor is done");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

macro_rules! at_every_place {
    ($($check:ident),* $(,)?) => {
        mod file {
            $(#[test] fn $check() { super::$check(&super::Place::File(tempfile::tempdir().unwrap())); })*
        }

        mod server {
            $(#[test] fn $check() { super::$check(&super::Place::Server(crate::engines::Shared::new())); })*
        }
    };
}

at_every_place!(
    readers_do_not_wait_for_an_open_write_transaction,
    readers_keep_the_snapshot_they_started_with,
    second_claim_waits_and_names_the_first_owner,
    concurrent_changes_cannot_create_a_dependency_cycle,
    concurrent_ends_unblock_the_common_dependent_once,
    transaction_refused_one_task_keeps_its_other_claim,
    process_death_in_a_transaction_leaves_nothing_behind,
);

/// A transaction that has done its work and stays open until it is let go.
pub struct Held<T> {
    go: Sender<()>,
    thread: JoinHandle<T>,
}

impl<T> Held<T> {
    pub fn let_go(self) -> T {
        drop(self.go);
        self.thread.join().unwrap()
    }
}

/// Returns when the work is done.
pub fn hold<T: Send + 'static>(
    db: Db,
    mut work: impl FnMut(&mut Tx<'_>) -> Result<T> + Send + 'static,
) -> Held<T> {
    let (go, wait) = mpsc::channel::<()>();
    let (tell, receiver) = mpsc::channel();
    let held = move |tx: &mut Tx<'_>| {
        let done = work(tx)?;
        let _ = tell.send(());
        let _ = wait.recv_timeout(GUARD);
        Ok(done)
    };
    let thread = thread::spawn(move || answer(db.write(held)).unwrap());
    receiver.recv_timeout(GUARD).expect("the transaction comes so far");
    Held { go, thread }
}

fn make(tx: &mut Tx<'_>, subject: &str) -> Result<()> {
    let new = TaskInsert { task: task(subject, &[]), key: None, max_open: 100 };
    tasks::create(tx, &new)?.map(drop).map_err(|refusal| panic!("{refusal}"))
}

/// Eight read, each through a door of its own, while a transaction is open that has made one task of two.
fn readers_do_not_wait_for_an_open_write_transaction(place: &Place) {
    let writing = place.open();
    drive(some(&writing, &[("a", &[])]));
    let held = hold(writing, |tx| make(tx, "b"));
    let (tell, receiver) = mpsc::channel();
    for db in (0..8).map(|_| place.open()) {
        let tell = tell.clone();
        thread::spawn(move || tell.send(answer(list(&db, TaskListFilter::default())).unwrap()));
    }
    for _ in 0..8 {
        assert_eq!(
            receiver.recv_timeout(GUARD).expect("it does not wait"),
            [1],
            "what is not committed is not seen"
        );
    }
    held.let_go();
    assert_eq!(answer(list(&place.open(), TaskListFilter::default())).unwrap(), [2, 1]);
}

type Look = (Receiver<Vec<TaskNo>>, Sender<()>, JoinHandle<Vec<TaskNo>>);

fn numbers(tx: &mut Tx<'_>) -> Result<Vec<TaskNo>> {
    let filter = TaskListFilter { limit: 100, ..TaskListFilter::default() };
    Ok(tasks::list(tx, &team(), &filter)?.into_iter().map(|task| task.no).collect())
}

/// One who looks, says what it saw, and looks again in the same transaction when it is told to.
fn look_twice(db: Db) -> Look {
    let ((tell, seen), (go, wait)) = (mpsc::channel(), mpsc::channel::<()>());
    let twice = move |tx: &mut Tx<'_>| {
        let _ = tell.send(numbers(tx)?);
        let _ = wait.recv_timeout(GUARD);
        numbers(tx)
    };
    (seen, go, thread::spawn(move || answer(db.read(twice)).unwrap()))
}

fn readers_keep_the_snapshot_they_started_with(place: &Place) {
    let writing = place.open();
    drive(some(&writing, &[("a", &[])]));
    let readers: Vec<Look> = (0..8).map(|_| look_twice(place.open())).collect();
    for (seen, ..) in &readers {
        assert_eq!(seen.recv_timeout(GUARD).unwrap(), [TaskNo(1)]);
    }
    drive(writing.write(|tx| make(tx, "b").and_then(|()| make(tx, "c"))));
    for (_, go, reader) in readers {
        drop(go);
        assert_eq!(reader.join().unwrap(), [TaskNo(1)], "others wrote, and its picture is the same");
    }
    assert_eq!(answer(list(&place.open(), TaskListFilter::default())).unwrap(), [3, 2, 1]);
}

fn second_claim_waits_and_names_the_first_owner(place: &Place) {
    let (first, second) = (place.open(), place.open());
    drive(some(&first, &[("a", &[])]));
    let held = hold(first.clone(), |tx| tasks::claim_task(tx, TaskNo(1), &asked("ann", "k")));
    let bob = thread::spawn(move || answer(claim(&second, &worker("bob"), Some(1))).unwrap());
    place.until_waiting(&bob);
    assert!(held.let_go().is_ok());
    assert_eq!(bob.join().unwrap().unwrap_err(), TaskRefusal::Taken(TaskNo(1), "ann".into()));
    let lease = answer(get(&first, 1)).unwrap().lease.unwrap();
    assert_eq!((lease.owner.as_str(), lease.fencing_token), ("ann", 1), "and it was taken once");
}

fn concurrent_changes_cannot_create_a_dependency_cycle(place: &Place) {
    let (first, second) = (place.open(), place.open());
    drive(some(&first, &[("a", &[]), ("b", &[])]));
    let wait = |no: i64, need: i64| {
        let change = TaskChange { needs: vec![TaskNo(need)], ..TaskChange::default() };
        move |tx: &mut Tx<'_>| tasks::update_task(tx, &team(), TaskNo(no), &change, (&lead(), NOW))
    };
    let held = hold(first.clone(), wait(1, 2));
    let other = wait(2, 1);
    let other = thread::spawn(move || answer(second.write(other)).unwrap());
    place.until_waiting(&other);
    assert_eq!(code(held.let_go()), "ok");
    assert_eq!(code(other.join().unwrap()), "dependency_cycle");
    assert!(answer(get(&first, 2)).unwrap().needs.is_empty(), "so one of them can be begun");
}

/// The second to end sees that it is the last: what waits for both is free by one of them, and told once.
fn concurrent_ends_unblock_the_common_dependent_once(place: &Place) {
    let (first, second) = (place.open(), place.open());
    drive(some(&first, &[("a", &[]), ("b", &[]), ("c", &[1, 2])]));
    let end = |no: i64| {
        let ending = TaskEnding {
            state: TeamTaskState::Completed,
            summary: None,
            artifacts: Vec::new(),
            fencing_token: 0,
            call: String::new(),
        };
        move |tx: &mut Tx<'_>| tasks::end_task(tx, &team(), TaskNo(no), &lead(), (&ending, NOW))
    };
    let held = hold(first.clone(), end(1));
    let other = end(2);
    let other = thread::spawn(move || answer(second.write(other)).unwrap());
    place.until_waiting(&other);
    assert_eq!(held.let_go().unwrap(), []);
    assert_eq!(other.join().unwrap().unwrap(), [TaskNo(3)]);
    let events = answer(first.read(|tx| tasks::list_events(tx, &team(), 0, 99))).unwrap();
    let notice = events.iter().filter(|event| event.data["unblocked"] == json!([3]));
    assert_eq!(notice.count(), 1);
}

/// Of two tasks that one transaction takes, one is being taken by another: it waits, is told so, and has the first.
fn transaction_refused_one_task_keeps_its_other_claim(place: &Place) {
    let (first, second) = (place.open(), place.open());
    drive(some(&first, &[("a", &[]), ("b", &[])]));
    let held = hold(first.clone(), |tx| tasks::claim_task(tx, TaskNo(1), &asked("ann", "k")));
    let both = |tx: &mut Tx<'_>| {
        [2, 1]
            .into_iter()
            .map(|no| tasks::claim_task(tx, TaskNo(no), &asked("bob", &no.to_string())))
            .collect()
    };
    let bob = thread::spawn(move || answer(second.write(both)).unwrap());
    place.until_waiting(&bob);
    assert!(held.let_go().is_ok());
    let got: Vec<TaskClaimResult> = bob.join().unwrap();
    assert_eq!(got[0].as_ref().unwrap().no, TaskNo(2));
    assert_eq!(got[1].as_ref().unwrap_err(), &TaskRefusal::Taken(TaskNo(1), "ann".into()));
    let owner = |no: i64| answer(get(&first, no)).unwrap().lease.unwrap().owner;
    assert_eq!((owner(1), owner(2)), ("ann".to_owned(), "bob".to_owned()));
}

/// Where the ledger is of one who is to die in it.
const LEDGER: &str = "POLYCLAW_TEST_LEDGER";

/// Run by the test below in a process of its own; on its own it has nothing to do.
#[test]
fn child_process_that_dies_in_a_transaction() {
    let Ok(address) = std::env::var(LEDGER) else { return };
    let db = super::claims::open(&address);
    let died = db.write(|tx| {
        tasks::claim_oldest(tx, &asked("ann", "k"))?.unwrap();
        make(tx, "b")?;
        std::process::abort();
        #[allow(unreachable_code, reason = "a transaction has an outcome")]
        Ok(())
    });
    drive(died);
}

fn process_death_in_a_transaction_leaves_nothing_behind(place: &Place) {
    let db = place.open();
    drive(some(&db, &[("a", &[])]));
    let died = Command::new(std::env::current_exe().unwrap())
        .args(["tasks::meetings::child_process_that_dies_in_a_transaction", "--exact", "--nocapture"])
        .env(LEDGER, place.address())
        .status()
        .unwrap();
    assert!(!died.success() && died.code().is_none(), "it died of a signal: {died}");
    drive(async {
        assert_eq!(list(&db, TaskListFilter::default()).await?, [1]);
        let bob = claim(&db, &worker("bob"), Some(1)).await?.expect("the lock died with it");
        assert_eq!(bob.lease.unwrap().fencing_token, 1);
        let events = db.read(|tx| tasks::list_events(tx, &team(), 0, 9)).await?;
        let kinds: Vec<_> = events.iter().map(|event| (event.kind, event.actor.as_str())).collect();
        assert_eq!(kinds, [(TaskEventKind::Created, "lead"), (TaskEventKind::Claimed, "bob")]);
        Ok(())
    });
}
