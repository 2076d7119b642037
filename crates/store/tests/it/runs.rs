use polyclaw_domain::id::{AgentId, RunId, TraceId};
use polyclaw_domain::run::{RunAudience, RunKind, RunOutcome, RunStatus, RunTask, SubagentRun};
use polyclaw_domain::time::Millis;
use polyclaw_store::{Db, Error, Result, runs};

use crate::rows::{NOW, address, key, turn};

on_every_engine!(
    run_is_found_by_child_and_owner_and_ends_once,
    child_session_has_one_running_run,
    cleanup_is_due_only_after_the_announce,
    held_announce_is_listed_until_released,
    running_delegates_are_counted_by_agent_pair,
    run_detects_that_it_outlived_its_owner
);

pub fn run(id: &str, child: &str, deadline: Option<Millis>) -> SubagentRun {
    SubagentRun {
        id: RunId::new(id),
        kind: RunKind::Subagent,
        child: key(child),
        agent: AgentId::main(),
        owner: key("owner"),
        caller: AgentId::main(),
        owner_turn: Some(turn("t")),
        trace: TraceId::new("x"),
        hop: 1,
        task: RunTask { label: "l".into(), prompt: "p".into(), tags: vec!["a".into()], ..RunTask::default() },
        reply_to: vec![address()],
        audience: None,
        awaited_by: None,
        deadline,
        is_deleted_after: true,
        archive_after_ms: None,
        held: None,
        status: RunStatus::Running,
        result: None,
        created_at: NOW,
        ended_at: None,
    }
}

async fn insert(db: &Db, run: SubagentRun) -> Result<()> {
    db.write(move |tx| runs::insert(tx, &run)).await
}

async fn run_is_found_by_child_and_owner_and_ends_once(db: Db) -> Result<()> {
    let stored = run("r1", "a", Some(NOW));
    insert(&db, stored.clone()).await?;
    insert(&db, run("r2", "b", None)).await?;
    assert_eq!(db.read(|tx| runs::find_running_by_child(tx, &key("a"))).await?, Some(stored));
    assert_eq!(db.read(|tx| runs::list_running_by_owner(tx, &key("owner"))).await?.len(), 2);
    let overdue = db.read(|tx| runs::list_overdue(tx, NOW.plus(1), 10)).await?;
    assert_eq!(overdue.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["r1"]);
    db.write(|tx| runs::set_awaiting_turn(tx, &RunId::new("r1"), Some(&turn("w")))).await?;
    let is_awaiting = |of: &'static str| db.read(move |tx| runs::is_awaiting(tx, &turn(of)));
    assert!(is_awaiting("w").await? && !is_awaiting("t").await?);
    let end = |db: Db| async move {
        let outcome = RunOutcome { text: "done".into(), tokens: None, ..RunOutcome::default() };
        db.write(move |tx| runs::end_run(tx, &RunId::new("r1"), RunStatus::Ok, &outcome, NOW.plus(5))).await
    };
    assert!(end(db.clone()).await?);
    assert!(!end(db.clone()).await?, "only once");
    assert!(!is_awaiting("w").await?, "what has ended is not waited for");
    let ended = db.read(|tx| runs::get(tx, &RunId::new("r1"))).await?.unwrap();
    assert_eq!((ended.status, ended.ended_at), (RunStatus::Ok, Some(NOW.plus(5))));
    assert_eq!(
        (ended.awaited_by, ended.result.map(|result| result.text)),
        (Some(turn("w")), Some("done".into()))
    );
    assert_eq!(db.read(|tx| runs::find_running_by_child(tx, &key("a"))).await?, None);
    let newest_first = db.read(|tx| runs::list_by_owner(tx, &key("owner"), 10)).await?;
    assert_eq!(newest_first.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["r2", "r1"]);
    Ok(())
}

async fn child_session_has_one_running_run(db: Db) -> Result<()> {
    insert(&db, run("r1", "a", None)).await?;
    assert!(matches!(insert(&db, run("r2", "a", None)).await, Err(Error::Conflict(_))));
    db.write(|tx| runs::end_run(tx, &RunId::new("r1"), RunStatus::Error, &RunOutcome::default(), NOW))
        .await?;
    insert(&db, run("r3", "a", None)).await
}

async fn end(db: &Db, id: &'static str, at: Millis) -> Result<()> {
    db.write(move |tx| runs::end_run(tx, &RunId::new(id), RunStatus::Ok, &RunOutcome::default(), at))
        .await
        .map(drop)
}

async fn due(db: &Db, at: Millis) -> Result<Vec<String>> {
    let due = db.read(move |tx| runs::list_due_for_cleanup(tx, at, 10)).await?;
    Ok(due.into_iter().map(|run| run.id.to_string()).collect())
}

async fn cleanup_is_due_only_after_the_announce(db: Db) -> Result<()> {
    insert(&db, run("gone", "a", None)).await?;
    let kept = SubagentRun { is_deleted_after: false, ..run("kept", "b", None) };
    insert(&db, SubagentRun { archive_after_ms: Some(1_000), ..kept.clone() }).await?;
    insert(&db, SubagentRun { id: RunId::new("ever"), child: key("c"), ..kept }).await?;
    for id in ["gone", "kept", "ever"] {
        end(&db, id, NOW).await?;
    }
    assert!(due(&db, NOW.plus(5_000)).await?.is_empty(), "nobody was told yet");
    for id in ["gone", "kept", "ever"] {
        db.write(move |tx| runs::mark_announced(tx, &RunId::new(id))).await?;
    }
    assert_eq!(due(&db, NOW).await?, ["gone"]);
    assert_eq!(due(&db, NOW.plus(1_000)).await?, ["gone", "kept"]);
    db.write(|tx| runs::mark_cleaned_up(tx, &RunId::new("gone"))).await?;
    db.write(|tx| runs::postpone_cleanup(tx, &RunId::new("kept"), NOW.plus(9_000))).await?;
    assert!(due(&db, NOW.plus(5_000)).await?.is_empty());
    assert_eq!(due(&db, NOW.plus(9_000)).await?, ["kept"]);
    let last = db.read(|tx| runs::find_last_by_child(tx, &key("a"))).await?;
    assert_eq!(last.map(|run| run.status), Some(RunStatus::Ok), "the run is known for as long as its owner");
    db.write(|tx| runs::delete_ended_by_owner(tx, &key("owner"))).await?;
    assert!(db.read(|tx| runs::list_by_owner(tx, &key("owner"), 9)).await?.is_empty());
    Ok(())
}

async fn held_announce_is_listed_until_released(db: Db) -> Result<()> {
    for (id, child) in [("r1", "a"), ("r2", "b"), ("r3", "c")] {
        insert(&db, run(id, child, None)).await?;
    }
    for id in ["r1", "r2"] {
        db.write(move |tx| runs::hold_announce(tx, &RunId::new(id), "too_many_hops")).await?;
    }
    let held = || {
        db.read(|tx| {
            Ok(runs::list_held_announces(tx, 10)?.into_iter().map(|run| run.id.to_string()).collect())
        })
    };
    let names: Vec<String> = held().await?;
    assert_eq!(names, ["r1", "r2"]);
    assert!(db.write(|tx| runs::release_announce(tx, &RunId::new("r1"))).await?);
    assert!(!db.write(|tx| runs::release_announce(tx, &RunId::new("r1"))).await?, "only once");
    assert_eq!(db.write(|tx| runs::release_all_announces(tx, &key("owner"))).await?, 1);
    let names: Vec<String> = held().await?;
    assert!(names.is_empty());
    Ok(())
}

async fn running_delegates_are_counted_by_agent_pair(db: Db) -> Result<()> {
    let other = AgentId::parse("other").unwrap();
    for (id, child) in [("r1", "a"), ("r2", "b"), ("r3", "c")] {
        let run = SubagentRun { kind: RunKind::Delegate, agent: other.clone(), ..run(id, child, None) };
        insert(&db, run).await?;
    }
    insert(&db, run("r4", "d", None)).await?;
    end(&db, "r3", NOW).await?;
    assert_eq!(db.read(runs::count_running_delegates).await?, [(AgentId::main(), other, 2)]);
    Ok(())
}

async fn run_detects_that_it_outlived_its_owner(db: Db) -> Result<()> {
    // The owner works on a run of its own, and begins another for it.
    let above = SubagentRun { owner: key("person"), ..run("r1", "owner", None) };
    let audience = RunAudience { session_key: key("person"), turn_id: turn("t"), addresses: vec![address()] };
    let below = SubagentRun { created_at: NOW.plus(5), audience: Some(audience), ..run("r2", "below", None) };
    insert(&db, above).await?;
    insert(&db, below.clone()).await?;
    assert_eq!(db.read(|tx| runs::get(tx, &RunId::new("r2"))).await?, Some(below.clone()));
    let outlived = |run: SubagentRun| db.read(move |tx| runs::has_outlived_owner(tx, &run));
    assert!(!outlived(below.clone()).await?);
    let end = |tx: &mut polyclaw_store::Tx<'_>| {
        runs::end_run(tx, &RunId::new("r1"), RunStatus::Cancelled, &RunOutcome::default(), NOW.plus(9))
    };
    db.write(end).await?;
    assert!(outlived(below.clone()).await?);
    // One that is begun later, because a person wrote, is for that person.
    assert!(!outlived(SubagentRun { created_at: NOW.plus(20), ..below }).await?);
    db.write(|tx| runs::mark_stopped(tx, &RunId::new("r2"))).await?;
    let stopped = |id: &'static str| db.read(move |tx| runs::is_stopped(tx, &RunId::new(id)));
    assert_eq!((stopped("r1").await?, stopped("r2").await?, stopped("none").await?), (false, true, false));
    Ok(())
}
