use std::sync::Arc;

use polyclaw_domain::job::JobState;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{Faulty, Line, Scripted};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{glance, worker};

fn closed() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

#[tokio::test(start_paused = true)]
async fn a_second_message_is_answered_first_and_the_task_goes_on() {
    let gate = closed();
    let world = World::with(worker(3, &gate)).await;
    let task = world.sends("me", "work").await.unwrap();
    gate.add_permits(1);
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let second = world.sends("me", "how are you?").await.unwrap();
    assert!(second.waiting);
    gate.add_permits(100);
    assert_eq!(world.answer(&second).await.text, "reply to how are you?");
    assert_eq!(world.answer(&task).await.text, "the work is done");
    assert_eq!(world.state(&task.turn_id).await, JobState::Steered);
    world.settled().await;
    let transcript = glance(&world.transcript("me").await);
    assert_eq!(
        transcript,
        [
            "user work",
            "call look",
            "result look of c1 done",
            "user how are you?",
            "assistant reply to how are you?",
            "user [Backlog]",
            "call look",
            "result look of c1 done",
            "call look",
            "result look of c1-2 done",
            "assistant the work is done",
        ]
    );
    let visible: Vec<String> = world.ground.outlet.visible().into_iter().map(|(_, text)| text).collect();
    assert_eq!(visible, ["reply to how are you?", "the work is done"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_has_to_wait_is_told_once_where_nothing_else_shows_it() {
    let gate = closed();
    let world = World::with(worker(2, &gate)).await;
    world.ground.outlet.mute();
    let task = world.sends("me", "work").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    for text in ["one", "one", "two"] {
        let mut inbound = World::inbound("me", text);
        inbound.platform_id = Some(text.to_owned());
        world.engine.accept_message(inbound).await.unwrap();
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let visible = || world.ground.outlet.visible().into_iter().map(|(_, text)| text).collect::<Vec<String>>();
    assert_eq!(visible(), ["I am at something else; I will come to this next."]);
    gate.add_permits(100);
    assert_eq!(world.answer(&task).await.text, "the work is done");
    world.settled().await;
    assert_eq!(visible()[1..], ["reply to two", "the work is done"], "and what was said is not a message");
    assert_eq!(
        world.transcript("me").await.iter().filter(|line| line.text.contains("at something")).count(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn five_messages_one_after_the_other_are_answered_and_then_the_task() {
    for steers in [1, 2, 5] {
        let gate = closed();
        let world = World::with(worker(steers + 2, &gate)).await;
        let task = world.sends("me", "work").await.unwrap();
        for n in 0..steers {
            gate.add_permits(1);
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            let steer = world.sends("me", &format!("question {n}")).await.unwrap();
            assert_eq!(world.answer(&steer).await.text, format!("reply to question {n}"));
        }
        gate.add_permits(100);
        assert_eq!(world.answer(&task).await.text, "the work is done", "{steers} steers");
        world.settled().await;
        assert_eq!(world.ground.outlet.visible().len(), steers + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn messages_that_wait_together_run_as_one_turn_in_order() {
    let gate = closed();
    let world = World::with(worker(2, &gate)).await;
    let task = world.sends("me", "work").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let first = world.sends("me", "one").await.unwrap();
    let second = world.sends("me", "two").await.unwrap();
    assert_eq!(first.turn_id, second.turn_id);
    gate.add_permits(100);
    assert_eq!(world.answer(&second).await.text, "reply to two");
    assert_eq!(world.answer(&task).await.text, "the work is done");
    let transcript = glance(&world.transcript("me").await);
    assert_eq!(&transcript[3..6], ["user one", "user two", "assistant reply to two"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_during_the_final_model_call_runs_right_after() {
    let gate = closed();
    let held = Arc::clone(&gate);
    let model = Scripted::new(move |prompt| {
        let said = polyclaw_testkit::last_user(prompt).to_owned();
        vec![Line::Say("re: ".into()), Line::Gate(Arc::clone(&held)), Line::Say(said)]
    });
    let world = World::with(model).await;
    let first = world.sends("me", "one").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let second = world.sends("me", "two").await.unwrap();
    gate.add_permits(2);
    assert_eq!(world.answer(&first).await.text, "re: one");
    assert_eq!(world.answer(&second).await.text, "re: two");
    assert_eq!(world.state(&first.turn_id).await, JobState::Done, "nothing to steer: it was finishing");
}

#[tokio::test(start_paused = true)]
async fn calls_that_had_not_started_are_skipped_and_stay_paired() {
    let gate = closed();
    let held = Arc::clone(&gate);
    let model = Scripted::new(move |prompt| match polyclaw_testkit::last_user(prompt) {
        text if text.contains("both") && !text.contains("[Backlog]") => vec![
            Line::Gate(Arc::clone(&held)),
            Line::Call("look".into(), json!({ "n": 1 })),
            Line::Call("pay".into(), json!({ "n": 2 })),
        ],
        text => vec![Line::Say(format!("ok {}", text.len()))],
    });
    let world = World::with(model).await;
    let task = world.sends("me", "do both").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    world.sends("me", "wait").await.unwrap();
    gate.add_permits(1);
    world.answer(&task).await;
    let transcript = glance(&world.transcript("me").await);
    assert_eq!(transcript[4], "result Skipped: a newer message of the user goes first.");
    assert!(world.ground.tools.runs().keys().all(|(_, _, tool)| tool == "look"), "pay never ran");
}

#[tokio::test(start_paused = true)]
async fn a_restart_between_steering_and_resuming_loses_nothing() {
    for point in [KillPoint::Steered, KillPoint::FinishCommitted, KillPoint::ResultStored] {
        let gate = closed();
        let ground = World::with(worker(3, &gate)).await.killed().await;
        let faults = Faulty::at(point, 1);
        let world = ground.wake(Arc::clone(&faults));
        let task = world.sends("me", "work").await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        let second = world.sends("me", "hello").await.unwrap();
        gate.add_permits(100);
        assert_eq!(faults.death().await, point);
        let world = world.killed().await.wake(Faulty::never());
        assert_eq!(world.answer(&second).await.text, "reply to hello", "{point:?}");
        assert_eq!(world.answer(&task).await.text, "the work is done", "{point:?}");
        world.settled().await;
        assert_eq!(world.ground.outlet.visible().len(), 2, "{point:?}");
    }
}
