//! Reserving and settling, on every engine.

use std::sync::Arc;

use polyclaw_domain::budget::{BudgetAmount, BudgetScope, DailyLimits};
use polyclaw_domain::job::JobState;
use polyclaw_domain::provider::TokenUsage;
use polyclaw_store::budgets::{self, BudgetLimit, BudgetUsage};
use polyclaw_store::jobs::{self, TurnClaim};
use polyclaw_store::usage::{self, ModelCallUsage};
use polyclaw_store::{Db, Result, sessions};

use crate::rows::{self, ENDED, NOW, agent, claim, claimer, key, session, turn};

on_every_engine!(
    concurrent_calls_overspend_by_at_most_one_reservation,
    budget_reservation_ends_with_its_claim,
    budget_warning_at_eighty_percent_is_given_once_a_day,
    new_budget_counts_usage_since_start_of_day,
    reservation_needs_budget_left_in_every_scope,
);

fn allowance(scope: BudgetScope, tokens: i64) -> BudgetLimit {
    BudgetLimit {
        scope,
        limits: DailyLimits { tokens: Some(tokens), nanos: None },
        day: 20_833,
        since: NOW.minus(1000),
    }
}

fn tokens(tokens: i64) -> BudgetAmount {
    BudgetAmount { tokens, nanos: 0 }
}

async fn running(db: &Db, name: &'static str) -> Result<TurnClaim> {
    db.write(move |tx| sessions::ensure(tx, &session(name)).map(drop)).await?;
    db.write(move |tx| jobs::insert_claimed(tx, &rows::job(name, name), &claimer("one/1"))).await
}

async fn reserve(
    db: &Db,
    claim: &TurnClaim,
    allowances: Vec<BudgetLimit>,
    amount: BudgetAmount,
) -> Result<bool> {
    let claim = claim.clone();
    Ok(db.write(move |tx| budgets::reserve_budget(tx, &claim, &allowances, amount, NOW)).await?.is_none())
}

async fn settle(
    db: &Db,
    claim: &TurnClaim,
    allowances: Vec<BudgetLimit>,
    amount: BudgetAmount,
) -> Result<usize> {
    let turn = claim.turn.clone();
    Ok(db.write(move |tx| budgets::commit_usage(tx, &turn, &allowances, amount, false)).await?.len())
}

async fn standing(db: &Db, allowance: BudgetLimit) -> Result<BudgetUsage> {
    db.read(move |tx| budgets::get_usage(tx, &allowance)).await
}

/// Fifty turns, each of which asks until it is refused; a call takes what was reserved for it.
async fn concurrent_calls_overspend_by_at_most_one_reservation(db: Db) -> Result<()> {
    const LIMIT: i64 = 1_000;
    const CALL: i64 = 70;
    let mut claims = Vec::new();
    for n in 0..50 {
        let name: &'static str = Box::leak(format!("p{n}").into_boxed_str());
        claims.push(running(&db, name).await?);
    }
    let both = || {
        vec![allowance(BudgetScope::Agent("main".into()), LIMIT), allowance(BudgetScope::Instance, LIMIT + 1)]
    };
    let spent = Arc::new(std::sync::atomic::AtomicI64::new(0));
    let turns = claims.into_iter().map(|claim| {
        let (db, spent) = (db.clone(), Arc::clone(&spent));
        async move {
            while reserve(&db, &claim, both(), tokens(CALL)).await.unwrap() {
                tokio::task::yield_now().await;
                settle(&db, &claim, both(), tokens(CALL)).await.unwrap();
                spent.fetch_add(CALL, std::sync::atomic::Ordering::Relaxed);
            }
        }
    });
    let all: Vec<_> = turns.map(tokio::spawn).collect();
    for one in all {
        one.await.unwrap();
    }
    let spent = spent.load(std::sync::atomic::Ordering::Relaxed);
    assert!((LIMIT..LIMIT + CALL).contains(&spent), "{spent} of {LIMIT}");
    let stands = standing(&db, allowance(BudgetScope::Agent("main".into()), LIMIT)).await?;
    assert_eq!((stands.spent, stands.reserved), (tokens(spent), tokens(0)));
    Ok(())
}

async fn budget_reservation_ends_with_its_claim(db: Db) -> Result<()> {
    let limits_of = || vec![allowance(BudgetScope::Instance, 100)];
    db.write(|tx| sessions::ensure(tx, &session("p")).map(drop)).await?;
    rows::queue(&db, vec![rows::job("t", "p")]).await?;
    let dying = polyclaw_store::jobs::TurnClaimer { lease_ms: ENDED, ..claimer("one/1") };
    let first = claim(&db, dying).await?.unwrap();
    assert!(reserve(&db, &first, limits_of(), tokens(100)).await?);
    let other = running(&db, "q").await?;
    assert!(!reserve(&db, &other, limits_of(), tokens(1)).await?, "all of it is reserved");
    // The process dies; another takes its turn over.
    let next = db.write(|tx| jobs::take_over_orphan(tx, &turn("t"), &claimer("two/1"), None)).await?.unwrap();
    assert!(reserve(&db, &other, limits_of(), tokens(1)).await?, "nobody will settle it");
    assert!(reserve(&db, &next, limits_of(), tokens(40)).await?);
    assert_eq!(standing(&db, allowance(BudgetScope::Instance, 100)).await?.reserved, tokens(41));
    settle(&db, &next, limits_of(), tokens(30)).await?;
    rows::end(&db, &other, JobState::Failed).await?;
    let stands = standing(&db, allowance(BudgetScope::Instance, 100)).await?;
    assert_eq!(
        (stands.spent, stands.reserved),
        (tokens(30), tokens(0)),
        "once, and nothing is left reserved"
    );
    Ok(())
}

async fn budget_warning_at_eighty_percent_is_given_once_a_day(db: Db) -> Result<()> {
    let limits_of = || vec![allowance(BudgetScope::Instance, 100)];
    let claim = running(&db, "p").await?;
    assert_eq!(settle(&db, &claim, limits_of(), tokens(79)).await?, 0);
    assert_eq!(settle(&db, &claim, limits_of(), tokens(1)).await?, 1);
    assert_eq!(settle(&db, &claim, limits_of(), tokens(10)).await?, 0);
    let tomorrow = vec![BudgetLimit {
        day: 20_834,
        since: NOW.plus(86_400_000),
        ..allowance(BudgetScope::Instance, 100)
    }];
    assert!(!reserve(&db, &claim, vec![allowance(BudgetScope::Instance, 90)], tokens(1)).await?);
    assert!(reserve(&db, &claim, tomorrow.clone(), tokens(1)).await?, "a new day");
    assert_eq!(settle(&db, &claim, tomorrow, tokens(95)).await?, 1);
    Ok(())
}

async fn new_budget_counts_usage_since_start_of_day(db: Db) -> Result<()> {
    let claim = running(&db, "p").await?;
    let call = |agent_id: &'static str, at| {
        db.write(move |tx| {
            let usage = TokenUsage { input_tokens: Some(40), output_tokens: Some(10), cached_tokens: None };
            let (session, turn, agent) = (key("p"), turn("p"), agent(agent_id));
            let call = ModelCallUsage {
                session: &session,
                turn: &turn,
                agent: &agent,
                model: "m",
                usage,
                cost_nanos: Some(3),
            };
            usage::record(tx, &call, at)
        })
    };
    call("main", NOW).await?;
    call("ops", NOW).await?;
    call("main", NOW.minus(5_000)).await?;
    assert!(!reserve(&db, &claim, vec![allowance(BudgetScope::Agent("main".into()), 50)], tokens(1)).await?);
    assert!(reserve(&db, &claim, vec![allowance(BudgetScope::Agent("main".into()), 51)], tokens(1)).await?);
    let stands = standing(&db, allowance(BudgetScope::Instance, 1)).await?;
    assert_eq!(stands.spent, BudgetAmount { tokens: 100, nanos: 6 }, "yesterday's call is yesterday's");
    assert_eq!(
        standing(&db, allowance(BudgetScope::Session(key("p").to_string()), 1)).await?.spent.tokens,
        100
    );
    Ok(())
}

async fn reservation_needs_budget_left_in_every_scope(db: Db) -> Result<()> {
    let claim = running(&db, "p").await?;
    let purses = |session: i64| {
        vec![
            allowance(BudgetScope::Instance, 1_000),
            allowance(BudgetScope::Session(key("p").to_string()), session),
        ]
    };
    assert!(!reserve(&db, &claim, purses(0), tokens(5)).await?);
    assert_eq!(
        standing(&db, allowance(BudgetScope::Instance, 1_000)).await?.reserved,
        tokens(0),
        "all or nothing"
    );
    assert!(reserve(&db, &claim, purses(1), tokens(5)).await?);
    assert_eq!(
        db.read(|tx| budgets::list_session_scopes(tx, 20_833, 10)).await?,
        [BudgetScope::Session(key("p").to_string())]
    );
    db.write(|tx| budgets::release_reservations(tx, &turn("p"))).await?;
    assert_eq!(standing(&db, allowance(BudgetScope::Instance, 1_000)).await?.reserved, tokens(0));
    Ok(())
}
