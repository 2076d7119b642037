//! Attachments of inbound messages: fetched once, and only for messages that are stored.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::channel::{InboundMessage, InboundSink, IngestOutcome};
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::media::Image;
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{
    KillPointFaults, PIXEL, ScriptedProvider, inbound_dm, inbound_group, last_user_text, with_file,
};
use tokio::time::{Instant, sleep, timeout};

use crate::reception::{CONFIG, ground, read_after, said_in};

fn cat() -> Image {
    Image::from_bytes(PIXEL).unwrap()
}

/// A message with a photo that the platform has.
fn photo(message: InboundMessage) -> InboundMessage {
    with_file(message, "cat")
}

fn shown(prompt: &Prompt) -> Vec<Image> {
    prompt.messages.iter().flat_map(PromptMessage::images).cloned().collect()
}

async fn world() -> (World, Arc<ScriptedProvider>) {
    let model = ScriptedProvider::echo();
    let mut ground = World::with_provider(model.clone()).await.kill().await;
    ground.configure(CONFIG).await;
    ground.fake_channel.add_file("cat", cat());
    (ground.start_engine(KillPointFaults::no_kill()), model)
}

#[tokio::test(start_paused = true)]
async fn attachment_of_admitted_message_is_shown_to_model() {
    let (world, model) = world().await;
    read_after(&world, photo(inbound_dm("guest", "what is it?"))).await;
    assert_eq!(shown(&model.prompts()[0]), [cat()]);
    assert_eq!(world.ground.fake_channel.fetched_handles(), ["cat"]);
}

#[tokio::test(start_paused = true)]
async fn attachment_of_refused_sender_is_not_fetched() {
    let (world, _) = world().await;
    let mut elsewhere = inbound_dm("guest", "by another account");
    elsewhere.context.account = "gone".into();
    for message in [inbound_dm("mallory", "look"), inbound_group("-99", "guest", "look"), elsewhere] {
        assert!(read_after(&world, photo(message)).await.is_empty());
    }
    assert!(world.ground.fake_channel.fetched_handles().is_empty());
    let pairing = CONFIG.replace("dm_policy = \"allowlist\"", "dm_policy = \"pairing\"");
    let world = ground(&pairing).await.start_engine(KillPointFaults::no_kill());
    assert!(
        read_after(&world, photo(inbound_dm("eve", "look"))).await[0].contains("You are not approved yet")
    );
    assert!(world.ground.fake_channel.fetched_handles().is_empty());
}

#[tokio::test(start_paused = true)]
async fn attachment_of_unaddressed_group_message_is_not_fetched() {
    let (world, _) = world().await;
    let unspoken = InboundMessage { mentioned: false, ..inbound_group("-7", "guest", "between us") };
    assert!(read_after(&world, photo(unspoken)).await.is_empty());
    assert!(world.ground.fake_channel.fetched_handles().is_empty());
}

#[tokio::test(start_paused = true)]
async fn attachment_of_command_is_not_fetched() {
    let (world, _) = world().await;
    for line in ["/status", "/whoami", "/bogus"] {
        assert_eq!(read_after(&world, photo(inbound_dm("guest", line))).await.len(), 1, "{line}");
    }
    assert!(world.ground.fake_channel.fetched_handles().is_empty());
}

#[tokio::test(start_paused = true)]
async fn attachment_of_repeated_message_is_not_fetched_again() {
    let (world, _) = world().await;
    assert_eq!(read_after(&world, photo(inbound_dm("guest", "look"))).await.len(), 1);
    for _ in 0..3 {
        assert!(read_after(&world, photo(inbound_dm("guest", "look"))).await.is_empty());
    }
    assert_eq!(world.ground.fake_channel.fetched_handles(), ["cat"]);
}

#[tokio::test(start_paused = true)]
async fn slow_attachments_share_one_timeout_and_are_named() {
    let (world, model) = world().await;
    let (started_at, slow) =
        (Instant::now(), ["a", "b", "c"].into_iter().fold(inbound_dm("guest", "look"), with_file));
    assert_eq!(world.ground.fake_channel.deliver_inbound(photo(slow)).await, IngestOutcome::Done);
    assert_eq!(started_at.elapsed().as_secs(), 15);
    world.wait_settled().await;
    let prompt = &model.prompts()[0];
    assert_eq!(shown(prompt), [cat()], "what came is there");
    let text = last_user_text(prompt);
    assert!(["a", "b", "c"].iter().all(|name| text.contains(&format!("{name}.png (image/png)"))), "{text}");
}

#[tokio::test(start_paused = true)]
async fn agent_named_in_photo_caption_answers() {
    let (world, model) = world().await;
    read_after(&world, photo(inbound_dm("guest", "/ops"))).await;
    assert_eq!(shown(&model.prompts()[0]), [cat()]);
    assert_eq!(said_in(&world, "agent:ops:telegram:dm:guest").await, [""]);
}

/// A webhook platform waits a few seconds, drops the request and calls again.
#[tokio::test(start_paused = true)]
async fn retried_webhook_delivery_is_accepted_and_fetched_once() {
    let (world, _) = world().await;
    let inbox: &dyn InboundSink = &world.engine;
    let slow = || with_file(inbound_dm("guest", "look"), "slow");
    assert!(timeout(Duration::from_secs(3), inbox.ingest_message(slow())).await.is_err());
    assert!(
        matches!(inbox.ingest_message(slow()).await, IngestOutcome::Retry { .. }),
        "the first is still being taken"
    );
    assert_eq!(inbox.ingest_message(inbound_dm("guest", "another")).await, IngestOutcome::Done);
    sleep(Duration::from_secs(13)).await;
    assert_eq!(inbox.ingest_message(slow()).await, IngestOutcome::Done);
    world.wait_settled().await;
    assert_eq!(said_in(&world, "agent:main:telegram:dm:guest").await, ["another", "look"]);
    assert_eq!(world.ground.fake_channel.fetched_handles(), ["slow"]);
}

#[tokio::test(start_paused = true)]
async fn photo_survives_crash_and_is_not_refetched_after_commit() {
    for (point, fetched) in [(KillPoint::IngressBefore, 2), (KillPoint::IngressCommitted, 1)] {
        let (world, model) = world().await;
        let faults = KillPointFaults::at_point(point, 1);
        let world = world.kill().await.start_engine(faults.clone());
        let outlet = world.ground.fake_channel.clone();
        let delivered =
            tokio::spawn(async move { outlet.deliver_inbound(photo(inbound_dm("guest", "look"))).await });
        faults.wait_killed().await;
        let world = world.kill().await.start_engine(KillPointFaults::no_kill());
        assert_eq!(delivered.await.unwrap(), IngestOutcome::Done, "{point:?}");
        world.wait_settled().await;
        assert_eq!(said_in(&world, "agent:main:telegram:dm:guest").await, ["look"], "{point:?}");
        assert_eq!(shown(model.prompts().last().unwrap()), [cat()], "{point:?}");
        assert_eq!(world.ground.fake_channel.fetched_handles().len(), fetched, "{point:?}");
    }
}
