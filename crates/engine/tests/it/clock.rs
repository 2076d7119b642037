//! The system clock is set an hour forward or back under a running engine.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::approval::{ApprovalDecision, ApprovalState};
use polyclaw_domain::channel::SendOutcome;
use polyclaw_domain::delivery::OutboxState;
use polyclaw_domain::event::EventKind;
use polyclaw_domain::job::JobState;
use polyclaw_engine::decide_approval;
use polyclaw_store::{events, jobs, outbox};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider};
use tokio::sync::Semaphore;

use crate::approvals::{by_owner, from_terminal, ground, question};
use crate::{glance, worker};

const HOUR: i64 = 3_600_000;

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn clock_jump_neither_stalls_nor_repeats_running_turn() {
    for set in [HOUR, -HOUR] {
        let gate = Arc::new(Semaphore::new(0));
        let world = World::with_provider(worker(2, &gate)).await;
        let accepted = world.send_text("me", "work").await.unwrap();
        pass(60).await;
        gate.add_permits(1);
        pass(1).await;
        world.ground.clock.set_time(set);
        // Long enough for the watchdog and for leases to expire, short enough not to count as stalled.
        pass(100).await;
        assert_eq!(world.turn_state(&accepted.turn_id).await, JobState::Running, "{set}");
        gate.add_permits(1);
        assert_eq!(world.wait_answer(&accepted).await.text, "the work is done", "{set}");
        let turn = accepted.turn_id.clone();
        let job = world.engine.db().read(move |tx| jobs::get(tx, &turn)).await.unwrap().unwrap();
        assert_eq!(job.attempt, 1, "{set}");
        assert!(world.ground.tools.run_counts().values().all(|times| *times == 1), "{set}");
    }
}

#[tokio::test(start_paused = true)]
async fn stalled_turn_times_out_despite_clock_jump() {
    let world = World::with_provider(ScriptedProvider::new(|_| {
        vec![ScriptStep::Say("let me see".into()), ScriptStep::Hang]
    }))
    .await;
    let accepted = world.send_text("me", "hang").await.unwrap();
    pass(1).await;
    world.ground.clock.set_time(-HOUR);
    let began = tokio::time::Instant::now();
    assert_eq!(world.wait_answer(&accepted).await.error_code.as_deref(), Some("stalled"));
    assert!(began.elapsed() < Duration::from_secs(125), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn approval_timeout_is_unaffected_by_clock_jump() {
    let mut ground = ground().await;
    ground.settings.turn_ms = 2 * HOUR.unsigned_abs();
    let world = ground.start_engine(KillPointFaults::no_kill());
    let accepted = world.engine.accept_message(from_terminal("run it")).await.unwrap();
    let id = question(&world).await;
    world.ground.clock.set_time(HOUR);
    pass(60).await;
    let open = world.engine.list_open_approvals().await.unwrap();
    assert_eq!(
        open.iter().map(|asked| &asked.id).collect::<Vec<_>>(),
        [&id],
        "what can be answered is listed"
    );
    let shown = world.engine.find_approval(&id).await.unwrap().unwrap();
    assert_eq!(shown.state, ApprovalState::Pending, "and shown so");
    let answered = world.engine.now();
    decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Approve)).await.unwrap();
    world.wait_answer(&accepted).await;
    assert_eq!(glance(&world.transcript("me").await)[2], "result it ran");
    let at = |tx: &mut polyclaw_store::Tx<'_>| {
        tx.query_one("SELECT decided_at FROM approvals", &[], |row| row.time(0))
    };
    assert_eq!(world.engine.db().read(at).await.unwrap(), Some(answered), "as the clock had it");

    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    let late = world.engine.accept_message(from_terminal("run it")).await.unwrap();
    pass(1).await;
    world.ground.clock.set_time(-HOUR);
    let began = tokio::time::Instant::now();
    world.wait_answer(&late).await;
    assert!(began.elapsed() < Duration::from_secs(31 * 60), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn outbox_retry_is_unaffected_by_clock_jump() {
    for set in [HOUR, -HOUR] {
        let world = World::new().await;
        for _ in 0..2 {
            world
                .ground
                .fake_channel
                .plan_answer(SendOutcome::Retry { reason: "slow down".into(), after_ms: Some(5_000) });
        }
        world.send_and_wait("hello").await;
        pass(1).await;
        world.ground.clock.set_time(set);
        let began = tokio::time::Instant::now();
        world.wait_settled().await;
        assert!(began.elapsed() < Duration::from_secs(60), "{set}: {:?}", began.elapsed());
        assert_eq!(world.ground.fake_channel.visible_messages().len(), 1, "{set}");
    }
}

#[tokio::test(start_paused = true)]
async fn clock_jump_does_not_mark_sending_message_unknown() {
    let world = World::new().await;
    world.ground.fake_channel.set_send_delay_ms(25_000);
    world.send_and_wait("hello").await;
    pass(1).await;
    world.ground.clock.set_time(HOUR);
    world.wait_settled().await;
    let read = |tx: &mut polyclaw_store::Tx<'_>| {
        Ok((outbox::list(tx, None, "", 10)?, events::list(tx, 0, None, None, 100)?))
    };
    let (parcels, events) = world.engine.db().read(read).await.unwrap();
    assert_eq!((parcels[0].state, parcels[0].attempts), (OutboxState::Sent, 1));
    assert!(!events.iter().any(|event| event.kind == EventKind::DeliveryUnknown.as_str()));
}

#[tokio::test(start_paused = true)]
async fn duplicate_delivery_is_detected_after_clock_jump() {
    let world = World::new().await;
    let mut inbound = World::inbound("me", "hello");
    inbound.platform_id = Some("m1".into());
    let first = world.engine.accept_message(inbound.clone()).await.unwrap();
    for set in [HOUR, -2 * HOUR] {
        world.ground.clock.set_time(set);
        // The sweep deletes old ids every minute.
        pass(90).await;
        let again = world.engine.accept_message(inbound.clone()).await.unwrap();
        assert_eq!((again.duplicate, again.message_id), (true, first.message_id.clone()));
    }
    assert_eq!(world.transcript("me").await.len(), 2);
}
