use polyclaw_domain::agent::{AgentSpec, DelegationPolicy};
use polyclaw_domain::approval::{ApprovalDecision, ApprovalResponder, ApprovalState, InvalidApproval};
use polyclaw_domain::channel::{InboundMessage, IngestOutcome};
use polyclaw_domain::command::CallerRole;
use polyclaw_domain::id::{AgentId, ApprovalId, TraceId};
use polyclaw_domain::policy::ApprovalMode;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_engine::hub::{FrameKind, HubSubscription};
use polyclaw_engine::ingress::{AcceptedMessage, IngressMessage, RelayInfo, RelayKind};
use polyclaw_engine::{ApprovalAnswer, Error, StateConflict, decide_approval};
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::messages;
use polyclaw_testkit::wait_until;
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider, inbound_dm, inbound_group};
use serde_json::json;

use crate::glance;

pub async fn ground() -> DurableWorld {
    let model = ScriptedProvider::new(|prompt| {
        let asked = polyclaw_testkit::last_user_text(prompt);
        let done = prompt
            .messages
            .iter()
            .any(|m| matches!(m, polyclaw_domain::provider::PromptMessage::ToolResult { .. }));
        match asked {
            "look" if !done => vec![ScriptStep::Call("look".into(), json!({}))],
            "run it" if !done => vec![ScriptStep::Call("danger".into(), json!({ "command": "rm" }))],
            _ => vec![ScriptStep::Say("fine".into())],
        }
    });
    let ground = World::with_provider(model).await.kill().await;
    ground.tools.add_tool("danger", ToolEffect::Effect, ToolConsent::AskPerson, |_| {
        Box::pin(async { ToolOutcome::ok("it ran") })
    });
    ground
}

pub fn by_owner(decision: ApprovalDecision) -> ApprovalAnswer {
    ApprovalAnswer { decision, reason: None, by: ApprovalResponder::Owner, shown: None }
}

pub fn from_terminal(text: &str) -> IngressMessage {
    let mut inbound = World::inbound("me", text);
    inbound.address.channel = "cli".into();
    inbound
}

pub async fn question(world: &World) -> ApprovalId {
    let first = async || world.engine.list_open_approvals().await.unwrap().into_iter().next();
    wait_until("it asks", async || first().await.is_some()).await;
    first().await.unwrap().id
}

/// The next approval request that is closed, with its state.
async fn closed(watch: &mut HubSubscription) -> (ApprovalId, String) {
    loop {
        if let FrameKind::ApprovalDecided { approval_id, state } = &watch.recv().await.unwrap().kind {
            return (approval_id.clone(), state.clone());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn approved_tool_call_runs_once() {
    let world = ground().await.start_engine(KillPointFaults::no_kill());
    let accepted = world.engine.accept_message(from_terminal("run it")).await.unwrap();
    let id = question(&world).await;
    decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Approve)).await.unwrap();
    world.wait_answer(&accepted).await;
    assert_eq!(glance(&world.transcript("me").await)[2], "result it ran");
    let again = decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Approve)).await;
    assert!(matches!(again, Err(Error::StateConflict(_))), "a second tap is refused");
}

#[tokio::test(start_paused = true)]
async fn denied_tool_call_does_not_run() {
    let world = ground().await.start_engine(KillPointFaults::no_kill());
    let accepted = world.engine.accept_message(from_terminal("run it")).await.unwrap();
    let id = question(&world).await;
    decide_approval(
        &world.engine,
        &id,
        ApprovalAnswer { reason: Some("too risky".into()), ..by_owner(ApprovalDecision::Deny) },
    )
    .await
    .unwrap();
    assert_eq!(world.wait_answer(&accepted).await.text, "fine");
    assert_eq!(glance(&world.transcript("me").await)[2], "result The user did not allow this. too risky");
}

#[tokio::test(start_paused = true)]
async fn approval_expires_after_half_an_hour_and_turn_continues() {
    let mut ground = ground().await;
    ground.settings.turn_ms = 3_600_000;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let inbound = from_terminal("run it");
    let mut watch = world.engine.hub.subscribe(&inbound.session);
    let accepted = world.engine.accept_message(inbound).await.unwrap();
    let id = question(&world).await;
    assert_eq!(
        closed(&mut watch).await,
        (id.clone(), "expired".to_owned()),
        "whoever shows it takes it away"
    );
    let late = decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Approve)).await;
    assert!(matches!(
        late,
        Err(Error::StateConflict(StateConflict::ApprovalDecided(ApprovalState::Expired)))
    ));
    assert_eq!(world.wait_answer(&accepted).await.text, "fine");
    assert!(
        glance(&world.transcript("me").await)[2].starts_with("result Not run: the approval request expired")
    );
}

#[tokio::test(start_paused = true)]
async fn pending_approval_survives_restart() {
    let ground = ground().await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let accepted = world.engine.accept_message(from_terminal("run it")).await.unwrap();
    let id = question(&world).await;
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Approve)).await.unwrap();
    world.wait_answer(&accepted).await;
    assert_eq!(glance(&world.transcript("me").await)[2], "result it ran");
}

#[tokio::test(start_paused = true)]
async fn new_message_expires_pending_approval() {
    let world = ground().await.start_engine(KillPointFaults::no_kill());
    let accepted = world.engine.accept_message(from_terminal("run it")).await.unwrap();
    let id = question(&world).await;
    let mut watch = world.engine.hub.subscribe(&World::inbound("me", "").session);
    let yes = world.engine.accept_message(from_terminal("yes, do it")).await.unwrap();
    assert_eq!(world.wait_answer(&yes).await.text, "fine");
    assert_eq!(closed(&mut watch).await, (id, "expired".to_owned()));
    world.wait_answer(&accepted).await;
    let transcript = glance(&world.transcript("me").await);
    assert!(transcript[2].starts_with("result Not run: the user wrote something else"), "{transcript:?}");
}

/// API clients are programs, which cannot be asked for approval.
#[tokio::test(start_paused = true)]
async fn tool_needing_approval_is_unavailable_to_api_clients() {
    let world = ground().await.start_engine(KillPointFaults::no_kill());
    let mut inbound = World::inbound("me", "run it");
    inbound.address.channel = "api".into();
    let accepted = world.engine.accept_message(inbound).await.unwrap();
    world.wait_answer(&accepted).await;
    let result = &glance(&world.transcript("me").await)[2];
    assert!(
        result.contains("rule approval.nobody_to_ask") && result.contains("approvals = { danger ="),
        "{result}"
    );
}

/// In a chat the request comes as a message, and the sender answers there.
async fn asked_in_chat(world: &World) -> (AcceptedMessage, ApprovalId) {
    let accepted = world.send_text("me", "run it").await.unwrap();
    let id = question(world).await;
    while world.ground.fake_channel.visible_messages().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let (_, text) = world.ground.fake_channel.visible_messages().remove(0);
    assert!(
        text.contains("danger {\"command\":\"rm\"}") && text.contains(&format!("/approve {id}")),
        "{text}"
    );
    (accepted, id)
}

fn answer(name: &str, id: &ApprovalId) -> IngressMessage {
    World::inbound(name, &format!("/approve {id}"))
}

#[tokio::test(start_paused = true)]
async fn requester_approves_in_chat_and_tool_runs_once() {
    let world = ground().await.start_engine(KillPointFaults::no_kill());
    let (accepted, id) = asked_in_chat(&world).await;
    let reply = world.engine.run_inbound_command(&answer("me", &id), CallerRole::Alone).await.unwrap();
    assert_eq!(reply.as_deref(), Some("Approved. It runs now."));
    assert_eq!(world.wait_answer(&accepted).await.text, "fine");
    let again =
        world.engine.run_inbound_command(&answer("me", &id), CallerRole::Alone).await.unwrap().unwrap();
    assert!(again.contains("already approved"), "a second tap: {again}");
    world.wait_settled().await;
    let transcript = glance(&world.transcript("me").await);
    assert_eq!(transcript.iter().filter(|line| *line == "result it ran").count(), 1, "{transcript:?}");
    assert!(!transcript.iter().any(|line| line.contains("/approve")), "an answer is no message");
    let shown: Vec<String> =
        world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect();
    assert!(shown.contains(&"Approved. It runs now.".to_owned()), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn approval_is_refused_from_other_sender_or_conversation() {
    let world = ground().await.start_engine(KillPointFaults::no_kill());
    let (accepted, id) = asked_in_chat(&world).await;
    let refused = async |inbound: IngressMessage| {
        world.engine.run_inbound_command(&inbound, CallerRole::Alone).await.unwrap().unwrap()
    };
    // Another person, in their own conversation and in this one.
    let other = answer("you", &id);
    assert!(refused(other).await.contains("another conversation"));
    let mut intruder = answer("me", &id);
    intruder.address.peer = "you".into();
    assert!(refused(intruder).await.contains("only the person who caused this request"));
    // The same person in another thread, with that thread's session and with this one.
    let mut thread = answer("me", &id);
    thread.address.thread = Some("2".into());
    assert!(refused(thread).await.contains("another conversation"));
    // The owner, in another session.
    let elsewhere =
        world.engine.run_command(&World::session_key("other"), &format!("/approve {id}")).await.unwrap();
    assert!(matches!(elsewhere, Err(Error::NotYours(InvalidApproval::OtherConversation))));
    // An answer to a different call than the one that would run.
    let shown = ApprovalAnswer { shown: Some("else".into()), ..by_owner(ApprovalDecision::Approve) };
    assert!(matches!(
        decide_approval(&world.engine, &id, shown).await,
        Err(Error::NotYours(InvalidApproval::OtherArguments))
    ));
    // Another agent that relays the words.
    let mut relayed = answer("me", &id);
    relayed.relay = Some(RelayInfo {
        from: World::session_key("x"),
        hop: 1,
        trace: TraceId::new("t"),
        kind: RelayKind::Send,
    });
    assert!(
        world.engine.run_inbound_command(&relayed, CallerRole::Alone).await.unwrap().is_none(),
        "no answer at all"
    );
    assert_eq!(world.engine.list_open_approvals().await.unwrap().len(), 1, "still open");
    let denied = world
        .engine
        .run_command(&World::session_key("me"), &format!("/deny {id} not today"))
        .await
        .unwrap()
        .unwrap();
    assert!(denied.starts_with("Denied"));
    world.wait_answer(&accepted).await;
    let transcript = glance(&world.transcript("me").await);
    assert_eq!(transcript[2], "result The user did not allow this. not today");
    assert!(!transcript.contains(&"result it ran".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn approved_call_with_changed_fingerprint_does_not_run() {
    let world = ground().await.start_engine(KillPointFaults::no_kill());
    let (accepted, id) = asked_in_chat(&world).await;
    let ground = world.kill().await;
    // The row is changed while nothing runs.
    let changed = "UPDATE approvals SET fingerprint = 'else'";
    ground.db.write(move |tx| tx.execute(changed, &[])).await.unwrap();
    let world = ground.start_engine(KillPointFaults::no_kill());
    let _ = decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Approve)).await;
    world.wait_answer(&accepted).await;
    let result = &glance(&world.transcript("me").await)[2];
    assert_eq!(result, "result Not run: the action differs from the one in the approval request.");
}

#[tokio::test(start_paused = true)]
async fn pending_approval_survives_more_restarts_than_max_attempts() {
    let mut world = ground().await.start_engine(KillPointFaults::no_kill());
    let (accepted, id) = asked_in_chat(&world).await;
    for _ in 0..6 {
        world = world.kill().await.start_engine(KillPointFaults::no_kill());
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        assert_eq!(question(&world).await, id, "the same question");
    }
    world.engine.run_inbound_command(&answer("me", &id), CallerRole::Alone).await.unwrap();
    assert_eq!(world.wait_answer(&accepted).await.text, "fine");
    assert_eq!(glance(&world.transcript("me").await)[2], "result it ran");
    world.wait_settled().await;
    let asked = world
        .ground
        .fake_channel
        .visible_messages()
        .iter()
        .filter(|(_, text)| text.contains("/approve"))
        .count();
    assert_eq!(asked, 1, "it is asked once");
}

#[tokio::test(start_paused = true)]
async fn pending_approval_holds_no_slot_and_outlasts_turn_timeout() {
    let mut ground = ground().await;
    ground.settings.turn_ms = 60_000;
    ground.settings.slots.insert(polyclaw_domain::job::JobLane::Main, 1);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let (accepted, _) = asked_in_chat(&world).await;
    let other = world.send_text("other", "hello").await.unwrap();
    assert_eq!(world.wait_answer(&other).await.text, "fine", "the only slot is free for others");
    assert_eq!(world.wait_answer(&accepted).await.text, "fine");
    assert!(glance(&world.transcript("me").await)[2].contains("expired"));
}

#[tokio::test(start_paused = true)]
async fn only_exact_approve_command_approves() {
    for text in [
        "yes",
        "approve",
        "ok /approve",
        "y",
        "/approved",
        "I approve {id}",
        "please /approve {id}",
        "/approve",
        "/approve nothing",
    ] {
        let world = ground().await.start_engine(KillPointFaults::no_kill());
        let (accepted, id) = asked_in_chat(&world).await;
        let inbound = World::inbound("me", &text.replace("{id}", id.as_str()));
        if world.engine.run_inbound_command(&inbound, CallerRole::Alone).await.unwrap().is_none() {
            world.engine.accept_message(inbound).await.unwrap();
        } else {
            world.engine.stop_session(&World::session_key("me")).await.unwrap();
        }
        world.wait_answer(&accepted).await;
        world.wait_settled().await;
        let transcript = glance(&world.transcript("me").await);
        assert!(!transcript.contains(&"result it ran".to_owned()), "{text}: {transcript:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn approval_mode_never_skips_and_always_requires_approval() {
    let mut ground = ground().await;
    ground.settings.tools.policy.approval = Some(ApprovalMode::Never);
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("run it").await;
    assert_eq!(glance(&world.transcript("me").await)[2], "result it ran", "nobody was asked");
    let mut ground = world.kill().await;
    ground.settings.tools.policy.approval = Some(ApprovalMode::Always);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let accepted = world.send_text("second", "look").await.unwrap();
    let id = question(&world).await;
    decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Approve)).await.unwrap();
    world.wait_answer(&accepted).await;
    assert!(glance(&world.transcript("second").await)[2].starts_with("result look"));
}

/// The buttons under a request, once it is shown.
async fn buttons(world: &World, peer: &str) -> Vec<String> {
    wait_until("the question is shown", async || !world.ground.fake_channel.buttons_at(peer).is_empty())
        .await;
    world.ground.fake_channel.buttons_at(peer)
}

/// Presses a button, which a platform reports as a separate message each time.
async fn pressed(world: &World, n: usize, press: InboundMessage) -> String {
    let peer = press.address.peer.clone();
    let before = world.ground.fake_channel.texts_at(&peer, None).len();
    let press = InboundMessage { platform_id: format!("press:{n}"), ..press };
    assert_eq!(world.ground.fake_channel.deliver_inbound(press).await, IngestOutcome::Done);
    while world.ground.fake_channel.texts_at(&peer, None).len() == before {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    world.ground.fake_channel.texts_at(&peer, None)[before].clone()
}

#[tokio::test(start_paused = true)]
async fn approval_button_counts_once_and_only_from_allowed_sender() {
    let mut ground = ground().await;
    ground
        .configure(
            "[session]\ndm_scope = \"per-channel-peer\"\n[channels.telegram.default]\nbot_token = \"1:t\"\n\
             dm_policy = \"open\"\ngroups = [\"-7\"]\nowners = [\"boss\"]\n",
        )
        .await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert_eq!(
        world.ground.fake_channel.deliver_inbound(inbound_dm("ann", "run it")).await,
        IngestOutcome::Done
    );
    let [approve, deny] = buttons(&world, "ann").await.try_into().unwrap();
    assert!(approve.starts_with("/approve ") && deny.starts_with("/deny "));
    let stranger = pressed(&world, 1, inbound_dm("eve", &approve)).await;
    assert!(stranger.contains("another conversation"), "{stranger}");
    assert_eq!(pressed(&world, 2, inbound_dm("ann", &approve)).await, "Approved. It runs now.");
    for (n, again) in [(3, &approve), (4, &deny)] {
        let text = pressed(&world, n, inbound_dm("ann", again)).await;
        assert!(text.contains("already approved") || text == "fine", "{text}");
    }
    world.wait_settled().await;
    let key = SessionKey::parse("agent:main:telegram:dm:ann").unwrap();
    let id = world.engine.load_session(&key).await.unwrap().id;
    let lines = world.engine.db().read(move |tx| messages::list_page(tx, &key, &id, 0, 100)).await.unwrap();
    assert_eq!(lines.iter().filter(|line| line.text == "it ran").count(), 1);
    // In a group only an owner may press it, as with the command.
    assert_eq!(
        world.ground.fake_channel.deliver_inbound(inbound_group("-7", "guest", "run it")).await,
        IngestOutcome::Done
    );
    let approve = buttons(&world, "-7").await.remove(0);
    let refused = pressed(&world, 5, inbound_group("-7", "guest", &approve)).await;
    assert!(refused.contains("Only owners"), "{refused}");
    assert_eq!(pressed(&world, 6, inbound_group("-7", "boss", &approve)).await, "Approved. It runs now.");
    world.wait_settled().await;
}

/// The person who waits in the caller's chat is asked there to approve the delegate's tool, and a restart loses
/// nothing.
#[tokio::test(start_paused = true)]
async fn delegate_tool_approval_is_requested_in_callers_chat() {
    let model = ScriptedProvider::new(|prompt| {
        let is_result = |m: &polyclaw_domain::provider::PromptMessage| {
            matches!(m, polyclaw_domain::provider::PromptMessage::ToolResult { .. })
        };
        let (first, done) = (crate::families::task(prompt), prompt.messages.iter().any(is_result));
        match (first.contains("run it for me"), done) {
            (true, false) => vec![ScriptStep::Call("danger".into(), json!({ "command": "rm" }))],
            (true, true) => vec![ScriptStep::Say(crate::families::said(prompt))],
            (false, false) => {
                let given = json!({ "agent_id": "expert", "task": "run it for me", "timeout_ms": 300_000 });
                vec![ScriptStep::Call("delegate_to_agent".into(), given)]
            }
            (false, true) => vec![ScriptStep::Say(crate::families::said(prompt))],
        }
    });
    let ground = World::with_provider(model).await.kill().await;
    ground.tools.add_tool("danger", ToolEffect::Effect, ToolConsent::AskPerson, |_| {
        Box::pin(async { ToolOutcome::ok("it ran") })
    });
    let rules = DelegationPolicy { allow_agents: vec!["expert".into()], max_concurrent: 2, max_depth: 1 };
    let main = AgentSpec { delegation: Some(rules), ..AgentSpec::with_id(AgentId::main()) };
    let mut expert = AgentSpec::with_id(AgentId::parse("expert").unwrap());
    expert.policy.tools.allow = vec!["*".into(), "danger".into()];
    for spec in [main, expert] {
        let now = polyclaw_domain::time::Millis(1);
        ground.db.write(move |tx| agents::upsert(tx, &spec, AgentSource::Config, now)).await.unwrap();
    }
    let world = ground.start_engine(KillPointFaults::no_kill());
    let accepted = world.send_text("me", "go").await.unwrap();
    let id = question(&world).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let read = world.ground.fake_channel.texts_at("me", None);
    assert!(read.iter().any(|text| text.contains(id.as_str())), "{read:?}");
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    assert_eq!(question(&world).await, id, "asked once, and still open");
    let stranger = World::inbound("somebody else", &format!("/approve {id}"));
    world.engine.accept_message(World::inbound("somebody else", "hello")).await.unwrap();
    let refused = world.engine.run_inbound_command(&stranger, CallerRole::Alone).await.unwrap().unwrap();
    assert!(!refused.contains("Approved"), "{refused}");
    let line = World::inbound("me", &format!("/approve {id}"));
    let reply = world.engine.run_inbound_command(&line, CallerRole::Alone).await.unwrap().unwrap();
    assert_eq!(reply, "Approved. It runs now.");
    let answer = world.wait_answer(&accepted).await.text;
    assert!(answer.contains("it ran") && answer.contains("completed"), "{answer}");
}
