//! Turns that end in an unusual way: stopped from elsewhere, left behind by `/new`, handed to their caller.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::job::JobState;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_engine::Error;
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_store::jobs;
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{glance, worker};

async fn moment() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn queued_message_is_answered_in_new_conversation() {
    let gate = Arc::new(Semaphore::new(0));
    let model = worker(1, &gate);
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let old = world.send_text("me", "work").await.unwrap();
    moment().await;
    let waiting = world.send_text("me", "hello").await.unwrap();
    assert!(waiting.waiting);
    world.engine.renew_session(&World::session_key("me")).await.unwrap();
    let answer = world.wait_answer(&waiting).await;
    assert_eq!((answer.state, answer.text.as_str()), (JobState::Done, "reply to hello"));
    assert_eq!(world.wait_answer(&old).await.state, JobState::Cancelled);
    assert_eq!(model.prompts().last().unwrap().messages.len(), 1, "nothing of the old conversation is shown");
    assert_eq!(glance(&world.transcript("me").await), ["user hello", "assistant reply to hello"]);
}

#[tokio::test(start_paused = true)]
async fn stop_from_other_node_takes_effect_at_next_step() {
    let gate = Arc::new(Semaphore::new(0));
    let world = World::with_provider(worker(3, &gate)).await;
    let accepted = world.send_text("me", "work").await.unwrap();
    moment().await;
    // As another node on the same database does it: only the row says so.
    world.engine.db().write(|tx| jobs::request_stop(tx, &World::session_key("me"))).await.unwrap();
    gate.add_permits(1);
    moment().await;
    assert_eq!(world.wait_answer(&accepted).await.state, JobState::Cancelled);
    let shown = glance(&world.transcript("me").await);
    let closed = "result Not run: the turn ended first.";
    assert_eq!(shown, ["user work", "call look", closed, "assistant Stopped."]);
}

#[tokio::test(start_paused = true)]
async fn stopped_turn_calls_no_model_after_takeover() {
    let gate = Arc::new(Semaphore::new(0));
    let model = worker(1, &gate);
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let accepted = world.send_text("me", "work").await.unwrap();
    moment().await;
    let ground = world.kill().await;
    ground.db.write(|tx| jobs::request_stop(tx, &World::session_key("me"))).await.unwrap();
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert_eq!(world.wait_answer(&accepted).await.state, JobState::Cancelled);
    assert_eq!(model.prompts().len(), 1);
}

fn with_own_tool(text: &str) -> IngressMessage {
    let tools = json!([{ "name": "theirs", "parameters": { "type": "object" } }]);
    IngressMessage { meta: Some(json!({ "client_tools": tools })), ..World::inbound("me", text) }
}

#[tokio::test(start_paused = true)]
async fn crash_before_client_tool_calls_return_loses_none() {
    let calls =
        || vec![ScriptStep::Call("theirs".into(), json!({})), ScriptStep::Call("look".into(), json!({}))];
    let model = ScriptedProvider::new(move |_| calls());
    let ground: DurableWorld = World::with_provider(Arc::clone(&model) as _).await.kill().await;
    let faults = KillPointFaults::at_point(KillPoint::StepStored, 1);
    let world = ground.start_engine(Arc::clone(&faults));
    let accepted = world.engine.accept_message(with_own_tool("go")).await.unwrap();
    faults.wait_killed().await;
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    let answer = world.wait_answer(&accepted).await;
    let names: Vec<_> = answer.calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!((answer.state, names), (JobState::Done, vec!["theirs", "look"]));
    assert_eq!(model.prompts().len(), 1, "the stored step is used, the model is not asked again");
    let shown = glance(&world.transcript("me").await);
    assert_eq!(shown[..3], ["user go", "call theirs", "call look"]);
    assert!(shown[3].starts_with("result Not run: the caller's own tools run first"), "{shown:?}");
    assert_eq!(shown.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn waiter_in_deleted_session_gets_error() {
    let world = World::new().await;
    let ground = world.kill().await;
    let mut settings = ground.settings.clone();
    settings.slots.values_mut().for_each(|slots| *slots = 0);
    let world = Arc::new(DurableWorld { settings, ..ground }.start_engine(KillPointFaults::no_kill()));
    let inbound = IngressMessage { platform_id: Some("p1".into()), ..World::inbound("me", "hi") };
    let accepted = world.engine.accept_message(inbound.clone()).await.unwrap();
    let waiter = tokio::spawn({
        let (world, accepted) = (Arc::clone(&world), accepted.clone());
        async move {
            world
                .engine
                .wait_for_answer(&accepted.session_key, &accepted.turn_id, Duration::from_secs(5))
                .await
        }
    });
    moment().await;
    world.engine.delete_session(&World::session_key("me")).await.unwrap();
    assert!(matches!(waiter.await.unwrap(), Err(Error::UnknownTurn(_))));
    let again = world.engine.accept_message(inbound).await;
    assert!(matches!(again, Err(Error::Deleted)), "a redelivery does not bring it back: {again:?}");
}

/// A turn that works, and one that waits behind it for a slot nobody gives it.
async fn start_running_and_queued_turns(gate: &Arc<Semaphore>) -> World {
    let ground = World::with_provider(worker(2, gate)).await.kill().await;
    let mut settings = ground.settings.clone();
    settings.slots.values_mut().for_each(|slots| *slots = 1);
    let world = DurableWorld { settings, ..ground }.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "work").await.unwrap();
    moment().await;
    // Another session takes the only slot as soon as it is free.
    world.send_text("other", "work").await.unwrap();
    world.send_text("me", "hello").await.unwrap();
    gate.add_permits(1);
    tokio::time::sleep(Duration::from_millis(20)).await;
    world
}

#[tokio::test(start_paused = true)]
async fn stopped_queued_message_stays_after_tool_result() {
    let gate = Arc::new(Semaphore::new(0));
    let world = start_running_and_queued_turns(&gate).await;
    world.engine.stop_session(&World::session_key("me")).await.unwrap();
    let shown = glance(&world.transcript("me").await);
    assert_eq!(shown[..3], ["user work", "call look", "result look of c1 done"], "{shown:?}");
    assert_eq!(shown.last().unwrap(), "user hello");
    gate.add_permits(5);
    world.wait_settled().await;
}

#[tokio::test(start_paused = true)]
async fn new_conversation_drops_interrupted_task() {
    let gate = Arc::new(Semaphore::new(0));
    let world = start_running_and_queued_turns(&gate).await;
    world.engine.renew_session(&World::session_key("me")).await.unwrap();
    gate.add_permits(5);
    world.wait_settled().await;
    assert_eq!(glance(&world.transcript("me").await), ["user hello", "assistant reply to hello"]);
}

#[tokio::test(start_paused = true)]
async fn unreadable_session_fails_its_turn_and_blocks_no_other() {
    let world = World::with_provider(ScriptedProvider::echo()).await;
    let first = world.send_text("me", "one").await.unwrap();
    world.wait_answer(&first).await;
    let damage = |tx: &mut polyclaw_store::Tx<'_>| tx.execute("UPDATE messages SET parts_json = '{'", &[]);
    world.engine.db().write(damage).await.unwrap();
    let damaged = world.send_text("me", "two").await.unwrap();
    let other = world.send_text("you", "hello").await.unwrap();
    let answer = world.wait_answer(&damaged).await;
    assert_eq!((answer.state, answer.error_code.as_deref()), (JobState::Failed, Some("store_unreadable")));
    assert_eq!(world.wait_answer(&other).await.state, JobState::Done);
    world.engine.renew_session(&World::session_key("me")).await.unwrap();
    let restarted = world.send_text("me", "three").await.unwrap();
    assert_eq!(world.wait_answer(&restarted).await.state, JobState::Done, "a new conversation works");
}
