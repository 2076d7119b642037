use polyclaw_domain::id::{AgentId, TraceId};
use polyclaw_domain::message::MessageOrigin;
use polyclaw_domain::relay::RelayRefusal;
use polyclaw_engine::Error;
use polyclaw_engine::ingress::{InternalMessage, MessageProvenance, RelayInfo, RelayKind};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{ScriptStep, ScriptedProvider};

#[tokio::test(start_paused = true)]
async fn a_message_is_answered() {
    let world = World::new().await;
    let answer = world.send_and_wait("hello").await;
    assert_eq!(answer.text, "echo: hello");
    assert_eq!(answer.usage.input_tokens, Some(10));
    world.wait_settled().await;
    assert_eq!(world.ground.fake_channel.visible_messages().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn message_delivered_twice_is_accepted_once() {
    let world = World::new().await;
    let mut inbound = World::inbound("me", "hello");
    inbound.platform_id = Some("p1".into());
    let first = world.engine.accept_message(inbound.clone()).await.unwrap();
    let again = world.engine.accept_message(inbound).await.unwrap();
    assert!(again.duplicate && again.message_id == first.message_id && again.turn_id == first.turn_id);
    world.wait_answer(&first).await;
    let mut keyed = World::inbound("me", "other");
    keyed.idempotency_key = Some("k".into());
    let first = world.engine.accept_message(keyed.clone()).await.unwrap();
    assert!(world.engine.accept_message(keyed).await.unwrap().duplicate);
    world.wait_answer(&first).await;
    world.wait_settled().await;
    assert_eq!(world.ground.fake_channel.visible_messages().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn invalid_message_is_refused_with_error() {
    let world = World::new().await;
    assert!(matches!(world.send_text("me", "  ").await, Err(Error::EmptyMessage)));
    assert!(matches!(world.send_text("me", &"x".repeat(1_000_001)).await, Err(Error::TooLong(..))));
    let mut stranger = World::inbound("me", "hi");
    stranger.agent = AgentId::parse("nobody").unwrap();
    assert!(matches!(world.engine.accept_message(stranger).await, Err(Error::UnknownAgent(_))));
    world.engine.start_draining();
    assert!(matches!(world.send_text("me", "hi").await, Err(Error::Draining)));
}

#[tokio::test(start_paused = true)]
async fn full_backlog_refuses_message_and_answers_the_rest() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = std::sync::Arc::clone(&gate);
    let model = ScriptedProvider::new(move |prompt| {
        let count = prompt.messages.len();
        vec![ScriptStep::Gate(std::sync::Arc::clone(&held)), ScriptStep::Say(format!("{count} messages"))]
    });
    let world = World::with_provider(model).await;
    world.send_text("me", "first").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    for n in 0..50 {
        world.send_text("me", &format!("waiting {n}")).await.unwrap();
    }
    let refused = world.send_text("me", "one too many").await;
    assert!(matches!(refused, Err(Error::BacklogFull(50))));
    gate.add_permits(10);
    world.wait_settled().await;
    let texts: Vec<String> =
        world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["1 messages", "52 messages"]);
}

#[tokio::test(start_paused = true)]
async fn loops_between_sessions_are_refused() {
    let world = World::new().await;
    world.send_and_wait("hello").await;
    let relayed = |from: &str, hop: u32| {
        let mut inbound = World::inbound("me", "ping");
        inbound.origin = MessageOrigin::Agent(AgentId::main());
        inbound.relay = Some(RelayInfo {
            from: World::session_key(from),
            hop,
            trace: TraceId::new("t"),
            kind: RelayKind::Send,
        });
        inbound
    };
    let refused = |result: Result<_, Error>| match result {
        Err(Error::Relay(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(world.engine.accept_message(relayed("me", 1)).await), RelayRefusal::SelfSend);
    assert_eq!(refused(world.engine.accept_message(relayed("other", 8)).await), RelayRefusal::TooManyHops(8));
    for _ in 0..20 {
        world.engine.accept_message(relayed("other", 1)).await.unwrap();
        world.wait_settled().await;
    }
    assert_eq!(
        refused(world.engine.accept_message(relayed("other", 1)).await),
        RelayRefusal::BudgetSpent(20)
    );
}

#[tokio::test(start_paused = true)]
async fn message_from_other_session_never_steers() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let world = World::with_provider(crate::worker(2, &gate)).await;
    let task = world.send_text("me", "work").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let mut mail = World::inbound("me", "news");
    mail.origin = MessageOrigin::Agent(AgentId::main());
    mail.relay = Some(RelayInfo {
        from: World::session_key("other"),
        hop: 1,
        trace: TraceId::new("t"),
        kind: RelayKind::Send,
    });
    mail.deliver = false;
    let mail = world.engine.accept_message(mail).await.unwrap();
    gate.add_permits(10);
    assert_eq!(world.wait_answer(&task).await.text, "the work is done");
    assert_eq!(world.turn_state(&task.turn_id).await, polyclaw_domain::job::JobState::Done);
    world.wait_answer(&mail).await;
    world.wait_settled().await;
    assert_eq!(world.ground.fake_channel.visible_messages().len(), 1, "the reply to mail stays inside");
}

#[tokio::test(start_paused = true)]
async fn inject_message_deduplicates_and_restricts_session_creation() {
    let world = World::new().await;
    let from_other = |key: &str| {
        let relayed = RelayInfo {
            from: World::session_key("other"),
            hop: 1,
            trace: TraceId::new("t"),
            kind: RelayKind::Send,
        };
        InternalMessage::from_session(AgentId::main(), relayed, key.to_owned())
    };
    let me = World::session_key("me");
    let unknown = world.engine.inject_message(&me, "news", from_other("k")).await.unwrap_err();
    assert_eq!(unknown.code(), "unknown_session");
    let clock = InternalMessage { provenance: MessageProvenance::Clock(AgentId::main()), ..from_other("c") };
    world.engine.inject_message(&me, "it is time", clock).await.unwrap();
    let first = world.engine.inject_message(&me, "news", from_other("k")).await.unwrap();
    let again = world.engine.inject_message(&me, "other news", from_other("k")).await.unwrap();
    assert!(again.duplicate && !first.duplicate && again.turn_id == first.turn_id);
    world.wait_settled().await;
    let person =
        InternalMessage { provenance: MessageProvenance::Person(AgentId::main()), ..from_other("p") };
    world.engine.inject_message(&World::session_key("new"), "hello", person).await.unwrap();
    world.wait_settled().await;
    let text_of = |lines: Vec<polyclaw_store::messages::SessionMessage>| {
        let own = lines.into_iter().filter(|line| line.address.is_some());
        own.map(|line| format!("{} {}", line.origin, line.text)).collect::<Vec<_>>()
    };
    assert_eq!(text_of(world.transcript("me").await), ["cron it is time", "agent:main news"]);
    assert_eq!(text_of(world.transcript("new").await), ["user hello"]);
    assert!(world.ground.fake_channel.visible_messages().is_empty(), "nothing of it leaves");
}
