use polyclaw_domain::id::{AgentId, RunId, TraceId};
use polyclaw_domain::run::{Audience, Outcome, Run, RunKind, RunStatus, Task};
use polyclaw_domain::time::Millis;
use polyclaw_store::{Db, Error, Result, runs};

use crate::rows::{NOW, address, key, turn};

on_every_engine!(
    a_run_is_found_from_both_ends_and_ends_once,
    a_child_works_on_one_thing_at_a_time,
    a_run_knows_whether_its_owner_is_still_at_what_it_was_begun_for
);

fn run(id: &str, child: &str, deadline: Option<Millis>) -> Run {
    Run {
        id: RunId::new(id),
        kind: RunKind::Subagent,
        child: key(child),
        agent: AgentId::main(),
        owner: key("owner"),
        owner_turn: turn("t"),
        trace: TraceId::new("x"),
        hop: 1,
        task: Task { label: "l".into(), prompt: "p".into(), tags: vec!["a".into()], schema: None },
        reply_to: vec![address()],
        audience: None,
        awaited_by: None,
        deadline,
        is_deleted_after: true,
        status: RunStatus::Running,
        result: None,
        created_at: NOW,
        ended_at: None,
    }
}

async fn insert(db: &Db, run: Run) -> Result<()> {
    db.write(move |tx| runs::insert(tx, &run)).await
}

async fn a_run_is_found_from_both_ends_and_ends_once(db: Db) -> Result<()> {
    let stored = run("r1", "a", Some(NOW));
    insert(&db, stored.clone()).await?;
    insert(&db, run("r2", "b", None)).await?;
    assert_eq!(db.read(|tx| runs::of_child(tx, &key("a"))).await?, Some(stored));
    assert_eq!(db.read(|tx| runs::at_work(tx, &key("owner"))).await?.len(), 2);
    let overdue = db.read(|tx| runs::overdue(tx, NOW.plus(1), 10)).await?;
    assert_eq!(overdue.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["r1"]);
    db.write(|tx| runs::await_by(tx, &RunId::new("r1"), Some(&turn("w")))).await?;
    let end = |db: Db| async move {
        let outcome = Outcome { text: "done".into(), tokens: None, ..Outcome::default() };
        db.write(move |tx| runs::end(tx, &RunId::new("r1"), RunStatus::Ok, &outcome, NOW.plus(5))).await
    };
    assert!(end(db.clone()).await?);
    assert!(!end(db.clone()).await?, "only once");
    let ended = db.read(|tx| runs::get(tx, &RunId::new("r1"))).await?.unwrap();
    assert_eq!((ended.status, ended.ended_at), (RunStatus::Ok, Some(NOW.plus(5))));
    assert_eq!(
        (ended.awaited_by, ended.result.map(|result| result.text)),
        (Some(turn("w")), Some("done".into()))
    );
    assert_eq!(db.read(|tx| runs::of_child(tx, &key("a"))).await?, None);
    let newest_first = db.read(|tx| runs::of_owner(tx, &key("owner"), 10)).await?;
    assert_eq!(newest_first.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["r2", "r1"]);
    Ok(())
}

async fn a_child_works_on_one_thing_at_a_time(db: Db) -> Result<()> {
    insert(&db, run("r1", "a", None)).await?;
    assert!(matches!(insert(&db, run("r2", "a", None)).await, Err(Error::Conflict(_))));
    db.write(|tx| runs::end(tx, &RunId::new("r1"), RunStatus::Error, &Outcome::default(), NOW)).await?;
    insert(&db, run("r3", "a", None)).await
}

async fn a_run_knows_whether_its_owner_is_still_at_what_it_was_begun_for(db: Db) -> Result<()> {
    // The owner works on a run of its own, and begins another for it.
    let above = Run { owner: key("person"), ..run("r1", "owner", None) };
    let audience = Audience { session_key: key("person"), turn_id: turn("t"), addresses: vec![address()] };
    let below = Run { created_at: NOW.plus(5), audience: Some(audience), ..run("r2", "below", None) };
    insert(&db, above).await?;
    insert(&db, below.clone()).await?;
    assert_eq!(db.read(|tx| runs::get(tx, &RunId::new("r2"))).await?, Some(below.clone()));
    let outlived = |run: Run| db.read(move |tx| runs::outlived_its_owner(tx, &run));
    assert!(!outlived(below.clone()).await?);
    let end = |tx: &mut polyclaw_store::Tx<'_>| {
        runs::end(tx, &RunId::new("r1"), RunStatus::Cancelled, &Outcome::default(), NOW.plus(9))
    };
    db.write(end).await?;
    assert!(outlived(below.clone()).await?);
    // One that is begun later, because a person wrote, is for that person.
    assert!(!outlived(Run { created_at: NOW.plus(20), ..below }).await?);
    db.write(|tx| runs::stop(tx, &RunId::new("r2"))).await?;
    let stopped = |id: &'static str| db.read(move |tx| runs::is_stopped(tx, &RunId::new(id)));
    assert_eq!((stopped("r1").await?, stopped("r2").await?, stopped("none").await?), (false, true, false));
    Ok(())
}
