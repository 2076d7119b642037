//! The ledger of a team, on a file and on PostgreSQL. Which scenario of the design is which test:
//!
//! | scenario | test |
//! |---|---|
//! | tasks 1, 2, 3 | `tasks::task_is_stored_with_all_its_fields` |
//! | tasks 4, 5, 12 | `tasks::tasks_are_listed_open_first_and_by_filter` |
//! | tasks 6, 7 | `tasks::claimed_task_has_owner_and_lease_and_active_form` |
//! | tasks 8 | `tasks::claim_of_a_claimed_task_is_refused_and_changes_nothing` |
//! | tasks 9 | `claims::one_of_two_concurrent_claims_wins`, `meetings::second_claim_waits_and_names_the_first_owner` |
//! | tasks 10 | `tasks::completed_task_keeps_who_completed_it` |
//! | tasks 11, 13 | `tasks::dependency_blocks_until_it_is_completed` |
//! | tasks 14 | `tasks::dependency_chain_is_unblocked_one_by_one` |
//! | tasks 15 | `tasks::dependency_cycle_is_refused`, `meetings::concurrent_changes_cannot_create_a_dependency_cycle` |
//! | tasks 16 | `tasks::task_is_unblocked_by_its_last_dependency`, `meetings::concurrent_ends_unblock_the_common_dependent_once` |
//! | tasks 17 | `lead::tasks_are_filtered_by_metadata` |
//! | concurrency 1 | `meetings::readers_do_not_wait_for_an_open_write_transaction` |
//! | concurrency 2 | `meetings::readers_keep_the_snapshot_they_started_with`, `files::readers_see_a_consistent_snapshot_while_others_write` |
//! | concurrency 3, 13 | `meetings::second_claim_waits_and_names_the_first_owner`, `files::second_writer_waits_without_an_error` |
//! | concurrency 4 | `files::write_transaction_blocks_writers_but_not_readers`, `meetings::readers_do_not_wait_for_an_open_write_transaction` |
//! | concurrency 5, 9 | `claims::sixty_four_claimers_in_four_processes_share_a_ledger_file`, `claims::sixty_four_claimers_in_four_processes_share_a_postgres_ledger` |
//! | concurrency 6 | `meetings::transaction_refused_one_task_keeps_its_other_claim`, `claims::rolled_back_claim_leaves_nothing_behind` |
//! | concurrency 7 | `files::long_reader_only_delays_the_wal_checkpoint`, `meetings::readers_keep_the_snapshot_they_started_with` |
//! | concurrency 8 | `files::long_wal_is_checkpointed_into_the_file`, `checkpoint::grown_wal_is_checkpointed_and_short_one_is_left` |
//! | concurrency 10, 11 | `tasks::claim_of_a_claimed_task_is_refused_and_changes_nothing` |
//! | concurrency 12 | `meetings::second_claim_waits_and_names_the_first_owner` |
//! | concurrency 14, 15 | `busy_handler::busy_pauses_stay_short_and_end_at_the_timeout`, `write_lock::stuck_lock_holder_delays_writers_only_until_timeout`, `pg::transient_errors_are_retried_up_to_their_limit`, `pg::deadlock_backoff_grows_up_to_its_limit` |
//! | concurrency 16 | `meetings::transaction_refused_one_task_keeps_its_other_claim`, `claims::claims_of_many_tasks_in_any_order_do_not_deadlock`, `postgres::crosswise_claims_deadlock_and_both_complete_after_retry` |
//! | concurrency 17 | `meetings::process_death_in_a_transaction_leaves_nothing_behind`, `busy_handler::busy_timeout_is_an_error_and_next_write_succeeds`, `postgres::idle_transaction_is_ended_and_its_task_claimed_by_another` |
//! | concurrency 18 | `claims::concurrent_claimers_claim_each_free_task_once`, `postgres::claim_skips_task_locked_by_another_claim`, `postgres::pool_runs_one_transaction_per_connection_at_a_time` |
//! | concurrency 19 | `places::ledger_file_of_a_team_is_opened_once`, `places::postgres_ledgers_share_the_existing_connections` |

mod claims;
mod files;
mod leases;
mod lines;
mod meetings;
mod places;
mod postgres;
mod together;

use polyclaw_domain::id::{AgentId, TeamId};
use polyclaw_domain::run::Artifact;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::{TaskMember, TaskNo, TaskRefusal, TaskVerification, TeamTask, TeamTaskState};
use polyclaw_domain::time::Millis;
use polyclaw_store::tasks::{
    self, TaskChange, TaskClaimRequest, TaskEnding, TaskEventKind, TaskInsert, TaskListFilter,
};
use polyclaw_store::{Db, Result};
use serde_json::json;

use crate::rows::NOW;

on_every_ledger!(
    task_is_stored_with_all_its_fields,
    repeated_call_key_creates_or_claims_one_task,
    tasks_are_listed_open_first_and_by_filter,
    claimed_task_has_owner_and_lease_and_active_form,
    claim_of_a_claimed_task_is_refused_and_changes_nothing,
    completed_task_keeps_who_completed_it,
    dependency_blocks_until_it_is_completed,
    completed_dependency_does_not_block_new_task,
    dependency_chain_is_unblocked_one_by_one,
    claimed_task_with_new_dependency_stays_with_its_owner,
    dependency_cycle_is_refused,
    task_is_unblocked_by_its_last_dependency,
    failed_dependency_keeps_blocking,
    assignee_and_capability_restrict_claims,
    oldest_claimable_task_is_claimed,
    lead_releases_and_ends_tasks_of_others,
    lead_ends_unclaimed_task_unless_it_was_just_claimed,
    ended_tasks_are_listed_by_who_ended_them,
    dependencies_of_a_task_can_be_dropped,
    unclaimed_task_can_be_reassigned,
    open_tasks_of_a_team_are_limited,
    teams_in_one_database_are_isolated,
);

const LEASE: i64 = 600_000;

fn team() -> TeamId {
    TeamId::new("team-1")
}

fn key(name: &str) -> SessionKey {
    SessionKey::from_parts(&AgentId::main(), &["teammate", name])
}

pub fn worker(name: &str) -> TaskMember {
    TaskMember { name: name.into(), session: key(name), capabilities: vec![], is_lead: false }
}

/// What such a worker asks.
fn asked(name: &str, key: &str) -> TaskClaimRequest {
    TaskClaimRequest { team: team(), key: key.into(), worker: worker(name), now: NOW, lease_ms: LEASE }
}

fn lead() -> TaskMember {
    TaskMember { is_lead: true, ..worker("lead") }
}

pub fn task(subject: &str, needs: &[i64]) -> TeamTask {
    TeamTask {
        description: format!("{subject}, in full"),
        needs: needs.iter().copied().map(TaskNo).collect(),
        ..TeamTask::new_pending(team(), subject.to_owned(), "lead", NOW)
    }
}

pub async fn create(db: &Db, task: TeamTask) -> Result<std::result::Result<TaskNo, TaskRefusal>> {
    let new = TaskInsert { task, key: None, max_open: 100_000 };
    db.write(move |tx| tasks::create(tx, &new)).await
}

async fn some(db: &Db, tasks: &[(&str, &[i64])]) -> Result<()> {
    for (subject, needs) in tasks {
        create(db, task(subject, needs)).await?.unwrap();
    }
    Ok(())
}

pub async fn claim(db: &Db, who: &TaskMember, no: Option<i64>) -> Result<tasks::TaskClaimResult> {
    claim_at(db, who, no, NOW).await
}

async fn claim_at(db: &Db, who: &TaskMember, no: Option<i64>, now: Millis) -> Result<tasks::TaskClaimResult> {
    let (who, wanted) = (who.clone(), no.map(TaskNo));
    let key = format!("{}-{no:?}-{now:?}-{}", who.name, call_number());
    let asked = TaskClaimRequest { team: team(), key, worker: who, now, lease_ms: LEASE };
    match wanted {
        Some(no) => db.write(move |tx| tasks::claim_task(tx, no, &asked)).await,
        None => db.claim_oldest_task(asked).await,
    }
}

/// A call's own key: no two calls have the same.
fn call_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

async fn get(db: &Db, no: i64) -> Result<TeamTask> {
    Ok(db.read(move |tx| tasks::get(tx, &team(), TaskNo(no))).await?.unwrap())
}

async fn end(
    db: &Db,
    who: &TaskMember,
    no: i64,
    state: TeamTaskState,
) -> Result<std::result::Result<Vec<TaskNo>, TaskRefusal>> {
    let fence = get(db, no).await?.lease.map_or(0, |lease| lease.fencing_token);
    end_with(db, who, no, state, fence).await
}

async fn end_with(
    db: &Db,
    who: &TaskMember,
    no: i64,
    state: TeamTaskState,
    fence: i64,
) -> Result<std::result::Result<Vec<TaskNo>, TaskRefusal>> {
    let artifacts = vec![Artifact { kind: "file".into(), path: "a.txt".into() }];
    let (who, ending) = (
        who.clone(),
        TaskEnding {
            state,
            summary: Some("done".into()),
            artifacts,
            fencing_token: fence,
            call: String::new(),
        },
    );
    db.write(move |tx| tasks::end_task(tx, &team(), TaskNo(no), &who, (&ending, NOW))).await
}

async fn list(db: &Db, filter: TaskListFilter) -> Result<Vec<i64>> {
    let filter = TaskListFilter { limit: 100, ..filter };
    Ok(db
        .read(move |tx| tasks::list(tx, &team(), &filter))
        .await?
        .into_iter()
        .map(|task| task.no.0)
        .collect())
}

async fn kinds(db: &Db) -> Result<Vec<&'static str>> {
    let all = db.read(|tx| tasks::list_events(tx, &team(), 0, 1_000)).await?;
    Ok(all.into_iter().map(|event| event.kind.as_str()).collect())
}

fn code<T: std::fmt::Debug>(outcome: std::result::Result<T, TaskRefusal>) -> &'static str {
    outcome.map_or_else(|refusal| refusal.code(), |_| "ok")
}

async fn task_is_stored_with_all_its_fields(db: Db) -> Result<()> {
    some(&db, &[("first", &[])]).await?;
    let given = TeamTask {
        active_form: Some("Doing".into()),
        metadata: Some(json!({ "priority": 1, "labels": ["a"] })),
        assignee: Some("ann".into()),
        capability: Some("rust".into()),
        verify: Some(TaskVerification::Command("test -f a.txt".into())),
        ..task("second", &[1])
    };
    assert_eq!(create(&db, given.clone()).await?, Ok(TaskNo(2)));
    let stored = get(&db, 2).await?;
    assert_eq!(stored, TeamTask { no: TaskNo(2), blocked_by: vec![TaskNo(1)], ..given });
    assert_eq!(kinds(&db).await?, ["created", "created"]);
    Ok(())
}

async fn repeated_call_key_creates_or_claims_one_task(db: Db) -> Result<()> {
    let new = TaskInsert { task: task("once", &[]), key: Some("turn-call".into()), max_open: 10 };
    let make = |new: TaskInsert| db.write(move |tx| tasks::create(tx, &new));
    assert_eq!((make(new.clone()).await?, make(new).await?), (Ok(TaskNo(1)), Ok(TaskNo(1))));
    assert_eq!(list(&db, TaskListFilter::default()).await?, [1]);
    let who = worker("ann");
    let again = |who: TaskMember| {
        db.write(move |tx| {
            tasks::claim_oldest(tx, &TaskClaimRequest { worker: who.clone(), ..asked("", "turn-claim") })
        })
    };
    some(&db, &[("other", &[])]).await?;
    assert_eq!(again(who.clone()).await?.unwrap().no, TaskNo(1));
    assert_eq!(again(who).await?.unwrap().no, TaskNo(1), "a call that is made again takes no second task");
    Ok(())
}

async fn tasks_are_listed_open_first_and_by_filter(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[1]), ("c", &[])]).await?;
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    claim(&db, &worker("bob"), Some(3)).await?.unwrap();
    end(&db, &worker("bob"), 3, TeamTaskState::Completed).await?.unwrap();
    let all = TaskListFilter { with_ended: true, ..TaskListFilter::default() };
    let by = |state| TaskListFilter { state: Some(state), ..TaskListFilter::default() };
    assert_eq!(list(&db, all.clone()).await?, [2, 1, 3], "what has ended comes last");
    let behind = |has_ended, no| TaskListFilter { after: Some((has_ended, TaskNo(no))), ..all.clone() };
    assert_eq!(list(&db, behind(false, 2)).await?, [1, 3]);
    assert_eq!(list(&db, behind(false, 1)).await?, [3]);
    assert_eq!(list(&db, behind(true, 3)).await?, [0; 0], "and nothing twice");
    assert_eq!(list(&db, TaskListFilter::default()).await?, [2, 1], "what has ended is left out");
    assert_eq!(list(&db, by(TeamTaskState::Pending)).await?, [2]);
    assert_eq!(list(&db, by(TeamTaskState::Completed)).await?, [3], "unless it is asked for");
    assert_eq!(
        list(&db, TaskListFilter { owner: Some("ann".into()), ..TaskListFilter::default() }).await?,
        [1]
    );
    let waiting = db
        .read(|tx| tasks::list(tx, &team(), &TaskListFilter { limit: 9, ..TaskListFilter::default() }))
        .await?;
    assert_eq!(waiting[0].blocked_by, [TaskNo(1)]);
    assert!(waiting[1].blocked_by.is_empty());
    Ok(())
}

async fn claimed_task_has_owner_and_lease_and_active_form(db: Db) -> Result<()> {
    create(&db, TeamTask { active_form: Some("Writing".into()), ..task("Write", &[]) }).await?.unwrap();
    let before = db.read(|tx| Ok(tx.lease_clock(NOW))).await?;
    let claimed = claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    let after = db.read(|tx| Ok(tx.lease_clock(NOW))).await?;
    let lease = claimed.lease.clone().unwrap();
    assert_eq!((claimed.state, claimed.claimed_at), (TeamTaskState::Claimed, Some(NOW)));
    assert_eq!((lease.owner.as_str(), &lease.session, lease.fencing_token), ("ann", &key("ann"), 1));
    assert!((before.plus(LEASE)..=after.plus(LEASE)).contains(&lease.until), "by whichever clock");
    assert_eq!(claimed.display_title(), "Writing");
    let started =
        db.write(|tx| tasks::start_task(tx, &team(), TaskNo(1), &worker("ann"), (NOW, LEASE))).await?;
    assert_eq!(started.unwrap().state, TeamTaskState::InProgress);
    assert_eq!(kinds(&db).await?, ["created", "claimed", "started"]);
    Ok(())
}

async fn claim_of_a_claimed_task_is_refused_and_changes_nothing(db: Db) -> Result<()> {
    some(&db, &[("a", &[])]).await?;
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    let refused = claim(&db, &worker("bob"), Some(1)).await?.unwrap_err();
    assert_eq!(refused, TaskRefusal::Taken(TaskNo(1), "ann".into()));
    assert_eq!(code(claim(&db, &worker("bob"), None).await?), "no_task_free");
    assert_eq!(code(claim(&db, &worker("bob"), Some(7)).await?), "unknown_task");
    assert_eq!(get(&db, 1).await?.lease.unwrap().owner, "ann");
    let mine = claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    assert_eq!(mine.lease.unwrap().fencing_token, 1, "what one has is had, not taken again");
    assert_eq!(code(end(&db, &worker("bob"), 1, TeamTaskState::Completed).await?), "task_taken");
    assert_eq!(get(&db, 1).await?.state, TeamTaskState::Claimed);
    Ok(())
}

async fn completed_task_keeps_who_completed_it(db: Db) -> Result<()> {
    some(&db, &[("a", &[])]).await?;
    assert_eq!(code(end(&db, &worker("ann"), 1, TeamTaskState::Completed).await?), "task_not_yours");
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    end(&db, &worker("ann"), 1, TeamTaskState::Completed).await?.unwrap();
    let done = get(&db, 1).await?;
    assert_eq!((done.state, done.ended_at, done.lease), (TeamTaskState::Completed, Some(NOW), None));
    assert_eq!((done.ended_by.as_deref(), done.summary.as_deref()), (Some("ann"), Some("done")));
    assert_eq!(done.artifacts[0].path, "a.txt");
    assert_eq!(code(end(&db, &worker("ann"), 1, TeamTaskState::Failed).await?), "task_ended", "only once");
    assert_eq!(code(claim(&db, &worker("bob"), Some(1)).await?), "task_ended");
    Ok(())
}

async fn dependency_blocks_until_it_is_completed(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[1])]).await?;
    let blocked = get(&db, 2).await?;
    assert_eq!(
        (blocked.state, blocked.needs, blocked.blocked_by),
        (TeamTaskState::Pending, vec![TaskNo(1)], vec![TaskNo(1)])
    );
    let refused = claim(&db, &worker("ann"), Some(2)).await?.unwrap_err();
    assert_eq!(refused, TaskRefusal::Blocked(TaskNo(2), vec![TaskNo(1)]));
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    assert_eq!(code(claim(&db, &worker("bob"), Some(2)).await?), "task_blocked", "begun is not done");
    assert_eq!(end(&db, &worker("ann"), 1, TeamTaskState::Completed).await?, Ok(vec![TaskNo(2)]));
    assert_eq!(claim(&db, &worker("bob"), Some(2)).await?.unwrap().no, TaskNo(2));
    Ok(())
}

async fn completed_dependency_does_not_block_new_task(db: Db) -> Result<()> {
    some(&db, &[("a", &[])]).await?;
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    end(&db, &worker("ann"), 1, TeamTaskState::Completed).await?.unwrap();
    some(&db, &[("b", &[1])]).await?;
    assert!(claim(&db, &worker("bob"), None).await?.is_ok());
    Ok(())
}

async fn dependency_chain_is_unblocked_one_by_one(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[1]), ("c", &[2])]).await?;
    let ann = worker("ann");
    for (no, freed) in [(1, vec![TaskNo(2)]), (2, vec![TaskNo(3)]), (3, vec![])] {
        assert_eq!(claim(&db, &ann, None).await?.unwrap().no, TaskNo(no));
        assert_eq!(code(claim(&db, &worker("bob"), None).await?), "no_task_free");
        assert_eq!(end(&db, &ann, no, TeamTaskState::Completed).await?, Ok(freed));
    }
    Ok(())
}

async fn dependency_cycle_is_refused(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[1]), ("c", &[2])]).await?;
    let wait = |no: i64, need: i64| {
        let change = TaskChange { needs: vec![TaskNo(need)], ..TaskChange::default() };
        db.write(move |tx| tasks::update_task(tx, &team(), TaskNo(no), &change, (&lead(), NOW)))
    };
    assert_eq!(code(wait(1, 3).await?), "dependency_cycle");
    assert_eq!(code(wait(1, 1).await?), "self_dependency");
    assert_eq!(code(wait(1, 9).await?), "unknown_dependency");
    assert_eq!(code(create(&db, task("d", &[4])).await?), "self_dependency");
    assert_eq!(code(create(&db, task("d", &[99])).await?), "unknown_dependency");
    assert!(get(&db, 1).await?.needs.is_empty(), "nothing of it was stored");
    assert_eq!(list(&db, TaskListFilter::default()).await?, [3, 2, 1]);
    assert_eq!(code(wait(3, 1).await?), "ok");
    assert_eq!(get(&db, 3).await?.needs, [TaskNo(1), TaskNo(2)]);
    Ok(())
}

async fn task_is_unblocked_by_its_last_dependency(db: Db) -> Result<()> {
    some(&db, &[("e", &[]), ("f", &[]), ("g", &[1, 2])]).await?;
    let ann = worker("ann");
    claim(&db, &ann, Some(1)).await?.unwrap();
    assert_eq!(end(&db, &ann, 1, TeamTaskState::Completed).await?, Ok(vec![]));
    assert_eq!(get(&db, 3).await?.blocked_by, [TaskNo(2)]);
    claim(&db, &ann, Some(2)).await?.unwrap();
    assert_eq!(end(&db, &ann, 2, TeamTaskState::Completed).await?, Ok(vec![TaskNo(3)]));
    assert!(get(&db, 3).await?.blocked_by.is_empty());
    Ok(())
}

async fn failed_dependency_keeps_blocking(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[1])]).await?;
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    assert_eq!(end(&db, &worker("ann"), 1, TeamTaskState::Failed).await?, Ok(vec![]));
    assert_eq!(code(claim(&db, &worker("bob"), Some(2)).await?), "task_blocked");
    assert_eq!(kinds(&db).await?.last(), Some(&"failed"));
    Ok(())
}

async fn assignee_and_capability_restrict_claims(db: Db) -> Result<()> {
    create(&db, TeamTask { assignee: Some("ann".into()), ..task("a", &[]) }).await?.unwrap();
    create(&db, TeamTask { capability: Some("a_b".into()), ..task("b", &[]) }).await?.unwrap();
    let able = |list: &[&str]| TaskMember {
        capabilities: list.iter().map(|able| (*able).to_owned()).collect(),
        ..worker("bob")
    };
    assert_eq!(code(claim(&db, &worker("bob"), Some(1)).await?), "task_assigned");
    assert_eq!(code(claim(&db, &worker("bob"), Some(2)).await?), "task_capability");
    assert_eq!(code(claim(&db, &able(&["axb", "a"]), None).await?), "no_task_free");
    assert_eq!(claim(&db, &able(&["x", "a_b"]), None).await?.unwrap().no, TaskNo(2));
    assert_eq!(claim(&db, &worker("ann"), None).await?.unwrap().no, TaskNo(1));
    Ok(())
}

async fn oldest_claimable_task_is_claimed(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[1]), ("c", &[])]).await?;
    assert_eq!(claim(&db, &worker("ann"), None).await?.unwrap().no, TaskNo(1));
    assert_eq!(claim(&db, &worker("bob"), None).await?.unwrap().no, TaskNo(3));
    assert_eq!(code(claim(&db, &worker("cat"), None).await?), "no_task_free");
    Ok(())
}

async fn lead_releases_and_ends_tasks_of_others(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[])]).await?;
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    let freed = db.write(|tx| tasks::release_task(tx, &team(), TaskNo(1), &lead(), NOW)).await?.unwrap();
    assert_eq!((freed.state, freed.lease), (TeamTaskState::Pending, None));
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    assert_eq!(code(end(&db, &lead(), 1, TeamTaskState::Failed).await?), "ok");
    assert_eq!(get(&db, 1).await?.ended_by.as_deref(), Some("ann"));
    claim(&db, &worker("ann"), Some(2)).await?.unwrap();
    let left = db.write(|tx| tasks::release_all(tx, &team(), "ann", "its session was closed", NOW)).await?;
    assert_eq!(left, [TaskNo(2)]);
    assert_eq!(get(&db, 2).await?.note.as_deref(), Some("its session was closed"));
    Ok(())
}

async fn lead_ends_unclaimed_task_unless_it_was_just_claimed(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[1])]).await?;
    assert_eq!(code(end(&db, &worker("ann"), 1, TeamTaskState::Completed).await?), "task_not_yours");
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    let looked_before = end_with(&db, &lead(), 1, TeamTaskState::Failed, 0).await?;
    assert_eq!(code(looked_before), "stale_claim", "it was free when the lead looked, and is not");
    db.write(|tx| tasks::release_task(tx, &team(), TaskNo(1), &worker("ann"), NOW)).await?.unwrap();
    assert_eq!(end(&db, &lead(), 1, TeamTaskState::Completed).await?, Ok(vec![TaskNo(2)]));
    assert_eq!(get(&db, 1).await?.ended_by.as_deref(), Some("lead"));
    Ok(())
}

async fn ended_tasks_are_listed_by_who_ended_them(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[]), ("c", &[])]).await?;
    let ann = worker("ann");
    claim(&db, &ann, Some(1)).await?.unwrap();
    end(&db, &ann, 1, TeamTaskState::Completed).await?.unwrap();
    claim(&db, &ann, Some(2)).await?.unwrap();
    claim(&db, &worker("bob"), Some(3)).await?.unwrap();
    for (with_ended, expected) in [(false, vec![2]), (true, vec![2, 1])] {
        let filter =
            TaskListFilter { owner: Some("ann".into()), with_ended, limit: 9, ..TaskListFilter::default() };
        let found = db.read(move |tx| tasks::list(tx, &team(), &filter)).await?;
        assert_eq!(found.iter().map(|task| task.no.0).collect::<Vec<_>>(), expected);
    }
    Ok(())
}

async fn dependencies_of_a_task_can_be_dropped(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[]), ("c", &[1, 2])]).await?;
    let drop_one = |needs: &[i64], drops: &[i64]| {
        let of = |list: &[i64]| list.iter().copied().map(TaskNo).collect();
        let change = TaskChange { needs: of(needs), drops: of(drops), ..TaskChange::default() };
        db.write(move |tx| tasks::update_task(tx, &team(), TaskNo(3), &change, (&lead(), NOW)))
    };
    assert_eq!(drop_one(&[], &[1]).await?.unwrap().blocked_by, [TaskNo(2)]);
    assert_eq!(drop_one(&[1], &[2]).await?.unwrap().blocked_by, [TaskNo(1)], "one for the other");
    assert_eq!(drop_one(&[], &[1, 7]).await?.unwrap().blocked_by, [], "what it does not wait for is nothing");
    claim(&db, &worker("ann"), Some(3)).await?.unwrap();
    let events = db.read(|tx| tasks::list_events(tx, &team(), 0, 99)).await?;
    let dropped = events
        .iter()
        .filter(|event| event.kind == TaskEventKind::Updated)
        .map(|event| event.data["drops"].clone());
    assert_eq!(dropped.collect::<Vec<_>>(), [json!([1]), json!([2]), json!([1, 7])]);
    Ok(())
}

async fn unclaimed_task_can_be_reassigned(db: Db) -> Result<()> {
    some(&db, &[("a", &[])]).await?;
    let give = |name: &str| {
        let change = TaskChange { assignee: Some(name.to_owned()), ..TaskChange::default() };
        db.write(move |tx| tasks::update_task(tx, &team(), TaskNo(1), &change, (&lead(), NOW)))
    };
    assert_eq!(give("bob").await?.unwrap().assignee.as_deref(), Some("bob"));
    assert_eq!(code(claim(&db, &worker("ann"), Some(1)).await?), "task_assigned");
    assert_eq!(give("").await?.unwrap().assignee, None, "it is for whoever comes");
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    assert_eq!(give("bob").await?.unwrap_err(), TaskRefusal::Taken(TaskNo(1), "ann".into()));
    assert_eq!(code(give("ann").await?), "ok", "what one has may be kept for it");
    end(&db, &worker("ann"), 1, TeamTaskState::Completed).await?.unwrap();
    assert_eq!(code(give("bob").await?), "task_ended");
    Ok(())
}

async fn open_tasks_of_a_team_are_limited(db: Db) -> Result<()> {
    let make = || {
        let new = TaskInsert { task: task("x", &[]), key: None, max_open: 2 };
        db.write(move |tx| tasks::create(tx, &new))
    };
    assert!(make().await?.is_ok() && make().await?.is_ok());
    assert_eq!(make().await?, Err(TaskRefusal::TooMany(2, 2)));
    claim(&db, &worker("ann"), Some(1)).await?.unwrap();
    end(&db, &worker("ann"), 1, TeamTaskState::Completed).await?.unwrap();
    assert!(make().await?.is_ok(), "what has ended counts no longer");
    Ok(())
}

async fn teams_in_one_database_are_isolated(db: Db) -> Result<()> {
    some(&db, &[("a", &[])]).await?;
    let other = TaskInsert {
        task: TeamTask { team: TeamId::new("team-2"), ..task("b", &[]) },
        key: None,
        max_open: 10,
    };
    assert_eq!(db.write(move |tx| tasks::create(tx, &other)).await?, Ok(TaskNo(1)), "each counts from one");
    assert_eq!(list(&db, TaskListFilter::default()).await?, [1]);
    let due = db.read(|tx| tasks::list_unrelayed(tx, &team(), 10)).await?;
    assert_eq!(due.len(), 1);
    let seq = due[0].seq;
    db.write(move |tx| tasks::mark_relayed(tx, seq)).await?;
    assert!(db.read(|tx| tasks::list_unrelayed(tx, &team(), 10)).await?.is_empty());
    assert_eq!(db.read(|tx| tasks::list_unrelayed(tx, &TeamId::new("team-2"), 10)).await?.len(), 1);
    Ok(())
}

/// However many tasks a team has had, a list reads those that are open, and of the others as many as it shows.
#[test]
fn task_list_query_does_not_sort() {
    let db = Db::ledger_in_memory().unwrap();
    crate::engines::drive(async {
        some(&db, &[("a", &[])]).await?;
        let filter = TaskListFilter { with_ended: true, limit: 9, ..TaskListFilter::default() };
        let body = move |tx: &mut polyclaw_store::Tx<'_>| tasks::list(tx, &team(), &filter).map(drop);
        let plans = db.write(move |tx| tx.explain_queries(body.clone())).await?;
        assert!(plans[0].contains("tasks_open (team_id=? AND task_no<?)"), "{plans:?}");
        assert!(plans[1].contains("PRIMARY KEY (team_id=? AND task_no<?)"), "{plans:?}");
        assert!(!plans[0].contains("TEMP B-TREE") && !plans[1].contains("TEMP B-TREE"), "{plans:?}");
        Ok(())
    });
}

/// What it waits for was said after it was taken: it is not freed, and not taken from whoever has it.
async fn claimed_task_with_new_dependency_stays_with_its_owner(db: Db) -> Result<()> {
    some(&db, &[("a", &[]), ("b", &[])]).await?;
    let fence = claim(&db, &worker("ann"), Some(2)).await?.unwrap().lease.unwrap().fencing_token;
    let change = TaskChange { needs: vec![TaskNo(1)], ..TaskChange::default() };
    db.write(move |tx| tasks::update_task(tx, &team(), TaskNo(2), &change, (&lead(), NOW))).await?.unwrap();
    claim(&db, &worker("bob"), Some(1)).await?.unwrap();
    assert_eq!(
        end(&db, &worker("bob"), 1, TeamTaskState::Completed).await?.unwrap(),
        [],
        "nobody is told of one that somebody has"
    );
    let lease = get(&db, 2).await?.lease.unwrap();
    assert_eq!((lease.owner.as_str(), lease.fencing_token), ("ann", fence));
    end(&db, &worker("ann"), 2, TeamTaskState::Completed).await?.unwrap();
    Ok(())
}
