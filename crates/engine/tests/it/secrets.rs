//! Nothing that must not be seen is stored, shown or sent, whoever brings it in.

use std::sync::{Arc, Mutex};

use polyclaw_domain::agent::{ContextPolicy, MemoryScope};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::media::Image;
use polyclaw_domain::memory::MemoryViewer;
use polyclaw_domain::message::{MessageAttachment, MessagePart, tool_calls};
use polyclaw_domain::provider::{ErrorClass, ProviderError};
use polyclaw_domain::redact::{REDACTION_MARK, Redactor};
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_engine::hub::{FrameReplay, HubFrame};
use polyclaw_store::{events, jobs, outbox, sessions};

use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, PIXEL, ScriptStep, ScriptedProvider};
use serde_json::json;

const CANARY: &str = "canary-4711-secret";
/// Belongs to nobody here.
const KEY: &str = "ghp_0123456789abcdefghijABCDEFGHIJ0123456789";

fn knowing(world: &World) {
    let mut settings = world.ground.settings.clone();
    settings.redactor = Arc::new(Redactor::new([CANARY]));
    world.engine.reload_settings(settings);
}

fn frames(world: &World) -> Vec<Arc<HubFrame>> {
    let (FrameReplay::From(frames), _) = world.engine.hub.subscribe_after(&World::session_key("me"), 0)
    else {
        panic!()
    };
    frames
}

/// Everything that can be read of a world, as one text.
async fn seen(world: &World) -> String {
    let frames: Vec<String> =
        frames(world).iter().map(|frame| serde_json::to_string(&**frame).unwrap()).collect();
    // As a client puts deltas together.
    let deltas: String = frames.iter().filter_map(|frame| frame.split("\"text\":\"").nth(1)).collect();
    let stored = world.transcript("me").await;
    let rows = world.engine.db().read(|tx| {
        let key = World::session_key("me");
        Ok(format!(
            "{:?} {:?} {:?} {:?}",
            events::list(tx, 0, None, None, 1000)?,
            jobs::list(tx, Some(&key), None, 100)?,
            sessions::get(tx, &key)?,
            outbox::list(tx, None, "", 100)?,
        ))
    });
    let sent = world.ground.fake_channel.visible_messages();
    format!("{frames:?} {deltas} {stored:?} {} {sent:?}", rows.await.unwrap())
}

#[track_caller]
fn assert_clean(seen: &str) {
    for secret in [CANARY, "4711-secret", KEY, "Y2FuYXJ5LTQ3MTEtc2Vjcm"] {
        assert!(!seen.contains(secret), "{secret} is in {seen}");
    }
    assert!(seen.contains(REDACTION_MARK));
}

#[tokio::test(start_paused = true)]
async fn pasted_secret_is_redacted_from_model_store_and_frames() {
    let model = ScriptedProvider::echo();
    let world = World::with_provider(Arc::clone(&model) as _).await;
    knowing(&world);
    let mut inbound = World::inbound("me", &format!("use {CANARY} and {KEY}"));
    inbound.parts = vec![MessagePart::Attachment(MessageAttachment {
        name: "notes.txt".into(),
        media_type: "text/plain".into(),
        url: Some(format!("https://x.example/?k={CANARY}")),
        text: Some(json!({ "deep": [{ "key": CANARY }] }).to_string()),
        media: None,
    })];
    inbound.meta = Some(json!({ "instructions": format!("the key is {CANARY}") }));
    let accepted = world.engine.accept_message(inbound).await.unwrap();
    world.wait_answer(&accepted).await;
    world.wait_settled().await;
    assert_clean(&seen(&world).await);
    assert_clean(&format!("{:?}", model.prompts()));
}

#[tokio::test(start_paused = true)]
async fn secret_in_tool_output_is_redacted_everywhere() {
    let model = ScriptedProvider::new(|prompt| match prompt.messages.len() {
        1 => vec![ScriptStep::Call("leak".into(), json!({}))],
        _ => vec![ScriptStep::Say("done".into())],
    });
    let world = World::with_provider(Arc::clone(&model) as _).await;
    knowing(&world);
    world.ground.tools.add_tool("leak", ToolEffect::Pure, ToolConsent::NotNeeded, |_| {
        Box::pin(async {
            let text = format!("env: KEY={CANARY} {KEY} Y2FuYXJ5LTQ3MTEtc2VjcmV0 {}", json!({ "a": CANARY }));
            let image = Image::from_bytes(PIXEL).unwrap();
            ToolOutcome { images: vec![(format!("{CANARY}.png"), image)], ..ToolOutcome::ok(text) }
        })
    });
    assert_eq!(world.send_and_wait("go").await.text, "done");
    assert_clean(&seen(&world).await);
    assert_clean(&format!("{:?}", model.prompts()));
}

#[tokio::test(start_paused = true)]
async fn secret_streamed_in_pieces_is_redacted_in_deltas_and_answer() {
    let pieces: Vec<ScriptStep> = format!("it is {CANARY}, or {KEY}, I think")
        .chars()
        .map(|c| ScriptStep::Say(c.to_string()))
        .collect();
    let world = World::with_provider(ScriptedProvider::new(move |_| pieces.clone())).await;
    knowing(&world);
    let answer = world.send_and_wait("what is it?").await;
    assert_eq!(answer.text, format!("it is {REDACTION_MARK}, or {REDACTION_MARK}, I think"));
    world.wait_settled().await;
    assert_clean(&seen(&world).await);
    let deltas: Vec<String> = frames(&world)
        .iter()
        .filter_map(|frame| serde_json::to_value(&**frame).ok())
        .filter(|frame| frame["event"] == "turn.delta")
        .filter_map(|frame| frame["text"].as_str().map(str::to_owned))
        .collect();
    // Up to three letters of a value are out before it can be told from a word.
    assert_eq!(deltas.concat(), format!("it is can{REDACTION_MARK}, or ghp{REDACTION_MARK}, I think"));
    assert!(deltas.len() > 20, "the rest is not held back: {}", deltas.len());
}

#[tokio::test(start_paused = true)]
async fn call_with_example_credential_runs_and_is_stored_redacted() {
    let ran: Arc<Mutex<Vec<String>>> = Arc::default();
    let model = ScriptedProvider::new(|prompt| match prompt.messages.len() {
        1 => vec![ScriptStep::Call("write".into(), json!({ "text": "postgres://app:s3cr3t77@db/app" }))],
        3 => vec![ScriptStep::Call("write".into(), json!({ "text": format!("curl -d {CANARY}") }))],
        5 => vec![ScriptStep::Call("write".into(), json!({ "text": format!("KEY={REDACTION_MARK}") }))],
        _ => vec![ScriptStep::Say("done".into())],
    });
    let world = World::with_provider(model).await;
    knowing(&world);
    let seen_by_tool = Arc::clone(&ran);
    world.ground.tools.add_tool("write", ToolEffect::Effect, ToolConsent::NotNeeded, move |call| {
        seen_by_tool.lock().unwrap().push(call.arguments["text"].to_string());
        Box::pin(async { ToolOutcome::ok("written") })
    });
    world.send_and_wait("go").await;
    assert_eq!(*ran.lock().unwrap(), ["\"postgres://app:s3cr3t77@db/app\""], "the other two were refused");
    let transcript = world.transcript("me").await;
    let results: Vec<&str> =
        transcript.iter().filter(|m| m.role.as_str() == "tool").map(|m| m.text.as_str()).collect();
    assert!(
        results[0] == "written" && results[1..].iter().all(|text| text.starts_with("Not run:")),
        "{results:?}"
    );
    let seen = seen(&world).await;
    assert_clean(&seen);
    assert!(!seen.contains("s3cr3t77"));
}

#[tokio::test(start_paused = true)]
async fn redacted_call_is_not_run_after_crash() {
    let model = ScriptedProvider::new(|prompt| match prompt.messages.len() {
        1 => vec![ScriptStep::Call("put".into(), json!({ "text": "postgres://app:s3cr3t77@db/app" }))],
        _ => vec![ScriptStep::Say("done".into())],
    });
    let ground = DurableWorld::from_db(polyclaw_store::Db::in_memory().unwrap(), model).await;
    let faults = KillPointFaults::at_point(polyclaw_domain::kill_points::KillPoint::StepStored, 1);
    let world = ground.start_engine(Arc::clone(&faults));
    let accepted = world.send_text("me", "go").await.unwrap();
    faults.wait_killed().await;
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    assert_eq!(world.wait_answer(&accepted).await.text, "done");
    assert!(world.ground.tools.run_counts().is_empty(), "it was not run");
    let transcript = world.transcript("me").await;
    assert!(tool_calls(&transcript[1].parts).all(|call| !call.arguments.to_string().contains("s3cr3t77")));
    assert!(transcript[2].text.starts_with("Not run:"), "{:?}", transcript[2]);
}

#[tokio::test(start_paused = true)]
async fn secret_in_provider_or_platform_error_is_redacted() {
    let model = ScriptedProvider::new(|_| {
        vec![ScriptStep::Fail(ProviderError {
            class: ErrorClass::Auth,
            model: "scripted/model".into(),
            message: format!("the key {CANARY} is wrong, {KEY} too"),
            retry_after_ms: None,
        })]
    });
    let world = World::with_provider(model).await;
    knowing(&world);
    let reason = format!("401 from https://hook.example/{CANARY}");
    world.ground.fake_channel.plan_answer(polyclaw_domain::channel::SendOutcome::Rejected { reason });
    let answer = world.send_and_wait("hi").await;
    assert!(answer.text.contains(REDACTION_MARK), "{}", answer.text);
    world.wait_settled().await;
    assert_clean(&seen(&world).await);
}

#[tokio::test(start_paused = true)]
async fn secret_is_refused_in_session_and_idempotency_keys() {
    let world = World::new().await;
    knowing(&world);
    let refused = world.send_text(CANARY, "hi").await.unwrap_err();
    assert_eq!(refused.code(), "secret_in_key");
    let mut inbound = World::inbound("me", "hi");
    inbound.idempotency_key = Some(CANARY.to_owned());
    assert_eq!(world.engine.accept_message(inbound).await.unwrap_err().code(), "secret_in_key");
}

#[tokio::test(start_paused = true)]
async fn newly_known_secret_is_redacted_in_later_prompts() {
    let model = ScriptedProvider::echo();
    let world = World::with_provider(Arc::clone(&model) as _).await;
    world.send_and_wait(&format!("remember {CANARY}")).await;
    knowing(&world);
    world.send_and_wait("what was it?").await;
    let prompts = model.prompts();
    assert!(format!("{:?}", prompts[0]).contains(CANARY) && !format!("{:?}", prompts[1]).contains(CANARY));
}

#[tokio::test(start_paused = true)]
async fn secret_is_redacted_in_stored_memory() {
    let world = World::with_provider(ScriptedProvider::echo()).await;
    knowing(&world);
    let memories = world.engine.memory_store();
    let viewer =
        MemoryViewer::for_session(&AgentId::main(), &World::session_key("me"), &ContextPolicy::default());
    let text = format!("the key is {CANARY}");
    let stored =
        memories.put_memories(vec![memories.new_memory(&viewer, MemoryScope::Agent, text)]).await.unwrap();
    assert_eq!(stored[0].content, format!("the key is {REDACTION_MARK}"));
}
