use std::collections::HashSet;

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::id::{NodeId, TurnId};
use polyclaw_domain::job::{JobLane, JobPriority, JobState};
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::jobs::{self, NewTurnJob, OrphanSearch, TurnClaimer};
use polyclaw_store::{Db, Error, Result, sessions};

use crate::rows::{
    ENDED, LEASE_MS, NOW, agent, claim, claimer, end, job, key, next, queue, session, turn, with_sessions,
};

on_every_engine!(
    claim_takes_only_jobs_of_its_lane,
    agent_with_fewest_running_turns_is_claimed_first,
    claims_are_ordered_by_priority_then_queue_position,
    long_waiting_job_gets_the_highest_priority,
    agent_with_higher_priority_is_claimed_first,
    last_served_agent_waits_among_equals,
    held_turn_is_claimed_only_after_release,
    only_the_claim_holder_renews_or_ends_a_turn,
    turn_with_valid_lease_is_not_an_orphan,
    node_takes_over_turns_of_its_earlier_epoch_only,
    released_claim_moves_to_other_node_without_a_used_attempt,
    session_host_is_the_node_of_its_last_turn,
    every_turn_job_is_claimed_exactly_once,
);

fn of(name: &str, id: &str, peer: &str) -> NewTurnJob {
    NewTurnJob { agent: agent(name), ..job(id, peer) }
}

async fn claim_takes_only_jobs_of_its_lane(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q"]).await?;
    queue(&db, vec![NewTurnJob { lane: JobLane::Cron, hop: 3, ..job("cron", "p") }]).await?;
    assert_eq!(next(&db).await?, None);
    queue(&db, vec![job("main", "q")]).await?;
    assert_eq!(next(&db).await?.as_deref(), Some("main"));
    let claimed = db.write(|tx| jobs::claim_next(tx, JobLane::Cron, &claimer("two/1"))).await?.unwrap();
    assert_eq!((claimed.turn, claimed.session, claimed.node), (turn("cron"), key("p"), NodeId::new("two/1")));
    assert_eq!((claimed.attempt, claimed.hop, claimed.was_held), (1, 3, false));
    Ok(())
}

async fn agent_with_fewest_running_turns_is_claimed_first(db: Db) -> Result<()> {
    with_sessions(&db, &["a", "b", "c", "d"]).await?;
    queue(&db, vec![of("busy", "t1", "a"), of("busy", "t2", "b"), of("busy", "t3", "c")]).await?;
    assert_eq!(next(&db).await?.as_deref(), Some("t1"));
    queue(&db, vec![NewTurnJob { priority: JobPriority::Background, ..of("calm", "t4", "d") }]).await?;
    assert_eq!(next(&db).await?.as_deref(), Some("t4"), "one busy agent does not starve another");
    assert_eq!(next(&db).await?.as_deref(), Some("t2"));
    assert_eq!(next(&db).await?.as_deref(), Some("t3"));
    assert_eq!(next(&db).await?, None);
    Ok(())
}

async fn claims_are_ordered_by_priority_then_queue_position(db: Db) -> Result<()> {
    with_sessions(&db, &["a", "b", "c", "d", "e"]).await?;
    let with = |priority, id, peer| NewTurnJob { priority, ..job(id, peer) };
    queue(
        &db,
        vec![
            with(JobPriority::Background, "background", "a"),
            with(JobPriority::Webhook, "webhook", "b"),
            with(JobPriority::Group, "group", "c"),
            with(JobPriority::Direct, "first", "d"),
            with(JobPriority::Direct, "second", "e"),
        ],
    )
    .await?;
    for expected in ["first", "second", "group", "webhook", "background"] {
        assert_eq!(next(&db).await?.as_deref(), Some(expected));
    }
    Ok(())
}

async fn agent_with_higher_priority_is_claimed_first(db: Db) -> Result<()> {
    with_sessions(&db, &["a", "b", "b2", "c", "d"]).await?;
    for (name, priority) in [("calm", -5), ("keen", 10)] {
        let spec = AgentSpec { priority, ..AgentSpec::with_id(agent(name)) };
        db.write(move |tx| agents::upsert(tx, &spec, AgentSource::Config, NOW)).await?;
    }
    let old = NewTurnJob { queued_at: NOW.minus(60_000), ..of("calm", "old", "d") };
    queue(&db, vec![old, of("plain", "plain", "c"), of("keen", "keen", "b")]).await?;
    assert_eq!(next(&db).await?.as_deref(), Some("old"), "what waited long is as urgent as any");
    assert_eq!(next(&db).await?.as_deref(), Some("keen"));
    queue(&db, vec![of("calm", "calm", "a"), of("keen", "keen2", "b2")]).await?;
    assert_eq!(next(&db).await?.as_deref(), Some("keen2"), "though a turn of keen runs already");
    assert_eq!(next(&db).await?.as_deref(), Some("plain"), "one without a number is between them");
    assert_eq!(next(&db).await?.as_deref(), Some("calm"));
    Ok(())
}

async fn long_waiting_job_gets_the_highest_priority(db: Db) -> Result<()> {
    with_sessions(&db, &["a", "b", "c", "d"]).await?;
    let late = |name, id, peer, ms| NewTurnJob {
        priority: JobPriority::Background,
        queued_at: NOW.minus(ms),
        ..of(name, id, peer)
    };
    let jobs = vec![
        late("one", "aged", "a", 30_001),
        late("two", "patient", "b", 29_000),
        of("three", "direct", "c"),
    ];
    queue(&db, jobs).await?;
    for expected in ["aged", "direct", "patient"] {
        assert_eq!(next(&db).await?.as_deref(), Some(expected));
    }
    Ok(())
}

async fn last_served_agent_waits_among_equals(db: Db) -> Result<()> {
    with_sessions(&db, &["a", "b"]).await?;
    queue(&db, vec![of("one", "t1", "a"), of("two", "t2", "b")]).await?;
    let served = TurnClaimer { last: Some(agent("one")), ..claimer("one/1") };
    assert_eq!(claim(&db, served).await?.unwrap().turn, turn("t2"));
    assert_eq!(next(&db).await?.as_deref(), Some("t1"));
    Ok(())
}

async fn held_turn_is_claimed_only_after_release(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    queue(&db, vec![job("t1", "p")]).await?;
    let first = claim(&db, claimer("one/1")).await?.unwrap();
    queue(&db, vec![NewTurnJob { held: true, ..job("t2", "p") }]).await?;
    assert_eq!(next(&db).await?, None);
    end(&db, &first, JobState::Done).await?;
    assert_eq!(next(&db).await?, None, "the end alone does not release it");
    let release = || db.write(|tx| jobs::release_held(tx, &key("p")));
    assert!(release().await?.is_some());
    assert!(release().await?.is_none());
    let second = claim(&db, claimer("one/1")).await?.unwrap();
    assert_eq!((second.turn, second.was_held), (turn("t2"), true));
    Ok(())
}

fn search(node: &str, node_name: Option<&str>) -> OrphanSearch {
    let node_name = node_name.map(ToOwned::to_owned);
    OrphanSearch { node: NodeId::new(node), node_name, now: NOW, suspect_after: 3 }
}

async fn orphans(
    db: &Db,
    node: &'static str,
    node_name: impl Into<Option<&'static str>>,
) -> Result<Vec<TurnId>> {
    let node_name = node_name.into();
    let search = search(node, node_name);
    let found = db.read(move |tx| jobs::list_orphans(tx, &search)).await?;
    Ok(found.into_iter().map(|(turn, _)| turn).collect())
}

async fn take_over(
    db: &Db,
    node: &'static str,
    node_name: impl Into<Option<&'static str>>,
) -> Result<Option<jobs::TurnClaim>> {
    let node_name = node_name.into();
    db.write(move |tx| jobs::take_over_orphan(tx, &turn("t"), &claimer(node), node_name)).await
}

async fn only_the_claim_holder_renews_or_ends_a_turn(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    queue(&db, vec![job("t", "p")]).await?;
    let first = claim(&db, TurnClaimer { lease_ms: ENDED, ..claimer("one/1") }).await?.unwrap();
    let renew = |claim: &jobs::TurnClaim, lease_ms| {
        let claim = claim.clone();
        db.write(move |tx| Ok(jobs::renew_claim(tx, &claim, NOW, lease_ms)? == jobs::ClaimRenewal::Renewed))
    };
    let holds = |claim: &jobs::TurnClaim| {
        let claim = claim.clone();
        db.write(move |tx| jobs::verify_claim(tx, &claim))
    };
    assert!(renew(&first, LEASE_MS).await?);
    assert_eq!(holds(&first).await?, jobs::ClaimStatus::Valid);
    assert_eq!(take_over(&db, "two/1", "two").await?, None, "a renewed lease is respected");
    assert!(renew(&first, ENDED).await?);
    let second = take_over(&db, "two/1", "two").await?.unwrap();
    assert_eq!((second.attempt, second.node.as_str()), (2, "two/1"));
    assert_eq!(take_over(&db, "three/1", "three").await?, None, "the second was faster");
    assert!(!renew(&first, LEASE_MS).await?);
    assert_eq!(holds(&first).await?, jobs::ClaimStatus::Lost);
    assert_eq!(holds(&second).await?, jobs::ClaimStatus::Valid);
    db.write(|tx| jobs::request_stop(tx, &key("p"))).await?;
    assert_eq!(holds(&second).await?, jobs::ClaimStatus::Stopping);
    let late = end(&db, &first, JobState::Done).await;
    assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
    let stale = jobs::TurnClaim { attempt: 1, ..second.clone() };
    assert!(!renew(&stale, LEASE_MS).await?);
    assert!(end(&db, &stale, JobState::Done).await.is_err());
    end(&db, &second, JobState::Done).await?;
    assert!(end(&db, &second, JobState::Failed).await.is_err(), "a turn ends once");
    assert!(!renew(&second, LEASE_MS).await?);
    Ok(())
}

async fn turn_with_valid_lease_is_not_an_orphan(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    queue(&db, vec![job("t", "p")]).await?;
    let claimed = claim(&db, claimer("one/1")).await?.unwrap();
    assert!(orphans(&db, "two/1", "two").await?.is_empty());
    assert!(orphans(&db, "one/1", "one").await?.is_empty(), "not even its own");
    assert_eq!(take_over(&db, "two/1", "two").await?, None);
    assert_eq!(take_over(&db, "one/1", "one").await?, None);
    db.write(move |tx| jobs::renew_claim(tx, &claimed, NOW, ENDED)).await?;
    assert_eq!(orphans(&db, "two/1", "two").await?, [turn("t")]);
    assert_eq!(
        orphans(&db, "one/1", "one").await?,
        [turn("t")],
        "even its own node lost it, if nothing drives it"
    );
    Ok(())
}

async fn node_takes_over_turns_of_its_earlier_epoch_only(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    queue(&db, vec![job("t", "p")]).await?;
    claim(&db, claimer("no_de/1")).await?.unwrap();
    for (node, node_name) in
        [("nomde/2", "nomde"), ("no_de2/1", "no_de2"), ("NO_DE/2", "NO_DE"), ("%/1", "%")]
    {
        assert!(orphans(&db, node, node_name).await?.is_empty(), "{node_name} is another node");
        assert_eq!(take_over(&db, node, node_name).await?, None, "{node_name} is another node");
    }
    assert!(orphans(&db, "no_de/1", None).await?.is_empty(), "what this life runs is no orphan");
    assert_eq!(
        orphans(&db, "alone/1", None).await?,
        [turn("t")],
        "where one process has the file, all others are gone"
    );
    queue_again(&db).await?;
    claim(&db, claimer("nomde/1")).await?.unwrap();
    assert!(orphans(&db, "no_de/2", "no_de").await?.is_empty(), "an underscore is only itself");
    assert_eq!(orphans(&db, "nomde/2", "nomde").await?, [turn("t")]);
    assert_eq!(take_over(&db, "nomde/2", "nomde").await?.unwrap().attempt, 1 + 1);
    Ok(())
}

/// Ends whatever runs and queues the turn anew.
async fn queue_again(db: &Db) -> Result<()> {
    db.write(|tx| {
        sessions::delete(tx, &key("p"))?;
        sessions::ensure(tx, &session("p"))?;
        jobs::insert(tx, &job("t", "p"))
    })
    .await
}

async fn session_host_is_the_node_of_its_last_turn(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    let hosts = |node: &'static str, node_name: Option<&'static str>| {
        db.read(move |tx| jobs::is_session_host(tx, &key("p"), &NodeId::new(node), node_name))
    };
    assert!(hosts("one/1", Some("one")).await? && hosts("two/1", Some("two")).await?, "none has run yet");
    queue(&db, vec![job("t", "p")]).await?;
    assert!(hosts("two/1", Some("two")).await?, "one that waits runs nowhere");
    let first = claim(&db, claimer("one/1")).await?.unwrap();
    assert!(hosts("one/1", Some("one")).await? && !hosts("two/1", Some("two")).await?);
    end(&db, &first, JobState::Done).await?;
    assert!(hosts("one/2", Some("one")).await?, "its next life");
    assert!(!hosts("ones/1", Some("ones")).await? && !hosts("two/1", Some("two")).await?);
    assert!(hosts("any/1", None).await?, "where one process has the file");
    queue(&db, vec![job("t2", "p")]).await?;
    claim(&db, claimer("two/1")).await?.unwrap();
    assert!(
        hosts("two/1", Some("two")).await? && !hosts("one/2", Some("one")).await?,
        "it went on elsewhere"
    );
    Ok(())
}

async fn released_claim_moves_to_other_node_without_a_used_attempt(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    queue(&db, vec![job("t", "p")]).await?;
    let first = claim(&db, claimer("one/1")).await?.unwrap();
    let given = first.clone();
    db.write(move |tx| jobs::release_claim(tx, &given)).await?;
    assert!(end(&db, &first, JobState::Done).await.is_err());
    assert_eq!(orphans(&db, "two/1", "two").await?, [turn("t")]);
    let second = take_over(&db, "two/1", "two").await?.unwrap();
    assert_eq!(second.attempt, 1);
    end(&db, &second, JobState::Done).await
}

async fn every_turn_job_is_claimed_exactly_once(db: Db) -> Result<()> {
    db.write(|tx| {
        for n in 0..200 {
            let peer = format!("p{n}");
            sessions::ensure(tx, &session(&peer))?;
            jobs::insert(tx, &of(["one", "two", "three"][n % 3], &format!("t{n}"), &peer))?;
        }
        Ok(())
    })
    .await?;
    let workers: Vec<_> = (0..8).map(|n| tokio::spawn(work(db.clone(), format!("node/{n}")))).collect();
    let mut seen = HashSet::new();
    for worker in workers {
        for turn in worker.await.unwrap()? {
            assert!(seen.insert(turn.clone()), "{turn} ran twice");
        }
    }
    assert_eq!(seen.len(), 200);
    Ok(())
}

/// Claims and ends until nothing is queued.
async fn work(db: Db, node: String) -> Result<Vec<TurnId>> {
    let mut done = Vec::new();
    while db.read(jobs::count_by_state).await?.iter().any(|(state, _)| state == "queued") {
        if let Some(claimed) = claim(&db, claimer(&node)).await? {
            end(&db, &claimed, JobState::Done).await?;
            done.push(claimed.turn);
        }
    }
    Ok(done)
}
