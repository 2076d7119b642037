use std::sync::Arc;

use polyclaw_domain::job::JobState;
use polyclaw_domain::provider::{ModelRef, Prompt, PromptMessage};
use polyclaw_engine::Error;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{ScriptStep, ScriptedProvider, last_user_text};
use tokio::sync::Semaphore;

use crate::{glance, worker};

#[tokio::test(start_paused = true)]
async fn stop_cancels_turn_and_next_message_is_answered() {
    let gate = Arc::new(Semaphore::new(0));
    let world = World::with_provider(worker(3, &gate)).await;
    let task = world.send_text("me", "work").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let stopped = world.engine.stop_session(&World::session_key("me")).await.unwrap();
    assert_eq!(stopped.turn.as_ref(), Some(&task.turn_id));
    let answer = world.wait_answer(&task).await;
    assert_eq!((answer.state, answer.text.as_str()), (JobState::Cancelled, "Stopped."));
    assert_eq!(world.send_and_wait("hello").await.text, "reply to hello");
}

#[tokio::test(start_paused = true)]
async fn partial_text_of_stopped_turn_is_kept_for_model() {
    let author = |prompt: &Prompt| match last_user_text(prompt) {
        "count" => vec![ScriptStep::Say("one, two, thr".to_owned()), ScriptStep::Hang],
        _ => vec![ScriptStep::Say("understood".to_owned())],
    };
    let model = ScriptedProvider::new(author);
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let task = world.send_text("me", "count").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    world.engine.stop_session(&World::session_key("me")).await.unwrap();
    assert_eq!(world.wait_answer(&task).await.text, "Stopped.");
    let stored = world.transcript("me").await;
    assert_eq!(stored.last().unwrap().meta.as_ref().unwrap()["said"], "one, two, thr");
    world.send_and_wait("go on").await;
    let prompt = model.prompts().pop().unwrap();
    let message =
        PromptMessage::Assistant { text: "one, two, thr\n[interrupted: stopped]".into(), calls: vec![] };
    assert!(prompt.messages.contains(&message), "{:?}", prompt.messages);
}

#[tokio::test(start_paused = true)]
async fn stop_between_steps_stores_no_text_twice() {
    let gate = Arc::new(Semaphore::new(0));
    let world = World::with_provider(worker(3, &gate)).await;
    let task = world.send_text("me", "work").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    world.engine.stop_session(&World::session_key("me")).await.unwrap();
    world.wait_answer(&task).await;
    let stored = world.transcript("me").await;
    assert!(stored.last().unwrap().meta.as_ref().unwrap()["said"].is_null(), "its step has it");
}

#[tokio::test(start_paused = true)]
async fn stop_drops_interrupted_tasks() {
    let gate = Arc::new(Semaphore::new(0));
    let world = World::with_provider(worker(9, &gate)).await;
    let task = world.send_text("me", "work").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let second = world.send_text("me", "work more").await.unwrap();
    gate.add_permits(1);
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let stopped = world.engine.stop_session(&World::session_key("me")).await.unwrap();
    assert_eq!((stopped.turn, stopped.interrupted_tasks), (Some(second.turn_id.clone()), 1));
    assert_eq!(world.wait_answer(&second).await.state, JobState::Cancelled);
    assert_eq!(world.wait_answer(&task).await.state, JobState::Cancelled);
    world.wait_settled().await;
}

#[tokio::test(start_paused = true)]
async fn renewed_session_hides_old_history_from_model() {
    let model = ScriptedProvider::echo();
    let world = World::with_provider(Arc::clone(&model) as _).await;
    world.send_and_wait("one").await;
    let old = world.engine.load_session(&World::session_key("me")).await.unwrap();
    let renewed = world.engine.renew_session(&World::session_key("me")).await.unwrap();
    assert_ne!(old.id, renewed.id);
    world.send_and_wait("two").await;
    assert_eq!(model.prompts().last().unwrap().messages.len(), 1, "the model sees nothing of before");
    assert_eq!(glance(&world.transcript("me").await), ["user two", "assistant echo: two"]);
}

#[tokio::test(start_paused = true)]
async fn selected_model_is_used_from_next_turn() {
    let world = World::new().await;
    assert_eq!(world.send_and_wait("x").await.model.as_deref(), Some("scripted/model"));
    let picked = ModelRef::parse("other/big").unwrap();
    world.engine.set_session_model(&World::session_key("me"), Some(picked)).await.unwrap();
    assert_eq!(world.send_and_wait("x").await.model.as_deref(), Some("other/big"));
}

#[tokio::test(start_paused = true)]
async fn commands_are_answered_and_never_stored() {
    let world = World::new().await;
    world.send_and_wait("hello").await;
    let key = World::session_key("me");
    for line in
        ["/help", "/status", "/queue", "/queue collect", "/agents", "/models", "/whoami", "/model a/b"]
    {
        let text = world.engine.run_command(&key, line).await.expect(line).expect(line);
        assert!(!text.is_empty(), "{line}");
    }
    let queue = async |line: &str| world.engine.run_command(&key, line).await.unwrap().unwrap();
    let mode = "No turn is running; 0 messages and 0 interrupted tasks are waiting. A message sent during a turn is \
                answered first; then the task continues. The queue mode is steer-backlog.";
    assert_eq!((queue("/queue").await.as_str(), queue("/queue steer-backlog").await.as_str()), (mode, mode));
    for other in ["collect", "steer", "interrupt", "followup"] {
        let refused = format!("'{other}' is not a queue mode. The only mode is steer-backlog.");
        assert_eq!(queue(&format!("/queue {other}")).await, refused);
    }
    assert!(world.engine.run_command(&key, "/agent nobody").await.unwrap().is_err());
    assert!(world.engine.run_command(&key, "hello").await.is_none());
    assert_eq!(world.transcript("me").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn manual_compaction_keeps_last_message() {
    let model = ScriptedProvider::new(|prompt| {
        let text = if prompt.system.starts_with("Summarize") { "the summary" } else { "yes" };
        vec![polyclaw_testkit::ScriptStep::Say(text.into())]
    });
    let world = World::with_provider(Arc::clone(&model) as _).await;
    for _ in 0..3 {
        world.send_and_wait("hello").await;
    }
    world.engine.compact_session(&World::session_key("me")).await.unwrap();
    world.wait_settled().await;
    world.send_and_wait("again").await;
    let shown = model.prompts().last().unwrap().messages.len();
    assert_eq!(shown, 3, "the summary, the last reply and the new message");
}

#[tokio::test(start_paused = true)]
async fn running_session_cannot_be_deleted_or_compacted() {
    let gate = Arc::new(Semaphore::new(0));
    let world = World::with_provider(worker(1, &gate)).await;
    world.send_text("me", "work").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let key = World::session_key("me");
    assert!(matches!(world.engine.delete_session(&key).await, Err(Error::InvalidState(_))));
    assert!(matches!(world.engine.compact_session(&key).await, Err(Error::StateConflict(_))));
    gate.add_permits(5);
    world.wait_settled().await;
    world.engine.delete_session(&key).await.unwrap();
    assert!(matches!(world.engine.load_session(&key).await, Err(Error::UnknownSession(_))));
}

#[tokio::test(start_paused = true)]
async fn message_during_pending_compaction_is_answered() {
    let world = World::new().await;
    world.send_and_wait("one").await;
    let key = World::session_key("me");
    world.engine.compact_session(&key).await.unwrap();
    let accepted = world.send_text("me", "two").await.unwrap();
    assert_eq!(world.wait_answer(&accepted).await.text, "echo: two");
}
