//! Images from the message they came with to the model, whatever dies in between.

use std::sync::{Arc, Mutex};

use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::media::{Image, MAX_IMAGE_BYTES, MAX_SHOWN_IMAGES};
use polyclaw_domain::message::{MessageAttachment, MessagePart, attached_images};
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_engine::maintenance::CleanupMode;
use polyclaw_store::media;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, PIXEL, ScriptStep, ScriptedProvider};
use serde_json::json;

fn image(n: usize) -> Image {
    Image::from_bytes([PIXEL, &[n as u8]].concat()).unwrap()
}

fn showing(text: &str, shown: &[Image]) -> IngressMessage {
    let part = |one: &Image| MessagePart::Attachment(MessageAttachment::from_image("cat.png", one.clone()));
    IngressMessage { parts: shown.iter().map(part).collect(), ..World::inbound("me", text) }
}

fn shown(prompt: &Prompt) -> Vec<Image> {
    prompt.messages.iter().flat_map(PromptMessage::images).cloned().collect()
}

async fn is_kept(world: &World, image: &Image) -> bool {
    let hash = image.hash().clone();
    world.engine.db().read(move |tx| media::load_image(tx, &hash)).await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn image_is_shown_in_its_turn_and_later_turns() {
    let model = ScriptedProvider::echo();
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let accepted = world.engine.accept_message(showing("what is it?", &[image(1)])).await.unwrap();
    world.wait_answer(&accepted).await;
    world.send_and_wait("are you sure?").await;
    let prompts = model.prompts();
    assert_eq!((shown(&prompts[0]), shown(&prompts[1])), (vec![image(1)], vec![image(1)]));
}

#[tokio::test(start_paused = true)]
async fn image_of_accepted_message_survives_crash() {
    for point in [KillPoint::IngressCommitted, KillPoint::PromptBuilt] {
        let model = ScriptedProvider::echo();
        let ground = World::with_provider(Arc::clone(&model) as _).await.kill().await;
        let faults = KillPointFaults::at_point(point, 1);
        let world = ground.start_engine(Arc::clone(&faults));
        let dying = world.engine.clone();
        tokio::spawn(async move { dying.accept_message(showing("look", &[image(1)])).await });
        faults.wait_killed().await;
        let world = world.kill().await.start_engine(KillPointFaults::no_kill());
        world.wait_settled().await;
        let prompts = model.prompts();
        assert_eq!(shown(prompts.last().unwrap()), [image(1)], "{point:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_newest_images_are_shown() {
    let model = ScriptedProvider::echo();
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let all: Vec<_> = (0..MAX_SHOWN_IMAGES + 2).map(image).collect();
    for half in all.chunks(MAX_SHOWN_IMAGES / 2 + 1) {
        let accepted = world.engine.accept_message(showing("look", half)).await.unwrap();
        world.wait_answer(&accepted).await;
    }
    assert_eq!(shown(model.prompts().last().unwrap()), all[2..]);
}

#[tokio::test(start_paused = true)]
async fn tool_image_is_stored_with_result_and_shown_after_it() {
    let model = ScriptedProvider::new(|prompt| match shown(prompt).len() {
        0 => vec![ScriptStep::Call("see".into(), json!({}))],
        _ => vec![ScriptStep::Say("a cat".into())],
    });
    let world = World::with_provider(Arc::clone(&model) as _).await;
    world.ground.tools.add_tool("see", ToolEffect::Pure, ToolConsent::NotNeeded, |_| {
        Box::pin(async {
            ToolOutcome { images: vec![("cat.png".to_owned(), image(1))], ..ToolOutcome::ok("cat.png") }
        })
    });
    assert_eq!(world.send_and_wait("look at cat.png").await.text, "a cat");
    let prompt = model.prompts().pop().unwrap();
    let [.., PromptMessage::ToolResult { content, .. }, PromptMessage::User { text, images: seen }] =
        &prompt.messages[..]
    else {
        panic!("{prompt:?}")
    };
    assert_eq!((content.as_str(), seen), ("cat.png", &vec![image(1)]));
    assert!(text.contains("origin=\"image of a tool\""), "{text}");
    let stored = world.transcript("me").await;
    assert_eq!(attached_images(&stored[2].parts).next().unwrap().hash(), image(1).hash());
    assert!(is_kept(&world, &image(1)).await);
}

/// What a prompt shows comes from the database: nothing else of a turn holds what was sent or drawn.
#[tokio::test(start_paused = true)]
async fn turn_does_not_retain_image_bytes() {
    let model = ScriptedProvider::new(|prompt| match shown(prompt).len() {
        1 => vec![ScriptStep::Call("draw".into(), json!({ "n": 1 }))],
        2 => vec![ScriptStep::Call("draw".into(), json!({ "n": 2 }))],
        _ => vec![ScriptStep::Say("drawn".into())],
    });
    let world = World::with_provider(model).await;
    let (sent, drawn): (Arc<[u8]>, Arc<[u8]>) = (image(1).bytes().into(), image(2).bytes().into());
    let holders = Arc::new(Mutex::new(Vec::new()));
    let (seen, looked_at) = (Arc::clone(&holders), [&sent, &drawn].map(Arc::downgrade));
    world.ground.tools.add_tool("draw", ToolEffect::Pure, ToolConsent::NotNeeded, move |_| {
        seen.lock().unwrap().push(looked_at.each_ref().map(std::sync::Weak::strong_count));
        let again = Image::from_bytes(looked_at[1].upgrade().unwrap()).unwrap();
        Box::pin(async { ToolOutcome { images: vec![("a.png".into(), again)], ..ToolOutcome::ok("a.png") } })
    });
    let asked = showing("draw it", &[Image::from_bytes(Arc::clone(&sent)).unwrap()]);
    let accepted = world.engine.accept_message(asked).await.unwrap();
    assert_eq!(world.wait_answer(&accepted).await.text, "drawn");
    assert_eq!(*holders.lock().unwrap(), [[1, 1], [1, 1]], "the test itself holds each once");
}

#[tokio::test(start_paused = true)]
async fn newest_large_images_are_shown_up_to_size_limit() {
    let model = ScriptedProvider::echo();
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let large = |n: u8| Image::from_bytes([PIXEL, &vec![n; MAX_IMAGE_BYTES - PIXEL.len()]].concat()).unwrap();
    let all: Vec<_> = (0..6).map(large).collect();
    for text in ["look", "again"] {
        let sent = if text == "look" { &all[..] } else { &[] };
        let accepted = world.engine.accept_message(showing(text, sent)).await.unwrap();
        world.wait_answer(&accepted).await;
        assert!(shown(model.prompts().last().unwrap()) == all[2..], "{text}: the newest four");
    }
}

#[tokio::test(start_paused = true)]
async fn image_is_deleted_with_last_session_using_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut ground = World::new().await.kill().await;
    ground.settings.retention.folder = folder.path().join("archive");
    let world = ground.start_engine(KillPointFaults::no_kill());
    for name in ["me", "you"] {
        let inbound = IngressMessage { session: World::session_key(name), ..showing("look", &[image(1)]) };
        let accepted = world.engine.accept_message(inbound).await.unwrap();
        world.wait_answer(&accepted).await;
    }
    world.wait_settled().await;
    world.engine.delete_session(&World::session_key("you")).await.unwrap();
    assert!(is_kept(&world, &image(1)).await);
    world.ground.clock.set_time(31 * 24 * 60 * 60 * 1000);
    assert_eq!(world.engine.clean_up_sessions(CleanupMode::Real).await.unwrap().removed, 1);
    assert!(!is_kept(&world, &image(1)).await);
}
