use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::channel::SendOutcome;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::provider::Prompt;
use polyclaw_store::Db;
use polyclaw_testkit::world::{Ground, World};
use polyclaw_testkit::{Faulty, Line, Outlet, Script, Scripted};

/// Says ten words, a second each.
fn slowly(_: &Prompt) -> Script {
    (0..10).flat_map(|n| [Line::Pause(Duration::from_secs(1)), Line::Say(format!("w{n} "))]).collect()
}

const WHOLE: &str = "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 ";

async fn ground(author: fn(&Prompt) -> Script) -> Ground {
    let ground = Ground::on(Db::in_memory().unwrap(), Scripted::new(author)).await;
    ground.outlet.allow_edits();
    ground
}

fn visible(world: &World) -> Vec<String> {
    world.ground.outlet.visible().into_iter().map(|(_, text)| text).collect()
}

#[tokio::test(start_paused = true)]
async fn an_answer_grows_where_it_will_stand() {
    let world = ground(slowly).await.wake(Faulty::never());
    let accepted = world.sends("me", "hi").await.unwrap();
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    let shown = visible(&world);
    assert!(shown.len() == 1 && shown[0].starts_with("w0 w1") && shown[0].ends_with(" …"), "{shown:?}");
    world.answer(&accepted).await;
    world.settled().await;
    assert_eq!(visible(&world), [WHOLE]);
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_refuses_edits_gets_the_answer_all_the_same() {
    for refusal in [
        SendOutcome::Rejected { reason: "gone".into() },
        SendOutcome::Retry { reason: "slow down".into(), after_ms: Some(2_000) },
        SendOutcome::Unknown { reason: "no answer".into() },
    ] {
        let ground = ground(slowly).await;
        let world = ground.wake(Faulty::never());
        let accepted = world.sends("me", "hi").await.unwrap();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        for _ in 0..4 {
            ground.outlet.plan(refusal.clone());
        }
        world.answer(&accepted).await;
        world.settled().await;
        let last = visible(&world).pop();
        assert_eq!(last.as_deref(), Some(WHOLE), "{refusal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_dies_while_drafting_goes_on_over_its_draft() {
    let dying = Faulty::at(KillPoint::FinishBefore, 1);
    let world = ground(slowly).await.wake(Arc::clone(&dying));
    world.sends("me", "hi").await.unwrap();
    dying.death().await;
    let world = world.killed().await.wake(Faulty::never());
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.settled().await;
    assert_eq!(visible(&world), [WHOLE], "one message: the draft of the first life");
}

#[tokio::test(start_paused = true)]
async fn a_draft_nobody_knows_of_is_left_alone_and_the_answer_comes_once() {
    for point in [KillPoint::OutboxSending, KillPoint::OutboxAccepted] {
        let dying = Faulty::at(point, 1);
        let world = ground(slowly).await.wake(Arc::clone(&dying));
        world.sends("me", "hi").await.unwrap();
        dying.death().await;
        let world = world.killed().await.wake(Faulty::never());
        tokio::time::sleep(Duration::from_secs(60)).await;
        world.settled().await;
        let shown = visible(&world);
        assert_eq!(shown.iter().filter(|text| *text == WHOLE).count(), 1, "{point:?}: {shown:?}");
        let drafts = shown.iter().filter(|text| text.ends_with('…')).count();
        assert!(drafts <= 1 && drafts + 1 == shown.len(), "{point:?}: {shown:?}");
    }
}

/// A platform that knows keys again shows one message, whether the next life drafts or answers at once.
#[tokio::test(start_paused = true)]
async fn a_draft_of_doubtful_fate_is_found_again_by_its_key() {
    fn at_once(_: &Prompt) -> Script {
        vec![Line::Say(WHOLE.into())]
    }
    for point in [KillPoint::OutboxSending, KillPoint::OutboxAccepted] {
        for next_life in [slowly as fn(&Prompt) -> Script, at_once] {
            let dying = Faulty::at(point, 1);
            let mut first = ground(slowly).await;
            first.outlet = Outlet::new(true);
            first.outlet.allow_edits();
            let world = first.wake(Arc::clone(&dying));
            world.sends("me", "hi").await.unwrap();
            dying.death().await;
            let mut next = world.killed().await;
            next.provider = Scripted::new(next_life);
            let world = next.wake(Faulty::never());
            tokio::time::sleep(Duration::from_secs(60)).await;
            world.settled().await;
            assert_eq!(visible(&world), [WHOLE], "{point:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_be_silence_is_not_shown() {
    fn quiet(_: &Prompt) -> Script {
        vec![Line::Say("NO_".into()), Line::Pause(Duration::from_secs(10)), Line::Say("REPLY".into())]
    }
    let world = ground(quiet).await.wake(Faulty::never());
    let accepted = world.sends("me", "hi").await.unwrap();
    world.answer(&accepted).await;
    world.settled().await;
    assert!(visible(&world).is_empty());
}
