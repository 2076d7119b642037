//! Subscribers that join in the middle of an answer get it complete.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_engine::hub::{FrameKind, HubSubscription};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider};
use tokio::sync::Semaphore;

/// The text that a client shows which renders deltas, until the turn ends.
async fn read(mut watch: HubSubscription) -> String {
    let mut shown = String::new();
    while let Some(frame) = watch.recv().await {
        match &frame.kind {
            FrameKind::Delta { text, .. } => shown.push_str(text),
            FrameKind::Restarted { .. } => shown.clear(),
            FrameKind::Ended { .. } => break,
            _ => {}
        }
    }
    shown
}

#[tokio::test(start_paused = true)]
async fn late_subscriber_after_crash_gets_text_from_start() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let model = ScriptedProvider::new(move |_| {
        vec![
            ScriptStep::Say("Once upon ".into()),
            ScriptStep::Gate(Arc::clone(&opened)),
            ScriptStep::Say("a time.".into()),
        ]
    });
    let world = World::with_provider(model).await;
    world.send_text("me", "tell").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(60)).await;
    let late = world.engine.hub.subscribe(&World::session_key("me"));
    gate.add_permits(1);
    assert_eq!(read(late).await, "Once upon a time.");
    world.wait_settled().await;
    let mut after = world.engine.hub.subscribe(&World::session_key("me"));
    let result = tokio::time::timeout(Duration::from_secs(1), after.recv()).await;
    assert!(result.is_err(), "what is stored is in the transcript: {result:?}");
}
