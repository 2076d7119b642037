use std::sync::Arc;

use polyclaw_domain::approval::Decision;
use polyclaw_domain::id::ApprovalId;
use polyclaw_domain::tool::{Consent, Effect, ToolOutcome};
use polyclaw_engine::hub::{FrameKind, Watch};
use polyclaw_engine::ingress::Inbound;
use polyclaw_engine::{Error, decide};
use polyclaw_store::approvals;
use polyclaw_testkit::world::{Ground, World};
use polyclaw_testkit::{Faulty, Line, Scripted};
use serde_json::json;

use crate::glance;

pub async fn ground() -> Ground {
    let model = Scripted::new(|prompt| {
        let asked = polyclaw_testkit::last_user(prompt);
        let done = prompt
            .messages
            .iter()
            .any(|m| matches!(m, polyclaw_domain::provider::PromptMessage::ToolResult { .. }));
        match asked {
            "run it" if !done => vec![Line::Call("danger".into(), json!({ "command": "rm" }))],
            _ => vec![Line::Say("fine".into())],
        }
    });
    let ground = World::with(model).await.killed().await;
    ground
        .tools
        .add("danger", Effect::Effect, Consent::AskPerson, |_| Box::pin(async { ToolOutcome::ok("it ran") }));
    ground
}

pub fn from_terminal(text: &str) -> Inbound {
    let mut inbound = World::inbound("me", text);
    inbound.address.channel = "cli".into();
    inbound
}

pub async fn question(world: &World) -> ApprovalId {
    loop {
        let now = world.engine.now();
        let pending = world.engine.db().read(move |tx| approvals::pending(tx, now)).await.unwrap();
        match pending.into_iter().next() {
            Some(approval) => return approval.id,
            None => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
        }
    }
}

/// The next question that is no longer asked, and why.
async fn closed(watch: &mut Watch) -> (ApprovalId, &'static str) {
    loop {
        if let FrameKind::ApprovalDecided { approval_id, state } = &watch.recv().await.unwrap().kind {
            return (approval_id.clone(), state);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_says_yes_and_it_runs_once() {
    let world = ground().await.wake(Faulty::never());
    let accepted = world.engine.accept(from_terminal("run it")).await.unwrap();
    let id = question(&world).await;
    decide(&world.engine, &id, Decision::Approve, None).await.unwrap();
    world.answer(&accepted).await;
    assert_eq!(glance(&world.transcript("me").await)[2], "result it ran");
    let again = decide(&world.engine, &id, Decision::Approve, None).await;
    assert!(matches!(again, Err(Error::NotNow(_))), "a second tap is refused");
}

#[tokio::test(start_paused = true)]
async fn a_person_says_no() {
    let world = ground().await.wake(Faulty::never());
    let accepted = world.engine.accept(from_terminal("run it")).await.unwrap();
    let id = question(&world).await;
    decide(&world.engine, &id, Decision::Deny, Some("too risky".into())).await.unwrap();
    assert_eq!(world.answer(&accepted).await.text, "fine");
    assert_eq!(glance(&world.transcript("me").await)[2], "result The user did not allow this. too risky");
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_for_half_an_hour_and_the_turn_goes_on() {
    let mut ground = ground().await;
    ground.settings.turn_ms = 3_600_000;
    let world = ground.wake(Faulty::never());
    let inbound = from_terminal("run it");
    let mut watch = world.engine.hub.watch(&inbound.session);
    let accepted = world.engine.accept(inbound).await.unwrap();
    let id = question(&world).await;
    assert_eq!(closed(&mut watch).await, (id.clone(), "expired"), "whoever shows it takes it away");
    let late = decide(&world.engine, &id, Decision::Approve, None).await;
    assert!(matches!(late, Err(Error::NotNow(why)) if why.contains("expired")));
    assert_eq!(world.answer(&accepted).await.text, "fine");
    assert!(glance(&world.transcript("me").await)[2].starts_with("result Nobody answered"));
}

#[tokio::test(start_paused = true)]
async fn a_question_survives_a_crash() {
    let ground = ground().await;
    let world = ground.wake(Faulty::never());
    let accepted = world.engine.accept(from_terminal("run it")).await.unwrap();
    let id = question(&world).await;
    let world = world.killed().await.wake(Faulty::never());
    decide(&world.engine, &id, Decision::Approve, None).await.unwrap();
    world.answer(&accepted).await;
    assert_eq!(glance(&world.transcript("me").await)[2], "result it ran");
}

#[tokio::test(start_paused = true)]
async fn another_message_is_no_approval() {
    let world = ground().await.wake(Faulty::never());
    let accepted = world.engine.accept(from_terminal("run it")).await.unwrap();
    let id = question(&world).await;
    let mut watch = world.engine.hub.watch(&World::inbound("me", "").session);
    let yes = world.engine.accept(from_terminal("yes, do it")).await.unwrap();
    assert_eq!(world.answer(&yes).await.text, "fine");
    assert_eq!(closed(&mut watch).await, (id, "expired"));
    world.answer(&accepted).await;
    let transcript = glance(&world.transcript("me").await);
    assert!(transcript[2].starts_with("result The user wrote something else"), "{transcript:?}");
}

#[tokio::test(start_paused = true)]
async fn where_nobody_can_be_asked_the_tool_is_not_there() {
    let ground = ground().await;
    let world = Arc::new(ground.wake(Faulty::never()));
    world.says("run it").await;
    assert_eq!(glance(&world.transcript("me").await)[2], "result There is no tool 'danger' here.");
}
