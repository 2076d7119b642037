use std::sync::Arc;

use polyclaw_domain::job::JobState;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{glance, worker};

fn closed() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

#[tokio::test(start_paused = true)]
async fn second_message_is_answered_first_and_task_resumes() {
    let gate = closed();
    let world = World::with_provider(worker(3, &gate)).await;
    let task = world.send_text("me", "work").await.unwrap();
    gate.add_permits(1);
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let second = world.send_text("me", "how are you?").await.unwrap();
    assert!(second.waiting);
    gate.add_permits(100);
    assert_eq!(world.wait_answer(&second).await.text, "reply to how are you?");
    assert_eq!(world.wait_answer(&task).await.text, "the work is done");
    assert_eq!(world.turn_state(&task.turn_id).await, JobState::Steered);
    world.wait_settled().await;
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
    let visible: Vec<String> =
        world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect();
    assert_eq!(visible, ["reply to how are you?", "the work is done"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_sender_gets_one_notice_if_receipts_are_hidden() {
    let gate = closed();
    let world = World::with_provider(worker(2, &gate)).await;
    world.ground.fake_channel.hide_receipts();
    let task = world.send_text("me", "work").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    for text in ["one", "one", "two"] {
        let mut inbound = World::inbound("me", text);
        inbound.platform_id = Some(text.to_owned());
        world.engine.accept_message(inbound).await.unwrap();
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let visible = || {
        world
            .ground
            .fake_channel
            .visible_messages()
            .into_iter()
            .map(|(_, text)| text)
            .collect::<Vec<String>>()
    };
    assert_eq!(visible(), ["Busy with another task. Your message is answered next."]);
    gate.add_permits(100);
    assert_eq!(world.wait_answer(&task).await.text, "the work is done");
    world.wait_settled().await;
    assert_eq!(visible()[1..], ["reply to two", "the work is done"], "and what was said is not a message");
    assert_eq!(
        world.transcript("me").await.iter().filter(|line| line.text.contains("at something")).count(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn task_resumes_after_repeated_steering() {
    for steers in [1, 2, 5] {
        let gate = closed();
        let world = World::with_provider(worker(steers + 2, &gate)).await;
        let task = world.send_text("me", "work").await.unwrap();
        for n in 0..steers {
            gate.add_permits(1);
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            let steer = world.send_text("me", &format!("question {n}")).await.unwrap();
            assert_eq!(world.wait_answer(&steer).await.text, format!("reply to question {n}"));
        }
        gate.add_permits(100);
        assert_eq!(world.wait_answer(&task).await.text, "the work is done", "{steers} steers");
        world.wait_settled().await;
        assert_eq!(world.ground.fake_channel.visible_messages().len(), steers + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn queued_messages_run_as_one_turn_in_order() {
    let gate = closed();
    let world = World::with_provider(worker(2, &gate)).await;
    let task = world.send_text("me", "work").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let first = world.send_text("me", "one").await.unwrap();
    let second = world.send_text("me", "two").await.unwrap();
    assert_eq!(first.turn_id, second.turn_id);
    gate.add_permits(100);
    assert_eq!(world.wait_answer(&second).await.text, "reply to two");
    assert_eq!(world.wait_answer(&task).await.text, "the work is done");
    let transcript = glance(&world.transcript("me").await);
    assert_eq!(&transcript[3..6], ["user one", "user two", "assistant reply to two"]);
}

#[tokio::test(start_paused = true)]
async fn message_during_final_model_call_runs_next() {
    let gate = closed();
    let held = Arc::clone(&gate);
    let model = ScriptedProvider::new(move |prompt| {
        let text = polyclaw_testkit::last_user_text(prompt).to_owned();
        vec![ScriptStep::Say("re: ".into()), ScriptStep::Gate(Arc::clone(&held)), ScriptStep::Say(text)]
    });
    let world = World::with_provider(model).await;
    let first = world.send_text("me", "one").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let second = world.send_text("me", "two").await.unwrap();
    gate.add_permits(2);
    assert_eq!(world.wait_answer(&first).await.text, "re: one");
    assert_eq!(world.wait_answer(&second).await.text, "re: two");
    assert_eq!(world.turn_state(&first.turn_id).await, JobState::Done, "nothing to steer: it was finishing");
}

#[tokio::test(start_paused = true)]
async fn unstarted_calls_are_skipped_and_stay_paired() {
    let gate = closed();
    let held = Arc::clone(&gate);
    let model = ScriptedProvider::new(move |prompt| match polyclaw_testkit::last_user_text(prompt) {
        text if text.contains("both") && !text.contains("[Backlog]") => vec![
            ScriptStep::Gate(Arc::clone(&held)),
            ScriptStep::Call("look".into(), json!({ "n": 1 })),
            ScriptStep::Call("pay".into(), json!({ "n": 2 })),
        ],
        text => vec![ScriptStep::Say(format!("ok {}", text.len()))],
    });
    let world = World::with_provider(model).await;
    let task = world.send_text("me", "do both").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    world.send_text("me", "wait").await.unwrap();
    gate.add_permits(1);
    world.wait_answer(&task).await;
    let transcript = glance(&world.transcript("me").await);
    assert_eq!(transcript[4], "result Skipped: a newer message of the user takes precedence.");
    assert!(world.ground.tools.run_counts().keys().all(|(_, _, tool)| tool == "look"), "pay never ran");
}

#[tokio::test(start_paused = true)]
async fn restart_between_steering_and_resuming_loses_nothing() {
    for point in [KillPoint::Steered, KillPoint::FinishCommitted, KillPoint::ResultStored] {
        let gate = closed();
        let ground = World::with_provider(worker(3, &gate)).await.kill().await;
        let faults = KillPointFaults::at_point(point, 1);
        let world = ground.start_engine(Arc::clone(&faults));
        let task = world.send_text("me", "work").await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        let second = world.send_text("me", "hello").await.unwrap();
        gate.add_permits(100);
        assert_eq!(faults.wait_killed().await, point);
        let world = world.kill().await.start_engine(KillPointFaults::no_kill());
        assert_eq!(world.wait_answer(&second).await.text, "reply to hello", "{point:?}");
        assert_eq!(world.wait_answer(&task).await.text, "the work is done", "{point:?}");
        world.wait_settled().await;
        assert_eq!(world.ground.fake_channel.visible_messages().len(), 2, "{point:?}");
    }
}
