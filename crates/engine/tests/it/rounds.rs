//! Broadcast groups: one message, several agents, each in its own session.

use polyclaw_testkit::wait_until;
use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::channel::IngestOutcome;
use polyclaw_domain::event::EventKind;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::media::Image;
use polyclaw_domain::provider::{ErrorClass, Prompt, PromptMessage, ProviderError};
use polyclaw_store::broadcasts;
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{
    KillPointFaults, PIXEL, ScriptStep, ScriptedProvider, inbound_group, last_user_text, with_file,
};

use crate::reception::{cast, read_after, recorded, said_in};

fn config(broadcast: &str) -> String {
    let agents = cast(&["main", "ann", "bob", "eve"]);
    format!(
        r#"
        {agents}
        [session]
        dm_scope = "per-channel-peer"
        [channels.telegram.default]
        bot_token = "123:token"
        groups = ["-7"]
        owners = ["boss"]
        [broadcast]
        {broadcast}
        "-7" = ["ann", "bob", "eve"]
        "#
    )
}

const SEQUENTIAL: &str = "strategy = \"sequential\"";

fn speaker(prompt: &Prompt) -> &'static str {
    ["ann", "bob", "eve"]
        .into_iter()
        .find(|name| prompt.system.contains(&format!("I am {name}")))
        .unwrap_or("main")
}

/// Each agent answers with its name and the message; Bob fails if the message says so.
fn model() -> Arc<ScriptedProvider> {
    ScriptedProvider::new(|prompt| {
        let (name, asked) = (speaker(prompt), last_user_text(prompt));
        if name == "bob" && asked.contains("fail") {
            return vec![ScriptStep::Fail(ProviderError {
                class: ErrorClass::Overload,
                model: "scripted/model".into(),
                message: "busy".into(),
                retry_after_ms: None,
            })];
        }
        let pause = if asked.contains("slowly") { 10 } else { 0 };
        vec![ScriptStep::Pause(Duration::from_secs(pause)), ScriptStep::Say(format!("{name} on {asked}"))]
    })
}

async fn ground(broadcast: &str) -> (DurableWorld, Arc<ScriptedProvider>) {
    let model = model();
    let mut ground = World::with_provider(model.clone()).await.kill().await;
    ground.configure(&config(broadcast)).await;
    (ground, model)
}

/// The group's replies once the broadcast is over.
async fn read_broadcast_replies(world: &World, text: &str) -> Vec<String> {
    let before = world.ground.fake_channel.texts_at("-7", None).len();
    assert_eq!(
        world.ground.fake_channel.deliver_inbound(inbound_group("-7", "guest", text)).await,
        IngestOutcome::Done
    );
    over(world).await;
    world.ground.fake_channel.texts_at("-7", None).split_off(before)
}

async fn over(world: &World) {
    wait_until("every round ends", async || {
        world.engine.db().read(broadcasts::list_open).await.unwrap().is_empty()
    })
    .await;
    world.wait_settled().await;
}

/// Whether one agent's reply was in another's prompt.
fn was_shown(model: &ScriptedProvider, to: &str, what: &str) -> bool {
    let shown = |prompt: &Prompt| format!("{:?}", prompt.messages).contains(what);
    model.prompts().iter().any(|prompt| speaker(prompt) == to && shown(prompt))
}

#[tokio::test(start_paused = true)]
async fn broadcast_targets_answer_once_despite_one_failure() {
    for broadcast in ["", SEQUENTIAL] {
        let (ground, _) = ground(broadcast).await;
        let world = ground.start_engine(KillPointFaults::no_kill());
        let mut read = read_broadcast_replies(&world, "please fail").await;
        read.sort();
        assert_eq!(read.len(), 3, "{read:?}");
        assert_eq!(read[0], "Ann: ann on please fail");
        assert!(read[1].starts_with("Bob: ") && read[1].contains("busy"), "{read:?}");
        assert_eq!(read[2], "Eve: eve on please fail");
        assert!(read_broadcast_replies(&world, "please fail").await.is_empty(), "the same letter again");
        for agent in ["ann", "bob", "eve"] {
            let key = format!("agent:{agent}:telegram:group:-7");
            assert_eq!(said_in(&world, &key).await, ["please fail"]);
        }
        assert_eq!(recorded(&world, EventKind::BroadcastStarted).await.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn sequential_broadcast_shows_previous_answers_without_storing_them() {
    let (ground, model) = ground(SEQUENTIAL).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let read = read_broadcast_replies(&world, "tea?").await;
    assert_eq!(read, ["Ann: ann on tea?", "Bob: bob on tea?", "Eve: eve on tea?"], "in their order");
    assert!(!was_shown(&model, "ann", "answered:"));
    assert!(
        was_shown(&model, "bob", "ann answered:\\nann on tea?") && !was_shown(&model, "bob", "eve on tea?")
    );
    assert!(was_shown(&model, "eve", "ann on tea?") && was_shown(&model, "eve", "bob on tea?"));
    for table in ["SELECT text FROM messages", "SELECT data_json FROM events"] {
        let read = move |tx: &mut polyclaw_store::Tx<'_>| tx.query(table, &[], |row| row.text(0));
        let stored = world.engine.db().read(read).await.unwrap();
        assert!(stored.iter().all(|text| !text.contains("answered:")), "{stored:?}");
    }
    read_broadcast_replies(&world, "coffee?").await;
    let later = model.prompts().into_iter().rev().find(|prompt| speaker(prompt) == "eve").unwrap();
    let shown = format!("{:?}", later.messages);
    assert!(
        shown.contains("ann on coffee?") && !shown.contains("ann on tea?"),
        "of this message only: {shown}"
    );
}

#[tokio::test(start_paused = true)]
async fn parallel_or_isolated_broadcast_hides_other_answers() {
    for broadcast in ["", "strategy = \"sequential\"\nsee_previous = false"] {
        let (ground, model) = ground(broadcast).await;
        let world = ground.start_engine(KillPointFaults::no_kill());
        assert_eq!(read_broadcast_replies(&world, "tea?").await.len(), 3);
        for to in ["ann", "bob", "eve"] {
            assert!(!was_shown(&model, to, "answered:"), "{to}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn command_in_broadcast_group_applies_to_every_session() {
    let (ground, _) = ground("").await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    read_broadcast_replies(&world, "hello").await;
    let read = read_after(&world, inbound_group("-7", "guest", "/whoami")).await;
    let lines: Vec<&str> = read[0].lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[1], "bob: session agent:bob:telegram:group:-7, agent bob");
    assert_eq!(
        read_after(&world, inbound_group("-7", "guest", "/models")).await,
        ["No models are available."]
    );
    let refused = read_after(&world, inbound_group("-7", "guest", "/new")).await;
    assert_eq!(refused[0].matches("Only owners of this assistant").count(), 3);
    let mut small_talk = inbound_group("-7", "guest", "not for you");
    small_talk.mentioned = false;
    assert!(read_after(&world, small_talk).await.is_empty(), "admission comes first");
}

#[tokio::test(start_paused = true)]
async fn broadcast_targets_answer_once_at_every_kill_point() {
    let points = [
        KillPoint::ReplyOnceBefore,
        KillPoint::ReplyOnceCommitted,
        KillPoint::BroadcastStored,
        KillPoint::IngressBefore,
        KillPoint::IngressCommitted,
        KillPoint::BroadcastTargetAccepted,
        KillPoint::PromptBuilt,
        KillPoint::FinishBefore,
        KillPoint::FinishCommitted,
    ];
    for broadcast in ["", SEQUENTIAL] {
        for (point, times) in points.into_iter().flat_map(|point| [(point, 1), (point, 2), (point, 3)]) {
            let (mut ground, _) = ground(broadcast).await;
            // This platform deduplicates repeats, so that a send interrupted by the crash is repeated and not held.
            ground.fake_channel = polyclaw_testkit::FakeChannel::new(true);
            let faults = KillPointFaults::at_point(point, times);
            let world = ground.start_engine(faults.clone());
            let outlet = ground.fake_channel.clone();
            let delivered =
                tokio::spawn(
                    async move { outlet.deliver_inbound(inbound_group("-7", "guest", "tea?")).await },
                );
            tokio::select! {
                _ = faults.wait_killed() => {}
                () = tokio::time::sleep(std::time::Duration::from_secs(10)) => {}
            }
            let world = world.kill().await.start_engine(KillPointFaults::no_kill());
            assert_eq!(delivered.await.unwrap(), IngestOutcome::Done);
            over(&world).await;
            let mut read = world.ground.fake_channel.texts_at("-7", None);
            read.sort();
            let expected = ["Ann: ann on tea?", "Bob: bob on tea?", "Eve: eve on tea?"];
            assert_eq!(read, expected, "{broadcast} {point:?} {times}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn broadcast_image_is_shown_to_each_target_after_crash() {
    let cat = Image::from_bytes(PIXEL).unwrap();
    for (broadcast, faults) in ["", SEQUENTIAL].into_iter().flat_map(|broadcast| {
        [
            (broadcast, KillPointFaults::no_kill()),
            (broadcast, KillPointFaults::at_point(KillPoint::BroadcastStored, 1)),
        ]
    }) {
        let (ground, model) = ground(broadcast).await;
        ground.fake_channel.add_file("cat", cat.clone());
        let (world, outlet) = (ground.start_engine(faults.clone()), ground.fake_channel.clone());
        let photo = with_file(inbound_group("-7", "guest", "what is it?"), "cat");
        let delivered = tokio::spawn(async move { outlet.deliver_inbound(photo).await });
        tokio::select! {
            _ = faults.wait_killed() => {}
            () = tokio::time::sleep(std::time::Duration::from_secs(10)) => {}
        }
        let world = world.kill().await.start_engine(KillPointFaults::no_kill());
        assert_eq!(delivered.await.unwrap(), IngestOutcome::Done);
        over(&world).await;
        for name in ["ann", "bob", "eve"] {
            let prompt = model.prompts().into_iter().rev().find(|prompt| speaker(prompt) == name).unwrap();
            let shown: Vec<_> = prompt.messages.iter().flat_map(PromptMessage::images).collect();
            assert_eq!(shown, [&cat], "{name} {broadcast}");
        }
        assert_eq!(world.ground.fake_channel.fetched_handles().len(), 1, "{broadcast}");
    }
}

#[tokio::test(start_paused = true)]
async fn stopped_broadcast_target_lets_next_one_answer() {
    let hanging = ScriptedProvider::new(|prompt| match speaker(prompt) {
        "ann" => vec![ScriptStep::Hang],
        name => vec![ScriptStep::Say(format!("{name} speaks"))],
    });
    let mut ground = World::with_provider(hanging).await.kill().await;
    ground.configure(&config(SEQUENTIAL)).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert_eq!(
        world.ground.fake_channel.deliver_inbound(inbound_group("-7", "guest", "tea?")).await,
        IngestOutcome::Done
    );
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    assert!(world.ground.fake_channel.texts_at("-7", None).is_empty(), "the others wait for their turn");
    assert_eq!(
        world.ground.fake_channel.deliver_inbound(inbound_group("-7", "guest", "/stop")).await,
        IngestOutcome::Done
    );
    over(&world).await;
    let read = world.ground.fake_channel.texts_at("-7", None);
    assert!(
        read.contains(&"Bob: bob speaks".to_owned()) && read.contains(&"Eve: eve speaks".to_owned()),
        "{read:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn busy_broadcast_targets_send_one_wait_notice() {
    let (ground, _) = ground("").await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.ground.fake_channel.hide_receipts();
    for text in ["think slowly", "and now?"] {
        assert_eq!(
            world.ground.fake_channel.deliver_inbound(inbound_group("-7", "guest", text)).await,
            IngestOutcome::Done
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(
        world.ground.fake_channel.texts_at("-7", None),
        ["Busy with another task. Your message is answered next."]
    );
    over(&world).await;
    assert_eq!(world.ground.fake_channel.texts_at("-7", None).len(), 7, "and all answer both");
}
