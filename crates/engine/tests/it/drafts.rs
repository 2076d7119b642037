use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::channel::SendOutcome;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::provider::Prompt;
use polyclaw_store::Db;
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{FakeChannel, KillPointFaults, ModelScript, ScriptStep, ScriptedProvider};

/// Writes ten words, one per second.
fn slowly(_: &Prompt) -> ModelScript {
    (0..10)
        .flat_map(|n| [ScriptStep::Pause(Duration::from_secs(1)), ScriptStep::Say(format!("w{n} "))])
        .collect()
}

const WHOLE: &str = "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 ";

async fn ground(author: fn(&Prompt) -> ModelScript) -> DurableWorld {
    let ground = DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::new(author)).await;
    ground.fake_channel.allow_edits();
    ground
}

fn visible(world: &World) -> Vec<String> {
    world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect()
}

#[tokio::test(start_paused = true)]
async fn draft_is_edited_into_final_answer() {
    let world = ground(slowly).await.start_engine(KillPointFaults::no_kill());
    let accepted = world.send_text("me", "hi").await.unwrap();
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    let shown = visible(&world);
    assert!(shown.len() == 1 && shown[0].starts_with("w0 w1") && shown[0].ends_with(" …"), "{shown:?}");
    world.wait_answer(&accepted).await;
    world.wait_settled().await;
    assert_eq!(visible(&world), [WHOLE]);
}

#[tokio::test(start_paused = true)]
async fn answer_is_delivered_if_platform_refuses_edits() {
    for refusal in [
        SendOutcome::Rejected { reason: "gone".into() },
        SendOutcome::Retry { reason: "slow down".into(), after_ms: Some(2_000) },
        SendOutcome::Unknown { reason: "no answer".into() },
    ] {
        let ground = ground(slowly).await;
        let world = ground.start_engine(KillPointFaults::no_kill());
        let accepted = world.send_text("me", "hi").await.unwrap();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        for _ in 0..4 {
            ground.fake_channel.plan_answer(refusal.clone());
        }
        world.wait_answer(&accepted).await;
        world.wait_settled().await;
        let last = visible(&world).pop();
        assert_eq!(last.as_deref(), Some(WHOLE), "{refusal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn restarted_engine_reuses_existing_draft() {
    let dying = KillPointFaults::at_point(KillPoint::FinishBefore, 1);
    let world = ground(slowly).await.start_engine(Arc::clone(&dying));
    world.send_text("me", "hi").await.unwrap();
    dying.wait_killed().await;
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    assert_eq!(visible(&world), [WHOLE], "one message: the draft of the first life");
}

#[tokio::test(start_paused = true)]
async fn answer_is_sent_once_despite_orphaned_draft() {
    for point in [KillPoint::OutboxSending, KillPoint::OutboxAccepted] {
        let dying = KillPointFaults::at_point(point, 1);
        let world = ground(slowly).await.start_engine(Arc::clone(&dying));
        world.send_text("me", "hi").await.unwrap();
        dying.wait_killed().await;
        let world = world.kill().await.start_engine(KillPointFaults::no_kill());
        tokio::time::sleep(Duration::from_secs(60)).await;
        world.wait_settled().await;
        let shown = visible(&world);
        assert_eq!(shown.iter().filter(|text| *text == WHOLE).count(), 1, "{point:?}: {shown:?}");
        let drafts = shown.iter().filter(|text| text.ends_with('…')).count();
        assert!(drafts <= 1 && drafts + 1 == shown.len(), "{point:?}: {shown:?}");
    }
}

/// A platform that deduplicates by key shows one message, whether the next process drafts or answers immediately.
#[tokio::test(start_paused = true)]
async fn draft_with_unknown_outcome_is_recovered_by_key() {
    fn at_once(_: &Prompt) -> ModelScript {
        vec![ScriptStep::Say(WHOLE.into())]
    }
    for point in [KillPoint::OutboxSending, KillPoint::OutboxAccepted] {
        for next_life in [slowly as fn(&Prompt) -> ModelScript, at_once] {
            let dying = KillPointFaults::at_point(point, 1);
            let mut first = ground(slowly).await;
            first.fake_channel = FakeChannel::new(true);
            first.fake_channel.allow_edits();
            let world = first.start_engine(Arc::clone(&dying));
            world.send_text("me", "hi").await.unwrap();
            dying.wait_killed().await;
            let mut next = world.kill().await;
            next.provider = ScriptedProvider::new(next_life);
            let world = next.start_engine(KillPointFaults::no_kill());
            tokio::time::sleep(Duration::from_secs(60)).await;
            world.wait_settled().await;
            assert_eq!(visible(&world), [WHOLE], "{point:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn possible_no_reply_prefix_is_not_drafted() {
    fn quiet(_: &Prompt) -> ModelScript {
        vec![
            ScriptStep::Say("NO_".into()),
            ScriptStep::Pause(Duration::from_secs(10)),
            ScriptStep::Say("REPLY".into()),
        ]
    }
    let world = ground(quiet).await.start_engine(KillPointFaults::no_kill());
    let accepted = world.send_text("me", "hi").await.unwrap();
    world.wait_answer(&accepted).await;
    world.wait_settled().await;
    assert!(visible(&world).is_empty());
}
