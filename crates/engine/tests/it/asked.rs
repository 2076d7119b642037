//! For whom a family works: where its answers go, whose rules hold for it, and what is asked last.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::provider::{ErrorClass, Prompt, ProviderError};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::decide_approval;
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider, last_user_text};
use serde_json::json;

use crate::approvals::{by_owner, question};
use crate::families::{results, said, task};

fn spawn() -> ModelScript {
    vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part 1" }))]
}

/// Interrupted after its first tool, it begins a child when it goes on.
fn interrupted(prompt: &Prompt) -> ModelScript {
    let all = said(prompt);
    if task(prompt).contains("do part") {
        return vec![ScriptStep::Pause(Duration::from_secs(1)), ScriptStep::Say("part 1 is done".into())];
    }
    match (all.contains("[Context:"), last_user_text(prompt).contains("quick"), results(prompt)) {
        (true, ..) => vec![ScriptStep::Say("the child is done".into())],
        (_, true, _) => vec![ScriptStep::Say("quick answer".into())],
        (.., 0) => {
            vec![ScriptStep::Pause(Duration::from_secs(2)), ScriptStep::Call("look".into(), json!({}))]
        }
        _ if all.contains("run_id") => vec![ScriptStep::Call("sessions_yield".into(), json!({}))],
        _ => spawn(),
    }
}

#[tokio::test(start_paused = true)]
async fn child_of_resumed_task_is_answered_in_original_chat() {
    let world = World::with_provider(ScriptedProvider::new(interrupted)).await;
    world.send_text("me", "work").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.send_text("me", "quick").await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.wait_settled().await;
    let visible: Vec<String> =
        world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect();
    assert!(visible.contains(&"quick answer".to_owned()), "{visible:?}");
    assert!(visible.contains(&"the child is done".to_owned()), "{visible:?}");
}

/// Begins a child, rests, and says what it heard.
fn resting(prompt: &Prompt) -> ModelScript {
    if task(prompt).contains("do part") {
        return vec![ScriptStep::Pause(Duration::from_secs(1)), ScriptStep::Say("part 1 is done".into())];
    }
    match (said(prompt).contains("[Context:"), results(prompt)) {
        (true, _) => vec![ScriptStep::Say("told".into())],
        (_, 0) => spawn(),
        _ => vec![ScriptStep::Call("sessions_yield".into(), json!({}))],
    }
}

#[tokio::test(start_paused = true)]
async fn sender_tool_rule_applies_to_children_and_announces() {
    let model = ScriptedProvider::new(resting);
    let mut ground = World::with_provider(Arc::clone(&model) as _).await.kill().await;
    let rule = serde_json::from_value(json!({ "deny": ["pay"] })).unwrap();
    ground.settings.tools.senders.insert("chat:test:you".to_owned(), rule);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let has_pay = |prompt: &Prompt| prompt.tools.iter().any(|tool| tool.name == "pay");
    for (name, allowed) in [("you", false), ("me", true)] {
        let before = model.prompts().len();
        world.send_text(name, "begin").await.unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        world.wait_settled().await;
        let prompts = model.prompts().split_off(before);
        let is_child = |prompt: &&Prompt| task(prompt).contains("do part");
        let is_notified = |prompt: &&Prompt| said(prompt).contains("[Context:");
        assert!(
            prompts.iter().any(|prompt| is_child(&prompt))
                && prompts.iter().any(|prompt| is_notified(&prompt))
        );
        assert!(prompts.iter().all(|prompt| has_pay(prompt) == allowed), "{name}");
    }
}

/// Answers slowly where it is asked to; its child is done by then.
fn slow(prompt: &Prompt) -> ModelScript {
    match last_user_text(prompt).contains("slow") {
        true => vec![ScriptStep::Pause(Duration::from_secs(10)), ScriptStep::Say("slowly".into())],
        false => resting(prompt),
    }
}

#[tokio::test(start_paused = true)]
async fn announce_precedes_newer_user_message_in_prompt() {
    let model = ScriptedProvider::new(slow);
    let world = World::with_provider(Arc::clone(&model) as _).await;
    world.send_text("me", "begin").await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.send_text("me", "slow").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.send_text("me", "fresh").await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.wait_settled().await;
    let prompts = model.prompts();
    let reply = prompts.iter().map(said).find(|text| text.contains("[Context:")).unwrap();
    assert!(reply.find("[Context:") < reply.find("user fresh") && reply.contains("user fresh"), "{reply}");
}

#[tokio::test(start_paused = true)]
async fn failure_text_is_shown_to_user_but_not_to_model() {
    let model = ScriptedProvider::new(|prompt| match last_user_text(prompt) {
        "fail" => vec![ScriptStep::Fail(ProviderError {
            class: ErrorClass::Unreachable,
            model: "lab/m".into(),
            message: "nobody listens".into(),
            retry_after_ms: None,
        })],
        _ => vec![ScriptStep::Say("fine".into())],
    });
    let world = World::with_provider(Arc::clone(&model) as _).await;
    assert!(world.send_and_wait("fail").await.text.contains("The model did not answer"));
    assert_eq!(world.send_and_wait("again").await.text, "fine");
    let shown = said(model.prompts().last().unwrap());
    assert_eq!(shown, "user fail\nassistant [no answer: provider_failed]\nuser again\n");
}

#[tokio::test(start_paused = true)]
async fn owner_switches_model_directly_and_non_owner_needs_approval() {
    let model = ScriptedProvider::new(|prompt| match results(prompt) {
        0 => vec![ScriptStep::Call("session_set_model".into(), json!({ "model_ref": "lab/x" }))],
        _ => vec![ScriptStep::Say(said(prompt))],
    });
    let world = World::with_provider(model).await;
    let mut message = World::inbound("me", "switch");
    Authority::NonOwner.write_to_meta(&mut message.meta);
    let accepted = world.engine.accept_message(message).await.unwrap();
    let id = question(&world).await;
    decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Deny)).await.unwrap();
    world.wait_answer(&accepted).await;
    assert_eq!(world.engine.load_session(&World::session_key("me")).await.unwrap().model_override, None);
    let own = world.send_text("you", "switch").await.unwrap();
    assert!(
        world.wait_answer(&own).await.text.contains("lab/x answers from the next turn on"),
        "an owner in a chat"
    );
    let home = SessionKey::for_direct(&AgentId::main(), "web", "me");
    let address =
        ChatAddress { channel: "web".into(), account: String::new(), peer: "me".into(), thread: None };
    let asked = IngressMessage::from_person(home, AgentId::main(), address, "switch");
    let accepted = world.engine.accept_message(asked).await.unwrap();
    assert!(world.wait_answer(&accepted).await.text.contains("lab/x answers from the next turn on"));
}
