use std::sync::Arc;

use polyclaw_domain::channel::SendOutcome;
use polyclaw_domain::delivery::OutboxState;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_store::outbox::{self, OutboxMessage};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{FakeChannel, KillPointFaults};

async fn parcels(world: &World) -> Vec<OutboxMessage> {
    world.engine.db().read(|tx| outbox::list(tx, None, "", 100)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn busy_platform_is_retried_after_its_delay() {
    let world = World::new().await;
    world
        .ground
        .fake_channel
        .plan_answer(SendOutcome::Retry { reason: "slow down".into(), after_ms: Some(5_000) });
    let began = tokio::time::Instant::now();
    world.send_and_wait("hello").await;
    world.wait_settled().await;
    assert!(began.elapsed().as_secs() >= 5, "the platform's own pause is kept");
    let parcels = parcels(&world).await;
    assert_eq!((parcels[0].state, parcels[0].attempts), (OutboxState::Sent, 2));
}

#[tokio::test(start_paused = true)]
async fn rejected_outbox_message_fails_and_can_be_resent() {
    let world = World::new().await;
    world.ground.fake_channel.plan_answer(SendOutcome::Rejected { reason: "blocked".into() });
    world.send_and_wait("hello").await;
    world.wait_settled().await;
    let message = parcels(&world).await.remove(0);
    assert_eq!((message.state, message.error.as_deref()), (OutboxState::Failed, Some("blocked")));
    world.engine.resend_message(&message.id).await.unwrap();
    world.wait_settled().await;
    assert_eq!(world.ground.fake_channel.visible_messages().len(), 1);
    assert!(world.engine.resend_message(&message.id).await.is_err(), "what is sent is not held");
}

#[tokio::test(start_paused = true)]
async fn crash_while_sending_marks_message_unknown_without_resend() {
    for point in [KillPoint::OutboxSending, KillPoint::OutboxAccepted] {
        let ground = World::new().await.kill().await;
        let faults = KillPointFaults::at_point(point, 1);
        let world = ground.start_engine(Arc::clone(&faults));
        world.send_text("me", "hello").await.unwrap();
        faults.wait_killed().await;
        let world = world.kill().await.start_engine(KillPointFaults::no_kill());
        world.wait_settled().await;
        assert_eq!(parcels(&world).await[0].state, OutboxState::Unknown, "{point:?}");
        let shown = world.ground.fake_channel.visible_messages().len();
        assert_eq!(shown, usize::from(point == KillPoint::OutboxAccepted));
    }
}

#[tokio::test(start_paused = true)]
async fn platform_with_idempotency_keys_shows_resent_message_once() {
    let mut ground = World::new().await.kill().await;
    ground.fake_channel = FakeChannel::new(true);
    let faults = KillPointFaults::at_point(KillPoint::OutboxAccepted, 1);
    let world = ground.start_engine(Arc::clone(&faults));
    world.send_text("me", "hello").await.unwrap();
    faults.wait_killed().await;
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    world.wait_settled().await;
    assert_eq!(parcels(&world).await[0].state, OutboxState::Sent);
    assert_eq!(world.ground.fake_channel.visible_messages().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn expired_idempotency_window_prevents_resend() {
    for (minutes, expected) in [(1, OutboxState::Sent), (3, OutboxState::Unknown)] {
        let mut ground = World::new().await.kill().await;
        ground.fake_channel = FakeChannel::new(true);
        ground.fake_channel.set_idempotency_window_ms(2 * 60 * 1000);
        let faults = KillPointFaults::at_point(KillPoint::OutboxAccepted, 1);
        let world = ground.start_engine(Arc::clone(&faults));
        world.send_text("me", "hello").await.unwrap();
        faults.wait_killed().await;
        let ground = world.kill().await;
        tokio::time::sleep(std::time::Duration::from_secs(minutes * 60)).await;
        let world = ground.start_engine(KillPointFaults::no_kill());
        world.wait_settled().await;
        assert_eq!(parcels(&world).await[0].state, expected, "after {minutes} minutes");
        assert_eq!(world.ground.fake_channel.visible_messages().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn too_old_outbox_message_is_not_sent_after_restart() {
    let ground = World::new().await.kill().await;
    let faults = KillPointFaults::at_point(KillPoint::FinishCommitted, 1);
    let world = ground.start_engine(Arc::clone(&faults));
    world.send_text("me", "hello").await.unwrap();
    faults.wait_killed().await;
    let ground = world.kill().await;
    tokio::time::sleep(std::time::Duration::from_secs(16 * 60)).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.wait_settled().await;
    assert_eq!(parcels(&world).await[0].state, OutboxState::Failed);
    assert!(world.ground.fake_channel.visible_messages().is_empty());
}

#[tokio::test(start_paused = true)]
async fn long_reply_is_split_and_sent_in_order() {
    let world = World::new().await;
    let long = "0123456789 ".repeat(1_000);
    world.send_and_wait(&long).await;
    world.wait_settled().await;
    let parts: Vec<String> =
        world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect();
    assert!(parts.len() >= 3 && parts.iter().all(|part| part.chars().count() <= 4_000));
    assert_eq!(parts.concat(), format!("echo: {long}"));
}
