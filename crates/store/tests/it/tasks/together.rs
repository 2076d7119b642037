//! Claims that are made together come to what they would have come to one after the other.

use polyclaw_domain::id::TeamId;
use polyclaw_domain::task::{TaskNo, TaskRefusal, TeamTask};
use polyclaw_store::tasks::{self, TaskClaimRequest, TaskClaimResult, TaskEventKind};
use polyclaw_store::{Db, Result};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{asked, create, some, task, team};

on_every_ledger!(
    batched_claims_get_oldest_tasks_in_request_order,
    repeated_claim_in_a_batch_returns_its_task,
    batched_claims_equal_sequential_claims,
);

async fn together(db: &Db, claims: Vec<TaskClaimRequest>) -> Result<Vec<TaskClaimResult>> {
    let ask = |claim| {
        let db = db.clone();
        tokio::spawn(async move { db.claim_oldest_task(claim).await })
    };
    let asked: Vec<_> = claims.into_iter().map(ask).collect();
    let mut got = Vec::new();
    for one in asked {
        got.push(one.await.unwrap()?);
    }
    Ok(got)
}

/// More than there are tasks.
async fn batched_claims_get_oldest_tasks_in_request_order(db: Db) -> Result<()> {
    some(&db, &[("0", &[])]).await?;
    for no in 2..=20 {
        create(&db, task(&no.to_string(), if no == 5 { &[4] } else { &[] })).await?.unwrap();
    }
    let claims = (0..20).map(|n| asked(&format!("w{n:02}"), &format!("k{n}"))).collect();
    let got = together(&db, claims).await?;
    let (last, firsts) = got.split_last().unwrap();
    let numbers: Vec<i64> = firsts.iter().map(|got| got.as_ref().unwrap().no.0).collect();
    assert_eq!(numbers, (1..=20).filter(|no| *no != 5).collect::<Vec<_>>(), "the fifth waits for the fourth");
    assert_eq!(last.as_ref().unwrap_err(), &TaskRefusal::NothingFree);
    let events = db.read(|tx| tasks::list_events(tx, &team(), 0, 99)).await?;
    let claimed = events.iter().filter(|event| event.kind == TaskEventKind::Claimed);
    for ((event, got), n) in claimed.zip(firsts).zip(0..) {
        let (task, name) = (got.as_ref().unwrap(), format!("w{n:02}"));
        let lease = task.lease.as_ref().unwrap();
        assert_eq!((&lease.owner, lease.fencing_token, &event.actor, event.task), (&name, 1, &name, task.no));
        assert_eq!(event.data["session_key"], lease.session.as_str());
        let stored = super::get(&db, task.no.0).await?;
        assert_eq!(&stored, task, "what was answered is what is there");
    }
    Ok(())
}

async fn repeated_claim_in_a_batch_returns_its_task(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[]), ("c", &[])]).await?;
    let claim = |name: &str| asked(name, name);
    let numbers = |got: Vec<TaskClaimResult>| got.into_iter().map(|got| got.unwrap().no).collect::<Vec<_>>();
    let first = together(&db, vec![claim("ann"), claim("bob"), claim("ann")]).await?;
    assert_eq!(numbers(first), [1, 2, 1].map(TaskNo), "twice in one go, too");
    let again = together(&db, vec![claim("cat"), claim("bob"), claim("ann")]).await?;
    assert_eq!(numbers(again), [3, 2, 1].map(TaskNo));
    Ok(())
}

/// A ledger and those who want something of it: for whom each task is, what it wants, what it waits for; who asks, what they
/// can do, and under which key.
type Scene = (Vec<(Option<usize>, Option<usize>, Option<usize>)>, Vec<(usize, Option<usize>, usize)>);

/// In every second one those who ask may all take the same, and what is for others is in their way.
fn scene(is_plain: bool) -> impl Strategy<Value = Scene> {
    let rare = |first: usize, most: usize| proptest::option::weighted(0.15, first..most);
    let (stranger, art) = if is_plain { (6, 2) } else { (0, 0) };
    let tasks = proptest::collection::vec((rare(stranger, 9), rare(art, 4), rare(0, 8)), 0..30);
    let able = rare(0, 2).prop_map(move |art| art.filter(|_| !is_plain));
    let keys = if is_plain { 0..1_000_000usize } else { 0..30 };
    (tasks, proptest::collection::vec((0..6usize, able, keys), 1..24))
}

async fn batched_claims_equal_sequential_claims(db: Db) -> Result<()> {
    let mut runner = TestRunner::deterministic();
    for round in 0..60 {
        let (tasks, claims) = scene(round % 2 == 0).new_tree(&mut runner).unwrap().current();
        let [one, other] = ["one", "other"].map(|which| TeamId::new(format!("{which}-{round}")));
        for team in [&one, &other] {
            for (no, (assignee, capability, needs)) in (1..).zip(&tasks) {
                let needs = needs.map(|need| i64::try_from(need).unwrap() + 1).filter(|need| need < &no);
                let task = TeamTask {
                    team: team.clone(),
                    assignee: assignee.map(|n| format!("w{n}")),
                    capability: capability.map(|n| format!("c{n}")),
                    ..task("x", needs.as_slice())
                };
                create(&db, task).await?.unwrap();
            }
        }
        let asked = |team: &TeamId| {
            let claim = |(name, capability, key): &(usize, Option<usize>, usize)| {
                let mut claim = asked(&format!("w{name}"), &format!("k{key}"));
                claim.worker.capabilities.extend(capability.map(|n| format!("c{n}")));
                TaskClaimRequest { team: team.clone(), ..claim }
            };
            claims.iter().map(claim).collect::<Vec<_>>()
        };
        let at_once = together(&db, asked(&one)).await?;
        let mut in_turn = Vec::new();
        for claim in asked(&other) {
            in_turn.push(db.write(move |tx| tasks::claim_oldest(tx, &claim)).await?);
        }
        let text_of = |got: &[TaskClaimResult]| {
            let facts =
                |task: &TeamTask| (task.no, task.lease.as_ref().unwrap().owner.clone(), task.needs.clone());
            got.iter().map(|got| got.as_ref().map(facts).map_err(ToString::to_string)).collect::<Vec<_>>()
        };
        assert_eq!(text_of(&at_once), text_of(&in_turn), "{tasks:?} {claims:?}");
    }
    Ok(())
}
