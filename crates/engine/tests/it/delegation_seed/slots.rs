use std::sync::{Arc, Mutex};
use std::time::Duration;

use polyclaw_domain::provider::Prompt;
use polyclaw_domain::run::RunStatus;
use polyclaw_store::jobs;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, ScriptStep};
use serde_json::{Value, json};

use super::{answers, give, ground, is_target};
use crate::families::results;

#[tokio::test(start_paused = true)]
async fn d_10_delegates_wait_for_free_slot_and_complete() {
    let author = |prompt: &Prompt| match (is_target(prompt), results(prompt)) {
        (true, _) => vec![ScriptStep::Pause(Duration::from_secs(5)), ScriptStep::Say("done".into())],
        (false, 0) => (0..2).map(|_| give("expert", "do part", &[("mode", json!("async"))])).collect(),
        (false, _) => vec![ScriptStep::Say("begun".into())],
    };
    let mut ground = ground(author).await;
    ground.settings.slots.values_mut().for_each(|slots| *slots = 1);
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("ask").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    let runs = world.engine.list_runs(&World::session_key("me"), 9).await.unwrap();
    assert!(runs.len() == 2 && runs.iter().all(|run| run.status == RunStatus::Ok), "{runs:#?}");
    let mut spans = Vec::new();
    for run in runs {
        let read = move |tx: &mut polyclaw_store::Tx<'_>| jobs::list(tx, Some(&run.child), None, 9);
        let turns = world.engine.db().read(read).await.unwrap();
        spans.extend(turns.into_iter().map(|turn| (turn.started_at.unwrap(), turn.ended_at.unwrap())));
    }
    spans.sort_unstable();
    assert!(spans.len() == 2 && spans[0].1 <= spans[1].0, "there is one slot: {spans:?}");
}

/// The only slot is taken for longer than the caller waits.
#[tokio::test(start_paused = true)]
async fn d_10_delegate_without_slot_times_out_and_never_starts() {
    let started = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&started);
    let author = move |prompt: &Prompt| match (is_target(prompt), results(prompt)) {
        (true, _) => {
            *counted.lock().unwrap() += 1;
            vec![ScriptStep::Pause(Duration::from_secs(60)), ScriptStep::Say("done".into())]
        }
        (false, 0) => vec![give("expert", "do part", &[("mode", json!("async"))])],
        (false, 1) => vec![give("expert", "do part", &[("timeout_ms", json!(2_000))])],
        (false, _) => vec![ScriptStep::Say(answers(prompt)[1].to_string())],
    };
    let mut ground = ground(author).await;
    ground.settings.slots.values_mut().for_each(|slots| *slots = 1);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let answer: Value = serde_json::from_str(&world.send_and_wait("ask").await.text).unwrap();
    assert_eq!((&answer["status"], &answer["code"]), (&json!("timeout"), &json!("timeout")), "{answer}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.wait_settled().await;
    assert_eq!(*started.lock().unwrap(), 1, "what nobody waits for is not begun when there is room");
    let runs = world.engine.list_runs(&World::session_key("me"), 9).await.unwrap();
    let mut ends: Vec<RunStatus> = runs.iter().map(|run| run.status).collect();
    ends.sort_by_key(|status| *status == RunStatus::Timeout);
    assert_eq!(ends, [RunStatus::Ok, RunStatus::Timeout]);
}
