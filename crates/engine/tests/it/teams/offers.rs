//! A free task is offered to a member that could take it, whenever it becomes free.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::task::{TaskNo, TeamTaskState};
use polyclaw_engine::team::{NewMember, TaskFilter, TeamTaskUpdate};
use polyclaw_testkit::ScriptStep;
use serde_json::json;
use tokio::sync::Semaphore;

use super::fixture::{Hall, TEAM, actor, call, lead, say};

on_both!(
    task_created_during_last_model_call_is_offered,
    task_created_while_turn_ends_is_claimed,
    unoffered_task_is_offered_after_restart,
    unclaimed_task_is_offered_to_member_only_once,
);

async fn state(hall: &Hall, no: TaskNo) -> TeamTaskState {
    let all = TaskFilter { with_ended: true, ..TaskFilter::default() };
    let tasks = hall.world.engine.list_tasks(&lead(), TEAM, all).await.unwrap();
    tasks.into_iter().find(|task| task.no == no).unwrap().state
}

/// Looks for a task in vain, and is in its last model call until the gate opens.
async fn join_and_find_no_task(hall: &Hall) -> Arc<Semaphore> {
    let gate = Arc::new(Semaphore::new(0));
    let last = vec![ScriptStep::Gate(Arc::clone(&gate)), ScriptStep::Say("nothing to do".to_owned())];
    hall.script("ann", vec![call("TaskClaim", json!({ "team_name": TEAM })), last]);
    let task = Some("Take tasks until none is left.".to_owned());
    hall.try_join(NewMember { name: "ann".into(), task, ..NewMember::default() }).await.unwrap();
    hall.until("it looks in vain", async || hall.times("ann", "no_task_free") > 0).await;
    gate
}

fn script_claim_and_complete(hall: &Hall) {
    let done = |no: i64| call("TaskComplete", json!({ "team_name": TEAM, "task_id": no, "summary": "ok" }));
    hall.script("ann", vec![call("TaskClaim", json!({ "team_name": TEAM })), done(1), say("done")]);
}

async fn task_created_during_last_model_call_is_offered(hall: Hall) {
    let hall = hall.with_team().await;
    let gate = join_and_find_no_task(&hall).await;
    script_claim_and_complete(&hall);
    let no = hall.task("Header", &[]).await;
    gate.add_permits(1);
    hall.until("it is done", async || state(&hall, no).await == TeamTaskState::Completed).await;
    hall.rest().await;
}

async fn task_created_while_turn_ends_is_claimed(hall: Hall) {
    let hall = hall.with_team().await;
    let mut gate = join_and_find_no_task(&hall).await;
    for n in 0..25_i64 {
        let (claim, end) = (
            call("TaskClaim", json!({ "team_name": TEAM })),
            call("TaskComplete", json!({ "team_name": TEAM, "task_id": n + 1, "summary": "ok" })),
        );
        let empty = call("TaskClaim", json!({ "team_name": TEAM }));
        let next = Arc::new(Semaphore::new(0));
        let last = vec![ScriptStep::Gate(Arc::clone(&next)), ScriptStep::Say("nothing to do".to_owned())];
        hall.script("ann", vec![claim, end, empty, last]);
        gate.add_permits(1);
        for _ in 0..n * 3 {
            tokio::task::yield_now().await;
        }
        let no = hall.task(&format!("part {n}"), &[]).await;
        hall.until("it is done", async || state(&hall, no).await == TeamTaskState::Completed).await;
        hall.until("it is in its last call", async || hall.left("ann") == 0).await;
        gate = next;
    }
    gate.add_permits(1);
    hall.rest().await;
}

async fn unoffered_task_is_offered_after_restart(hall: Hall) {
    let hall = hall.with_team().await;
    let _gate = join_and_find_no_task(&hall).await;
    let no = hall.task("Header", &[]).await;
    script_claim_and_complete(&hall);
    let hall = hall.reconfigured(|_| {}).await;
    // The turn that was cut off is made again first.
    hall.script("ann", vec![]);
    hall.until("it is done", async || state(&hall, no).await == TeamTaskState::Completed).await;
    hall.rest().await;
}

async fn unclaimed_task_is_offered_to_member_only_once(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = actor(&hall.join("ann").await.session_key);
    let no = hall.task("Header", &[]).await;
    hall.rest().await;
    let asked = hall.shown("ann").len();
    assert_eq!(asked, 1, "it was asked once, and did nothing");
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    hall.rest().await;
    assert_eq!(hall.shown("ann").len(), asked);
    hall.world.engine.claim_task(&ann, TEAM, Some(no)).await.unwrap();
    let back = TeamTaskUpdate { state: Some(TeamTaskState::Pending), ..TeamTaskUpdate::default() };
    hall.world.engine.update_task(&ann, TEAM, no, back).await.unwrap();
    hall.rest().await;
    assert_eq!(hall.shown("ann").len(), asked, "who gave it back is not asked either");
}
