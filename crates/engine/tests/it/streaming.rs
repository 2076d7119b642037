//! Delegation that people watch: the other agent's words under its name, then the caller's, each once.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::agent::{AgentSpec, DelegationPolicy};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::provider::{ErrorClass, Prompt, PromptMessage, ProviderError};
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::{ToolConsent, ToolEffect};
use polyclaw_engine::hub::FrameKind;
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_store::Db;
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider};
use serde_json::json;

const EXPERT: &str = "expert: e0 e1 e2 e3 e4 e5 ";
const CALLER: &str = "c0 c1 c2 c3 ";

fn slowly(character: char, words: usize) -> ModelScript {
    (0..words)
        .flat_map(|n| {
            [ScriptStep::Pause(Duration::from_secs(1)), ScriptStep::Say(format!("{character}{n} "))]
        })
        .collect()
}

fn is_expert(prompt: &Prompt) -> bool {
    matches!(prompt.messages.first(), Some(PromptMessage::User { text, .. }) if text.contains("the task"))
}

fn has_result(prompt: &Prompt) -> bool {
    prompt.messages.iter().any(|message| matches!(message, PromptMessage::ToolResult { .. }))
}

fn delegate(timeout_ms: u64) -> ScriptStep {
    let asked = json!({ "agent_id": "expert", "task": "the task", "stream": true, "timeout_ms": timeout_ms });
    ScriptStep::Call("delegate_to_agent".into(), asked)
}

/// The caller asks the expert, whom people watch, and then says something itself.
fn call_expert_then_answer(prompt: &Prompt) -> ModelScript {
    match (is_expert(prompt), has_result(prompt)) {
        (true, _) => slowly('e', 6),
        (false, false) => vec![delegate(60_000)],
        (false, true) => slowly('c', 4),
    }
}

async fn ground(author: impl Fn(&Prompt) -> ModelScript + Send + Sync + 'static) -> DurableWorld {
    let ground = DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::new(author)).await;
    ground.add_agent("expert").await;
    let delegation =
        DelegationPolicy { allow_agents: vec!["expert".into()], max_concurrent: 2, max_depth: 1 };
    let spec = AgentSpec { delegation: Some(delegation), ..AgentSpec::with_id(AgentId::main()) };
    let write =
        move |tx: &mut polyclaw_store::Tx<'_>| agents::upsert(tx, &spec, AgentSource::Config, Millis(1));
    ground.db.write(write).await.unwrap();
    ground.fake_channel.allow_edits();
    ground
}

fn visible(world: &World) -> Vec<String> {
    world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect()
}

#[tokio::test(start_paused = true)]
async fn delegate_text_streams_before_caller_text() {
    let world = ground(call_expert_then_answer).await.start_engine(KillPointFaults::no_kill());
    let mut watch = world.engine.hub.subscribe(&World::session_key("me"));
    let accepted = world.send_text("me", "ask").await.unwrap();
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    let shown = visible(&world);
    assert!(shown.len() == 1 && shown[0].starts_with("expert: e0 e1"), "{shown:?}");
    assert!(shown[0].ends_with(" …"), "{shown:?}");
    world.wait_answer(&accepted).await;
    world.wait_settled().await;
    assert_eq!(visible(&world), [EXPERT, CALLER]);
    let mut lines = Vec::new();
    while let Ok(Some(frame)) = tokio::time::timeout(Duration::from_secs(1), watch.recv()).await {
        match &frame.kind {
            FrameKind::DelegateDelta { speaker, text } => {
                assert_eq!((speaker.name.as_str(), &speaker.turn_id), ("expert", &accepted.turn_id));
                lines.push(text.clone());
            }
            FrameKind::DelegateEnded { text, is_whole, .. } => lines.push(format!("[{text}|{is_whole}]")),
            FrameKind::Delta { text, .. } => lines.push(text.clone()),
            _ => {}
        }
    }
    assert_eq!(lines.concat(), "e0 e1 e2 e3 e4 e5 [e0 e1 e2 e3 e4 e5 |true]c0 c1 c2 c3 ");
}

fn keyed() -> IngressMessage {
    IngressMessage { idempotency_key: Some("once".into()), ..World::inbound("me", "ask") }
}

/// What is there twice is shown twice; a draft that nobody knows of may be left, and says that it goes on.
fn each_once(shown: &[String], case: &str) {
    for text in [EXPERT, CALLER] {
        assert_eq!(shown.iter().filter(|shown| *shown == text).count(), 1, "{case}: {shown:?}");
    }
    let left = shown.iter().filter(|text| text.ends_with('…')).count();
    assert!(left <= 1 && left + 2 == shown.len(), "{case}: {shown:?}");
    let place = |text: &str| shown.iter().position(|shown| shown == text);
    assert!(place(EXPERT) < place(CALLER), "{case}: {shown:?}");
}

#[tokio::test(start_paused = true)]
async fn streamed_texts_appear_once_in_order_at_every_kill_point() {
    let points = [
        KillPoint::TurnClaimed,
        KillPoint::PromptBuilt,
        KillPoint::MidStream,
        KillPoint::ReplyReceived,
        KillPoint::StepStored,
        KillPoint::IntentStored,
        KillPoint::ToolRan,
        KillPoint::ResultStored,
        KillPoint::FinishBefore,
        KillPoint::FinishCommitted,
        KillPoint::OutboxSending,
        KillPoint::OutboxAccepted,
        KillPoint::OutboxRecorded,
    ];
    for point in points {
        for n in 1..=3 {
            let faults = KillPointFaults::at_point(point, n);
            let world = ground(call_expert_then_answer).await.start_engine(Arc::clone(&faults));
            let _ = tokio::time::timeout(Duration::from_secs(1), world.engine.accept_message(keyed())).await;
            let _ = tokio::time::timeout(Duration::from_secs(60), faults.wait_killed()).await;
            let world = world.kill().await.start_engine(KillPointFaults::no_kill());
            world.engine.accept_message(keyed()).await.unwrap();
            tokio::time::sleep(Duration::from_secs(90)).await;
            world.wait_settled().await;
            each_once(&visible(&world), &format!("{point:?} {n}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn caller_text_before_delegation_stays_above_delegate_text() {
    fn author(prompt: &Prompt) -> ModelScript {
        match (is_expert(prompt), has_result(prompt)) {
            (true, _) => slowly('e', 6),
            (false, false) => slowly('a', 3).into_iter().chain([delegate(60_000)]).collect(),
            (false, true) => slowly('c', 4),
        }
    }
    let world = ground(author).await.start_engine(KillPointFaults::no_kill());
    let accepted = world.send_text("me", "ask").await.unwrap();
    world.wait_answer(&accepted).await;
    world.wait_settled().await;
    assert_eq!(visible(&world), ["a0 a1 a2 ", EXPERT, CALLER]);
}

fn no() -> ScriptStep {
    let (message, model) = ("no".into(), "scripted/model".into());
    ScriptStep::Fail(ProviderError { class: ErrorClass::BadRequest, message, model, retry_after_ms: None })
}

/// The caller says what it was answered; the expert says three words, and then what a case is about.
fn asks_expert_that_continues(
    with: fn(&Prompt) -> ModelScript,
) -> impl Fn(&Prompt) -> ModelScript + Send + Sync {
    move |prompt| match (is_expert(prompt), prompt.messages.last()) {
        (true, _) if has_result(prompt) => with(prompt),
        (true, _) => slowly('e', 3).into_iter().chain(with(prompt)).collect(),
        (false, Some(PromptMessage::ToolResult { content, .. })) => vec![ScriptStep::Say(content.clone())],
        (false, _) => vec![delegate(3_500)],
    }
}

#[tokio::test(start_paused = true)]
async fn interrupted_delegate_text_is_marked_and_returned_to_caller() {
    let time_over = ("(Cut short: time limit reached.)", "timeout");
    let failed = ("(Cut short: failed.)", "error");
    type Case = (fn(&Prompt) -> ModelScript, (&'static str, &'static str));
    let cases: [(&str, Case); 5] = [
        ("in its words", (|_| vec![ScriptStep::Hang], time_over)),
        ("in a tool", (|_| vec![ScriptStep::Call("nap".into(), json!({}))], time_over)),
        ("in its words", (|_| vec![no()], failed)),
        ("in the words of another model", (|_| vec![ScriptStep::Restart, no()], failed)),
        (
            "in the call after a tool",
            (
                |prompt| {
                    vec![if has_result(prompt) { no() } else { ScriptStep::Call("look".into(), json!({})) }]
                },
                failed,
            ),
        ),
    ];
    for (case, (with, (mark, status))) in cases {
        let ground = ground(asks_expert_that_continues(with)).await;
        ground
            .tools
            .add_tool("nap", ToolEffect::Pure, ToolConsent::NotNeeded, |_| Box::pin(std::future::pending()));
        let world = ground.start_engine(KillPointFaults::no_kill());
        let mut watch = world.engine.hub.subscribe(&World::session_key("me"));
        let accepted = world.send_text("me", "ask").await.unwrap();
        let answer = world.wait_answer(&accepted).await.text;
        world.wait_settled().await;
        let shown = visible(&world);
        assert_eq!(shown.len(), 2, "{case}: {shown:?}");
        assert_eq!(shown[0], format!("expert: e0 e1 e2 \n\n{mark}"), "{case}");
        assert!(answer.contains("\"partial_response\":\"e0 e1 e2 \""), "{case}: {answer}");
        assert!(answer.contains(&format!("\"status\":\"{status}\"")), "{case}: {answer}");
        let reply = loop {
            match &watch.recv().await.unwrap().kind {
                FrameKind::DelegateEnded { text, .. } => break text.clone(),
                _ => continue,
            }
        };
        assert_eq!(reply, format!("e0 e1 e2 \n\n{mark}"), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn draining_engine_lets_delegate_resume_after_restart() {
    let world = ground(call_expert_then_answer).await.start_engine(KillPointFaults::no_kill());
    world.engine.accept_message(keyed()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.engine.start_draining();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    each_once(&visible(&world), "drained");
}
