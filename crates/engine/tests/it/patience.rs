//! Models that ask to slow down: they are asked again, within bounds, and whoever waits knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polyclaw_domain::job::JobState;
use polyclaw_domain::provider::{ErrorClass, PromptMessage, ProviderError};
use polyclaw_engine::hub::FrameKind;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{ScriptStep, ScriptedProvider};
use tokio::time::Instant;

fn limited(retry_after_ms: Option<u64>) -> ProviderError {
    let (model, message) = ("scripted/model".into(), "too many requests".into());
    ProviderError { class: ErrorClass::RateLimit, model, message, retry_after_ms }
}

/// Refuses so many times, then answers.
fn busy(times: usize, retry_after_ms: Option<u64>) -> Arc<ScriptedProvider> {
    let asked = AtomicUsize::new(0);
    ScriptedProvider::new(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        n if n < times => vec![ScriptStep::Fail(limited(retry_after_ms))],
        _ => vec![ScriptStep::Say("at last".into())],
    })
}

#[tokio::test(start_paused = true)]
async fn retry_after_delay_is_respected_and_shown_to_user() {
    let world = World::with_provider(busy(2, Some(20_000))).await;
    let mut settings = world.ground.settings.clone();
    settings.stall_ms = 5_000;
    world.engine.reload_settings(settings);
    let mut watch = world.engine.hub.subscribe(&World::session_key("me"));
    let began = Instant::now();
    let answer = world.send_and_wait("hi").await;
    assert_eq!((answer.state, answer.text.as_str()), (JobState::Done, "at last"));
    let took = began.elapsed().as_secs();
    assert!((40..=51).contains(&took), "{took} s");
    let mut lines = Vec::new();
    while let Ok(Some(frame)) = tokio::time::timeout(Duration::from_secs(1), watch.recv()).await {
        if let FrameKind::Notice { text, .. } = &frame.kind {
            lines.push(text.clone());
        }
    }
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].starts_with("scripted/model limits the rate of requests. The next attempt is in 2"),
        "{lines:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn partial_text_is_retracted_before_rate_limit_wait() {
    let asked = AtomicUsize::new(0);
    let model = ScriptedProvider::new(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => vec![ScriptStep::Say("half an".into()), ScriptStep::Fail(limited(Some(20_000)))],
        _ => vec![ScriptStep::Say("a whole answer".into())],
    });
    let world = World::with_provider(model).await;
    let mut watch = world.engine.hub.subscribe(&World::session_key("me"));
    assert_eq!(world.send_and_wait("hi").await.text, "a whole answer");
    let mut shown = String::new();
    while let Ok(Some(frame)) = tokio::time::timeout(Duration::from_secs(1), watch.recv()).await {
        match &frame.kind {
            FrameKind::Delta { text, .. } => shown.push_str(text),
            FrameKind::Restarted { .. } => shown.clear(),
            FrameKind::Notice { .. } => assert_eq!(shown, "", "it is taken back before the wait"),
            _ => {}
        }
    }
    assert_eq!(shown, "a whole answer");
}

#[tokio::test(start_paused = true)]
async fn rate_limited_model_fails_after_four_attempts() {
    let model = busy(100, None);
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let began = Instant::now();
    let answer = world.send_and_wait("hi").await;
    assert_eq!(answer.error_code.as_deref(), Some("provider_failed"));
    assert_eq!(model.prompts().len(), 4);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn too_long_retry_after_fails_immediately() {
    let model = busy(1, Some(3_600_000));
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let answer = world.send_and_wait("hi").await;
    assert_eq!((answer.error_code.as_deref(), model.prompts().len()), (Some("provider_failed"), 1));
    assert!(
        answer.text.ends_with("It asks to wait for 60 minutes. /model selects another."),
        "{}",
        answer.text
    );
}

#[tokio::test(start_paused = true)]
async fn stop_ends_rate_limit_wait_immediately() {
    let model = busy(100, Some(60_000));
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let accepted = world.send_text("me", "hi").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let stopped = Instant::now();
    world.engine.stop_session(&World::session_key("me")).await.unwrap();
    assert_eq!(world.wait_answer(&accepted).await.state, JobState::Cancelled);
    assert!(stopped.elapsed() < Duration::from_secs(1), "{:?}", stopped.elapsed());
    assert_eq!(model.prompts().len(), 1);
}

/// Looks once, then refuses so many times to go on with the work; answers everything else.
fn busy_worker(times: usize) -> Arc<ScriptedProvider> {
    let asked = AtomicUsize::new(0);
    ScriptedProvider::new(move |prompt| {
        let text = polyclaw_testkit::last_user_text(prompt);
        let has_looked = prompt.messages.iter().any(|m| matches!(m, PromptMessage::ToolResult { .. }));
        match text.contains("work") {
            false => vec![ScriptStep::Say(format!("reply to {text}"))],
            true if !has_looked => vec![ScriptStep::Call("look".into(), serde_json::json!({}))],
            true if asked.fetch_add(1, Ordering::Relaxed) < times => {
                vec![ScriptStep::Fail(limited(Some(60_000)))]
            }
            true => vec![ScriptStep::Say("the work is done".into())],
        }
    })
}

#[tokio::test(start_paused = true)]
async fn newer_message_steers_turn_in_rate_limit_wait() {
    let world = World::with_provider(busy_worker(1)).await;
    let task = world.send_text("me", "work").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let sent = Instant::now();
    let second = world.send_text("me", "how are you?").await.unwrap();
    assert_eq!(world.wait_answer(&second).await.text, "reply to how are you?");
    assert!(sent.elapsed() < Duration::from_secs(5), "{:?}", sent.elapsed());
    assert_eq!(world.wait_answer(&task).await.text, "the work is done");
    assert_eq!(world.turn_state(&task.turn_id).await, JobState::Steered);
    world.wait_settled().await;
}

#[tokio::test(start_paused = true)]
async fn compaction_retries_rate_limited_model() {
    let refusals = Arc::new(AtomicUsize::new(0));
    let left = Arc::clone(&refusals);
    let model = ScriptedProvider::new(move |prompt| {
        let is_summary = prompt.system.starts_with("Summarize");
        let is_busy =
            || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        match is_summary && is_busy() {
            true => vec![ScriptStep::Fail(limited(None))],
            false => vec![ScriptStep::Say("yes".into())],
        }
    });
    let world = World::with_provider(Arc::clone(&model) as _).await;
    for _ in 0..3 {
        world.send_and_wait("hello").await;
    }
    refusals.store(2, Ordering::Relaxed);
    world.engine.compact_session(&World::session_key("me")).await.unwrap();
    world.wait_settled().await;
    world.send_and_wait("again").await;
    let shown = model.prompts().last().unwrap().messages.len();
    assert_eq!(shown, 3, "the summary, the last reply and the new message");
    assert_eq!(refusals.load(Ordering::Relaxed), 0);
}
