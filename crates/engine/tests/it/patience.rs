//! Models that ask to slow down: they are asked again, within bounds, and whoever waits knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polyclaw_domain::job::JobState;
use polyclaw_domain::provider::{ErrorClass, ProviderError};
use polyclaw_engine::hub::FrameKind;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{Line, Scripted};
use tokio::time::Instant;

fn limited(retry_after_ms: Option<u64>) -> ProviderError {
    let (model, message) = ("scripted/model".into(), "too many requests".into());
    ProviderError { class: ErrorClass::RateLimit, model, message, retry_after_ms }
}

/// Refuses so many times, then answers.
fn busy(times: usize, retry_after_ms: Option<u64>) -> Arc<Scripted> {
    let asked = AtomicUsize::new(0);
    Scripted::new(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        n if n < times => vec![Line::Fail(limited(retry_after_ms))],
        _ => vec![Line::Say("at last".into())],
    })
}

#[tokio::test(start_paused = true)]
async fn a_busy_model_is_waited_for_as_long_as_it_asks_and_people_are_told() {
    let world = World::with(busy(2, Some(20_000))).await;
    let mut settings = world.ground.settings.clone();
    settings.stall_ms = 5_000;
    world.engine.reload(settings);
    let mut watch = world.engine.hub.watch(&World::key("me"));
    let began = Instant::now();
    let answer = world.says("hi").await;
    assert_eq!((answer.state, answer.text.as_str()), (JobState::Done, "at last"));
    let took = began.elapsed().as_secs();
    assert!((40..=51).contains(&took), "{took} s");
    let mut told = Vec::new();
    while let Ok(Some(frame)) = tokio::time::timeout(Duration::from_secs(1), watch.recv()).await {
        if let FrameKind::Notice { text, .. } = &frame.kind {
            told.push(text.clone());
        }
    }
    assert_eq!(told.len(), 2);
    assert!(told[0].starts_with("scripted/model asks to slow down. I ask again in 2"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_model_had_said_before_it_asked_to_slow_down_is_taken_back() {
    let asked = AtomicUsize::new(0);
    let model = Scripted::new(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => vec![Line::Say("half an".into()), Line::Fail(limited(None))],
        _ => vec![Line::Say("a whole answer".into())],
    });
    let world = World::with(model).await;
    let mut watch = world.engine.hub.watch(&World::key("me"));
    assert_eq!(world.says("hi").await.text, "a whole answer");
    let mut shown = String::new();
    while let Ok(Some(frame)) = tokio::time::timeout(Duration::from_secs(1), watch.recv()).await {
        match &frame.kind {
            FrameKind::Delta { text, .. } => shown.push_str(text),
            FrameKind::Restarted { .. } => shown.clear(),
            _ => {}
        }
    }
    assert_eq!(shown, "a whole answer");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_stays_busy_is_given_up_after_a_few_tries() {
    let model = busy(100, None);
    let world = World::with(Arc::clone(&model) as _).await;
    let began = Instant::now();
    let answer = world.says("hi").await;
    assert_eq!(answer.error_code.as_deref(), Some("provider_failed"));
    assert_eq!(model.prompts().len(), 4);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_model_that_asks_for_an_hour_is_not_waited_for() {
    let model = busy(1, Some(3_600_000));
    let world = World::with(Arc::clone(&model) as _).await;
    let answer = world.says("hi").await;
    assert_eq!((answer.error_code.as_deref(), model.prompts().len()), (Some("provider_failed"), 1));
    assert!(
        answer.text.ends_with("It asks to wait for 60 minutes; /model picks another."),
        "{}",
        answer.text
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_once_when_somebody_stops_it() {
    let model = busy(100, Some(60_000));
    let world = World::with(Arc::clone(&model) as _).await;
    let accepted = world.sends("me", "hi").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let stopped = Instant::now();
    world.engine.stop(&World::key("me")).await.unwrap();
    assert_eq!(world.answer(&accepted).await.state, JobState::Cancelled);
    assert!(stopped.elapsed() < Duration::from_secs(1), "{:?}", stopped.elapsed());
    assert_eq!(model.prompts().len(), 1);
}
