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
use polyclaw_testkit::{Faulty, Line, Script, Scripted, last_user};
use serde_json::json;

use crate::approvals::{by_owner, question};
use crate::families::{results, said, task};

fn spawn() -> Script {
    vec![Line::Call("sessions_spawn".into(), json!({ "task": "do part 1" }))]
}

/// Interrupted after its first tool, it begins a child when it goes on.
fn interrupted(prompt: &Prompt) -> Script {
    let all = said(prompt);
    if task(prompt).contains("do part") {
        return vec![Line::Pause(Duration::from_secs(1)), Line::Say("part 1 is done".into())];
    }
    match (all.contains("[Context:"), last_user(prompt).contains("quick"), results(prompt)) {
        (true, ..) => vec![Line::Say("the child is done".into())],
        (_, true, _) => vec![Line::Say("quick answer".into())],
        (.., 0) => vec![Line::Pause(Duration::from_secs(2)), Line::Call("look".into(), json!({}))],
        _ if all.contains("run_id") => vec![Line::Call("sessions_yield".into(), json!({}))],
        _ => spawn(),
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_interrupted_task_begins_is_answered_where_the_task_was_asked_for() {
    let world = World::with(Scripted::new(interrupted)).await;
    world.sends("me", "work").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.sends("me", "quick").await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.settled().await;
    let visible: Vec<String> = world.ground.outlet.visible().into_iter().map(|(_, text)| text).collect();
    assert!(visible.contains(&"quick answer".to_owned()), "{visible:?}");
    assert!(visible.contains(&"the child is done".to_owned()), "{visible:?}");
}

/// Begins a child, rests, and says what it heard.
fn resting(prompt: &Prompt) -> Script {
    if task(prompt).contains("do part") {
        return vec![Line::Pause(Duration::from_secs(1)), Line::Say("part 1 is done".into())];
    }
    match (said(prompt).contains("[Context:"), results(prompt)) {
        (true, _) => vec![Line::Say("told".into())],
        (_, 0) => spawn(),
        _ => vec![Line::Call("sessions_yield".into(), json!({}))],
    }
}

#[tokio::test(start_paused = true)]
async fn rules_about_a_sender_hold_for_all_that_is_done_for_them() {
    let model = Scripted::new(resting);
    let mut ground = World::with(Arc::clone(&model) as _).await.killed().await;
    let rule = serde_json::from_value(json!({ "deny": ["pay"] })).unwrap();
    ground.settings.tools.senders.insert("chat:test:you".to_owned(), rule);
    let world = ground.wake(Faulty::never());
    let has_pay = |prompt: &Prompt| prompt.tools.iter().any(|tool| tool.name == "pay");
    for (name, allowed) in [("you", false), ("me", true)] {
        let before = model.prompts().len();
        world.sends(name, "begin").await.unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        world.settled().await;
        let prompts = model.prompts().split_off(before);
        let is_child = |prompt: &&Prompt| task(prompt).contains("do part");
        let is_told = |prompt: &&Prompt| said(prompt).contains("[Context:");
        assert!(
            prompts.iter().any(|prompt| is_child(&prompt)) && prompts.iter().any(|prompt| is_told(&prompt))
        );
        assert!(prompts.iter().all(|prompt| has_pay(prompt) == allowed), "{name}");
    }
}

/// Answers slowly where it is asked to; its child is done by then.
fn slow(prompt: &Prompt) -> Script {
    match last_user(prompt).contains("slow") {
        true => vec![Line::Pause(Duration::from_secs(10)), Line::Say("slowly".into())],
        false => resting(prompt),
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_person_asks_comes_after_what_a_child_told() {
    let model = Scripted::new(slow);
    let world = World::with(Arc::clone(&model) as _).await;
    world.sends("me", "begin").await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.sends("me", "slow").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.sends("me", "fresh").await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.settled().await;
    let prompts = model.prompts();
    let told = prompts.iter().map(said).find(|text| text.contains("[Context:")).unwrap();
    assert!(told.find("[Context:") < told.find("user fresh") && told.contains("user fresh"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn the_words_of_a_failure_are_for_people_and_not_the_models_own() {
    let model = Scripted::new(|prompt| match last_user(prompt) {
        "fail" => vec![Line::Fail(ProviderError {
            class: ErrorClass::Unreachable,
            model: "lab/m".into(),
            message: "nobody listens".into(),
            retry_after_ms: None,
        })],
        _ => vec![Line::Say("fine".into())],
    });
    let world = World::with(Arc::clone(&model) as _).await;
    assert!(world.says("fail").await.text.contains("could not get an answer"));
    assert_eq!(world.says("again").await.text, "fine");
    let shown = said(model.prompts().last().unwrap());
    assert_eq!(shown, "user fail\nassistant [no answer: provider_failed]\nuser again\n");
}

#[tokio::test(start_paused = true)]
async fn an_owner_has_a_model_picked_wherever_they_write_and_for_others_an_owner_is_asked() {
    let model = Scripted::new(|prompt| match results(prompt) {
        0 => vec![Line::Call("session_set_model".into(), json!({ "model_ref": "lab/x" }))],
        _ => vec![Line::Say(said(prompt))],
    });
    let world = World::with(model).await;
    let mut guest = World::inbound("me", "switch");
    Authority::Guest.write_to_meta(&mut guest.meta);
    let accepted = world.engine.accept_message(guest).await.unwrap();
    let id = question(&world).await;
    decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Deny)).await.unwrap();
    world.answer(&accepted).await;
    assert_eq!(world.engine.load_session(&World::key("me")).await.unwrap().model_override, None);
    let own = world.sends("you", "switch").await.unwrap();
    assert!(
        world.answer(&own).await.text.contains("lab/x answers from the next turn on"),
        "an owner in a chat"
    );
    let home = SessionKey::for_direct(&AgentId::main(), "web", "me");
    let address =
        ChatAddress { channel: "web".into(), account: String::new(), peer: "me".into(), thread: None };
    let asked = IngressMessage::from_person(home, AgentId::main(), address, "switch");
    let accepted = world.engine.accept_message(asked).await.unwrap();
    assert!(world.answer(&accepted).await.text.contains("lab/x answers from the next turn on"));
}
