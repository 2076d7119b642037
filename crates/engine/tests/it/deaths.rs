//! Processes that die under their turns. A turn that makes progress is never given up, a machine that dies often costs
//! nobody an answer, and a turn that kills its process each time is given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polyclaw_domain::job::JobState;
use polyclaw_engine::ingress::AcceptedMessage;
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider, last_user_text};
use tokio::sync::Semaphore;

use crate::worker;

/// Answers when the gate is opened, and counts how often it was asked.
fn slow(gate: &Arc<Semaphore>, asked: &Arc<AtomicUsize>) -> Arc<ScriptedProvider> {
    let (gate, asked) = (Arc::clone(gate), Arc::clone(asked));
    ScriptedProvider::new(move |prompt| {
        asked.fetch_add(1, Ordering::SeqCst);
        vec![
            ScriptStep::Gate(Arc::clone(&gate)),
            ScriptStep::Say(format!("reply to {}", last_user_text(prompt))),
        ]
    })
}

/// Waits for something that comes by itself; time is virtual.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..10_000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to this: {what}");
}

async fn wait_for_more_model_calls(asked: &AtomicUsize, before: usize) {
    until("the model is asked", async || asked.load(Ordering::SeqCst) > before).await;
}

async fn killed(world: World) -> World {
    world.kill().await.start_engine(KillPointFaults::no_kill())
}

#[tokio::test(start_paused = true)]
async fn graceful_restarts_do_not_count_as_attempts() {
    let (gate, asked) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut world = World::with_provider(slow(&gate, &asked)).await;
    let accepted = world.send_text("me", "hi").await.unwrap();
    for restart in 0..6 {
        wait_for_more_model_calls(&asked, restart).await;
        world.engine.start_draining();
        tokio::time::sleep(Duration::from_secs(30)).await;
        world = killed(world).await;
    }
    wait_for_more_model_calls(&asked, 6).await;
    gate.add_permits(1);
    let answer = world.wait_answer(&accepted).await;
    assert_eq!((answer.state, answer.text.as_str()), (JobState::Done, "reply to hi"));
}

#[tokio::test(start_paused = true)]
async fn returned_claims_resume_without_counting_attempts() {
    let (gate, asked) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut world = World::with_provider(slow(&gate, &asked)).await;
    let accepted = world.send_text("me", "hi").await.unwrap();
    for restart in 0..6 {
        wait_for_more_model_calls(&asked, restart).await;
        world.engine.hand_back_all_turns().await;
        world = killed(world).await;
    }
    wait_for_more_model_calls(&asked, 6).await;
    gate.add_permits(1);
    assert_eq!(world.wait_answer(&accepted).await.state, JobState::Done);
}

#[tokio::test(start_paused = true)]
async fn turn_that_progresses_between_crashes_finishes() {
    let gate = Arc::new(Semaphore::new(0));
    // One round more than lives: the last one ends it.
    let mut world = World::with_provider(worker(9, &gate)).await;
    let accepted = world.send_text("me", "work").await.unwrap();
    for life in 0..8 {
        let before = world.transcript("me").await.len();
        gate.add_permits(1);
        until("a step is stored", async || world.transcript("me").await.len() > before).await;
        assert_eq!(world.turn_state(&accepted.turn_id).await, JobState::Running, "life {life}");
        world = killed(world).await;
    }
    gate.add_permits(9);
    let answer = world.wait_answer(&accepted).await;
    assert_eq!((answer.state, answer.text.as_str()), (JobState::Done, "the work is done"));
}

#[tokio::test(start_paused = true)]
async fn turn_without_progress_fails_after_three_crashes() {
    let (gate, asked) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut world = World::with_provider(slow(&gate, &asked)).await;
    let accepted = world.send_text("me", "hi").await.unwrap();
    for death in 0..3 {
        wait_for_more_model_calls(&asked, death).await;
        world = killed(world).await;
    }
    let answer = world.wait_answer(&accepted).await;
    assert_eq!(answer.error_code.as_deref(), Some("too_many_attempts"));
    assert_eq!(
        answer.text,
        "The turn was given up after 3 attempts that were all interrupted before a step completed."
    );
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    gate.add_permits(1);
    assert_eq!(world.send_and_wait("again").await.state, JobState::Done, "the session goes on");
}

async fn dozen(world: &World) -> Vec<AcceptedMessage> {
    let mut accepted = Vec::new();
    for n in 0..12 {
        accepted.push(world.send_text(&format!("p{n}"), &format!("hi {n}")).await.unwrap());
    }
    accepted
}

#[tokio::test(start_paused = true)]
async fn six_crashes_lose_no_answer_of_twelve_turns() {
    let (gate, asked) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut ground: DurableWorld = World::with_provider(slow(&gate, &asked)).await.kill().await;
    ground.settings.slots.values_mut().for_each(|slots| *slots = 16);
    let mut world = ground.start_engine(KillPointFaults::no_kill());
    let accepted = dozen(&world).await;
    for _ in 0..6 {
        let before = asked.load(Ordering::SeqCst);
        wait_for_more_model_calls(&asked, before.saturating_sub(1)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        world = killed(world).await;
    }
    gate.add_permits(100);
    for (n, one) in accepted.iter().enumerate() {
        let answer = world.wait_answer(one).await;
        assert_eq!((answer.state, answer.text), (JobState::Done, format!("reply to hi {n}")));
    }
}

#[tokio::test(start_paused = true)]
async fn poison_turn_fails_and_other_turns_complete() {
    let poisoned = Arc::new(AtomicUsize::new(0));
    let poison = Arc::clone(&poisoned);
    let model = ScriptedProvider::new(move |prompt| match last_user_text(prompt).contains("hi 5") {
        true => {
            poison.fetch_add(1, Ordering::SeqCst);
            vec![ScriptStep::Hang]
        }
        false => vec![ScriptStep::Pause(Duration::from_secs(5)), ScriptStep::Say("fine".into())],
    });
    let mut world = World::with_provider(model).await;
    let accepted = dozen(&world).await;
    let (mut deaths, mut before) = (0, 0);
    loop {
        let poison_runs = async {
            until("the poison runs", async || poisoned.load(Ordering::SeqCst) > before).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        tokio::select! {
            () = poison_runs => {}
            answer = world.wait_answer(&accepted[5]) => {
                assert_eq!(answer.error_code.as_deref(), Some("too_many_attempts"));
                break;
            }
        }
        deaths += 1;
        assert!(deaths < 20, "it is never found");
        before = poisoned.load(Ordering::SeqCst);
        world = killed(world).await;
    }
    for (n, one) in accepted.iter().enumerate().filter(|(n, _)| *n != 5) {
        let answer = world.wait_answer(one).await;
        assert_eq!((answer.state, answer.text.as_str()), (JobState::Done, "fine"), "{n}");
    }
}
