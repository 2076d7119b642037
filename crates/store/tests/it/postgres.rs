//! What only PostgreSQL has: nodes that share a database, deadlocks, and connections that break.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use polyclaw_domain::job::{JobLane, JobState};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::jobs::{self, NewTurnJob, TurnClaimer};
use polyclaw_store::{Db, DbTarget, Error, Result, messages, sessions};
use polyclaw_testkit::chaos::{ChaosProxy, ProxyMode};
use postgres::{Client, NoTls};

use crate::engines::{Shared, drive};
use crate::rows::{
    ENDED, NOW, agent, claimer, ended, job, key, message, queue, session, turn, with_sessions,
};

async fn count(db: &Db) -> Result<i64> {
    db.read(sessions::count).await
}

fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}

/// Cuts every connection to the database but the caller's.
fn terminate_other_connections(client: &mut Client) {
    const SQL: &str = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    client.execute(SQL, &[]).unwrap();
}

#[test]
fn nodes_starting_concurrently_migrate_once() {
    let shared = Shared::new();
    thread::scope(|scope| {
        let nodes: Vec<_> = (0..6).map(|_| scope.spawn(|| shared.open())).collect();
        for node in nodes {
            let db = node.join().unwrap().unwrap();
            assert!(db.is_shared());
        }
    });
}

#[test]
fn database_of_a_newer_build_is_refused() {
    let shared = Shared::new();
    drop(shared.open().unwrap());
    connect(&shared.url).execute("INSERT INTO schema_version (version) VALUES (99)", &[]).unwrap();
    let refused = shared.open().map(drop).unwrap_err();
    let text = refused.to_string();
    assert!(text.starts_with("the database has schema 99, but this build supports only up to "), "{text}");
}

#[test]
fn unreachable_postgres_is_a_transient_error() {
    let port = polyclaw_testkit::free_port();
    let url = format!("postgres://postgres@127.0.0.1:{port}/nothing");
    let away = Db::open(&DbTarget::Postgres { url, connections: 1 }).map(drop).unwrap_err();
    assert!(away.is_transient(), "{away}");
    let nonsense = DbTarget::Postgres { url: "nonsense".into(), connections: 1 };
    assert!(matches!(Db::open(&nonsense).map(drop), Err(Error::Other(_))));
}

#[test]
fn deadlocked_transaction_is_retried() {
    let db = Shared::new().open().unwrap();
    drive(async {
        with_sessions(&db, &["p", "q"]).await?;
        let (meet, runs) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
        let both = [["p", "q"], ["q", "p"]].map(|order| {
            let (db, meet, runs) = (db.clone(), Arc::clone(&meet), Arc::clone(&runs));
            let mut met = false;
            tokio::spawn(async move {
                db.write(move |tx| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    sessions::allocate_positions(tx, &key(order[0]), 1, NOW)?;
                    if !std::mem::replace(&mut met, true) {
                        meet.wait();
                    }
                    sessions::allocate_positions(tx, &key(order[1]), 1, NOW)
                })
                .await
            })
        });
        for one in both {
            one.await.unwrap()?;
        }
        assert_eq!(runs.load(Ordering::SeqCst), 3, "the loser ran twice");
        let tickets = db.write(|tx| sessions::allocate_positions(tx, &key("p"), 1, NOW)).await?;
        assert_eq!(tickets, Some(3), "and what it did first was undone");
        Ok(())
    });
}

#[test]
fn closed_connections_are_reopened() {
    let shared = Shared::new();
    let db = shared.open().unwrap();
    let mut other = connect(&shared.url);
    drive(async { with_sessions(&db, &["p"]).await });
    for round in 0..3 {
        terminate_other_connections(&mut other);
        drive(async {
            let writes: Vec<_> = (0..8)
                .map(|n| {
                    let db = db.clone();
                    let peer = format!("{round}-{n}");
                    tokio::spawn(async move {
                        db.write(move |tx| sessions::ensure(tx, &session(&peer)).map(drop)).await
                    })
                })
                .collect();
            for write in writes {
                write.await.unwrap()?;
            }
            Ok(())
        });
    }
    drive(async {
        assert_eq!(count(&db).await?, 25);
        Ok(())
    });
}

#[test]
fn connection_closed_inside_a_transaction_is_retried() {
    let shared = Shared::new();
    let db = shared.open().unwrap();
    let (url, mut cut) = (shared.url.clone(), false);
    drive(async {
        let runs = db.write(move |tx| {
            sessions::ensure(tx, &session("p"))?;
            if !std::mem::replace(&mut cut, true) {
                terminate_other_connections(&mut connect(&url));
            }
            sessions::ensure(tx, &session("q")).map(drop)
        });
        runs.await?;
        assert_eq!(count(&db).await?, 2);
        Ok(())
    });
}

#[test]
fn transaction_whose_commit_never_arrived_is_retried() {
    let shared = Shared::new();
    let db = shared.open().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let (url, counted) = (shared.url.clone(), Arc::clone(&runs));
    drive(async {
        db.write(move |tx| {
            sessions::ensure(tx, &session("p"))?;
            if counted.fetch_add(1, Ordering::SeqCst) == 0 {
                terminate_other_connections(&mut connect(&url));
            }
            Ok(())
        })
        .await?;
        assert_eq!((runs.load(Ordering::SeqCst), count(&db).await?), (2, 1));
        Ok(())
    });
}

#[test]
fn commit_with_lost_response_is_not_run_again() {
    let shared = Shared::new();
    let (chaos, url) = ChaosProxy::in_front_of_url(&shared.url);
    let db = Db::open(&DbTarget::Postgres { url, connections: 2 }).unwrap();
    drive(async {
        chaos.lose_answers(b"COMMIT", 1, 1);
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let value = db
            .write(move |tx| {
                counted.fetch_add(1, Ordering::SeqCst);
                tx.execute("INSERT INTO schema_version (version) VALUES (0)", &[])?;
                Ok(7)
            })
            .await?;
        assert_eq!((value, runs.load(Ordering::SeqCst), chaos.lost_count()), (7, 1, 1));
        let rows = db.read(|tx| {
            tx.query_one("SELECT COUNT(*) FROM schema_version WHERE version = 0", &[], |row| row.int(0))
        });
        assert_eq!(rows.await?, Some(1), "once, and not again");
        Ok(())
    });
}

#[test]
fn commit_in_doubt_is_resolved_when_the_database_returns() {
    let shared = Shared::new();
    let (chaos, url) = ChaosProxy::in_front_of_url(&shared.url);
    let db = Db::open(&DbTarget::Postgres { url, connections: 1 }).unwrap();
    drive(async {
        chaos.lose_answers(b"COMMIT", 1, 1);
        let writing = {
            let db = db.clone();
            tokio::spawn(async move { db.write(|tx| sessions::ensure(tx, &session("p")).map(drop)).await })
        };
        while chaos.lost_count() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        chaos.set_mode(ProxyMode::Gone);
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!writing.is_finished(), "nobody can know yet");
        let meanwhile = db.read(sessions::count).await;
        assert!(meanwhile.is_err_and(|error| error.is_transient()), "others are told that it is away");
        chaos.set_mode(ProxyMode::Fair);
        writing.await.unwrap()?;
        assert_eq!(count(&db).await?, 1);
        Ok(())
    });
}

#[test]
fn claim_skips_session_locked_by_another_node() {
    let shared = Shared::new();
    let (one, two) = (shared.open().unwrap(), shared.open().unwrap());
    drive(async {
        with_sessions(&one, &["p", "q"]).await?;
        queue(&one, vec![job("t1", "p"), job("t2", "q")]).await?;
        let (go, wait) = mpsc::channel::<()>();
        let (taken, is_taken) = tokio::sync::oneshot::channel();
        let mut taken = Some(taken);
        let holder = tokio::spawn({
            let one = one.clone();
            async move {
                one.write(move |tx| {
                    sessions::allocate_positions(tx, &key("p"), 1, NOW)?;
                    taken.take().map(|taken| taken.send(()));
                    let _ = wait.recv();
                    Ok(())
                })
                .await
            }
        });
        is_taken.await.unwrap();
        let claimed = two.write(|tx| jobs::claim_next(tx, JobLane::Main, &claimer("two/1"))).await?;
        assert_eq!(claimed.unwrap().turn.as_str(), "t2");
        drop(go);
        holder.await.unwrap()?;
        let claimed = two.write(|tx| jobs::claim_next(tx, JobLane::Main, &claimer("two/1"))).await?;
        assert_eq!(claimed.unwrap().turn.as_str(), "t1");
        Ok(())
    });
}

#[test]
fn take_over_waits_for_step_being_stored() {
    // Who is connected is looked up by locks, too: a transaction sees one picture of `pg_stat_activity` to its end.
    const WAITING: &str = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'
        AND pid IN (SELECT pid FROM pg_locks
          WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    let shared = Shared::new();
    let (one, two) = (shared.open().unwrap(), shared.open().unwrap());
    drive(async {
        with_sessions(&one, &["p"]).await?;
        queue(&one, vec![job("t", "p")]).await?;
        let expired = TurnClaimer { lease_ms: ENDED, ..claimer("one/1") };
        let claim = one.write(move |tx| jobs::claim_next(tx, JobLane::Main, &expired)).await?.unwrap();
        let (held, is_held) = tokio::sync::oneshot::channel();
        let (mut held, taken) = (Some(held), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&taken);
        let storing = tokio::spawn(async move {
            one.write(move |tx| {
                assert_eq!(jobs::verify_claim(tx, &claim)?, jobs::ClaimStatus::Valid);
                held.take().map(|held| held.send(()));
                while tx.query_one(WAITING, &[], |row| row.int(0))? != Some(1) {
                    assert!(!seen.load(Ordering::SeqCst), "taken over while a step was being stored");
                }
                messages::insert(tx, &message("step", "p", 1, "t"))
            })
            .await
        });
        is_held.await.unwrap();
        let steps = two.write(move |tx| {
            jobs::take_over_orphan(tx, &turn("t"), &claimer("two/1"), Some("two"))?.unwrap();
            taken.store(true, Ordering::SeqCst);
            messages::list_by_turn(tx, &turn("t"))
        });
        assert_eq!(steps.await?.len(), 1, "the new node goes on from the stored step");
        storing.await.unwrap()
    });
}

#[test]
fn node_signals_reach_other_nodes_on_commit_only() {
    let shared = Shared::new();
    let (one, two) = (shared.open().unwrap(), shared.open().unwrap());
    drive(async {
        let mut signals = two.subscribe_signals().unwrap();
        // Listening begins in its own time, so the word is said until it is heard.
        let say = async {
            let mut pause = tokio::time::interval(Duration::from_millis(20));
            loop {
                pause.tick().await;
                one.write(|tx| tx.notify_nodes("queued:main")).await.unwrap();
            }
        };
        let heard = tokio::select! {
            heard = signals.recv() => heard,
            () = say => None,
        };
        assert_eq!(heard.unwrap().0, "connected", "what was said before is to be looked for");
        one.write(|tx| tx.notify_nodes("queued:main")).await?;
        let heard = async { while signals.recv().await.unwrap().0 != "queued:main" {} };
        tokio::time::timeout(Duration::from_secs(60), heard).await.expect("the signal comes");
        let failed: Result<()> = one
            .write(|tx| {
                tx.notify_nodes("undone")?;
                Err(Error::Corrupt("on purpose".into()))
            })
            .await;
        assert!(failed.is_err());
        one.write(|tx| tx.notify_nodes("last")).await?;
        while let Some(signal) = signals.recv().await {
            assert_ne!(signal.0, "undone");
            if signal.0 == "last" {
                break;
            }
        }
        Ok(())
    });
}

const SESSIONS: usize = 250;
const ROUNDS: usize = 8;

/// What runs at this moment, as the workers of both nodes see it.
#[derive(Default)]
struct Floor {
    running: Mutex<HashSet<SessionKey>>,
    done: Mutex<HashSet<String>>,
    left: AtomicUsize,
}

#[test]
fn two_nodes_claim_each_job_once_and_one_per_session() {
    let shared = Shared::new();
    let nodes = [shared.open().unwrap(), shared.open().unwrap()];
    drive(async {
        nodes[0]
            .write(|tx| {
                for n in 0..SESSIONS {
                    sessions::ensure(tx, &session(&n.to_string()))?;
                    jobs::insert(tx, &round(n, 0))?;
                }
                Ok(())
            })
            .await?;
        let floor = Arc::new(Floor { left: AtomicUsize::new(SESSIONS * ROUNDS), ..Floor::default() });
        let workers: Vec<_> = (0..8)
            .map(|n| {
                tokio::spawn(work(nodes[n % 2].clone(), format!("node-{}/1", n % 2), Arc::clone(&floor)))
            })
            .collect();
        for worker in workers {
            worker.await.unwrap()?;
        }
        assert_eq!(floor.done.lock().unwrap().len(), SESSIONS * ROUNDS);
        Ok(())
    });
}

fn round(n: usize, round: usize) -> NewTurnJob {
    let name = ["one", "two", "three", "four", "five"][n % 5];
    NewTurnJob { agent: agent(name), ..job(&format!("{n}-{round}"), &n.to_string()) }
}

async fn work(db: Db, node: String, floor: Arc<Floor>) -> Result<()> {
    while floor.left.load(Ordering::SeqCst) > 0 {
        let claimer = claimer(&node);
        let Some(claim) = db.write(move |tx| jobs::claim_next(tx, JobLane::Main, &claimer)).await? else {
            continue;
        };
        assert!(floor.running.lock().unwrap().insert(claim.session.clone()), "two turns of one session");
        assert!(
            floor.done.lock().unwrap().insert(claim.turn.to_string()),
            "{} was claimed twice",
            claim.turn
        );
        let (n, at) = claim.turn.as_str().split_once('-').unwrap();
        let (n, at): (usize, usize) = (n.parse().unwrap(), at.parse().unwrap());
        if at + 1 < ROUNDS {
            queue(&db, vec![NewTurnJob { held: true, ..round(n, at + 1) }]).await?;
        }
        floor.running.lock().unwrap().remove(&claim.session);
        db.write(move |tx| {
            sessions::allocate_positions(tx, &claim.session, 1, NOW)?;
            jobs::end_turn(tx, &claim, &ended(JobState::Done), NOW)?;
            jobs::release_held(tx, &claim.session).map(drop)
        })
        .await?;
        floor.left.fetch_sub(1, Ordering::SeqCst);
    }
    Ok(())
}
