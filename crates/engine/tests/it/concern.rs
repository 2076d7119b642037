//! A chat command acts on all work for its chat, whichever agent does it, and on nothing else.

use polyclaw_testkit::wait_until;
use std::sync::Arc;

use polyclaw_domain::channel::{InboundMessage, IngestOutcome};
use polyclaw_domain::id::ApprovalId;
use polyclaw_domain::inbound::{ChatThread, ThreadKind};
use polyclaw_domain::job::JobState;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Db, jobs};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, inbound_dm, inbound_group};
use tokio::sync::Semaphore;

use crate::approvals::{self, question};
use crate::reception::{CONFIG, said_in};
use crate::worker;

/// A model that asks for approval if the message says so.
async fn asker() -> World {
    let mut ground = approvals::ground().await;
    ground.configure(CONFIG).await;
    ground.start_engine(KillPointFaults::no_kill())
}

/// A model that works until it is stopped.
async fn busy(config: &str) -> World {
    let mut ground =
        DurableWorld::from_db(Db::in_memory().unwrap(), worker(1, &Arc::new(Semaphore::new(0)))).await;
    ground.configure(config).await;
    ground.start_engine(KillPointFaults::no_kill())
}

fn topic(mut message: InboundMessage, id: &str) -> InboundMessage {
    message.context.thread = Some(ChatThread { kind: ThreadKind::Topic, id: id.into() });
    message.address.thread = Some(id.into());
    message.platform_id += id;
    message
}

async fn take(world: &World, message: InboundMessage) {
    assert_eq!(world.ground.fake_channel.deliver_inbound(message).await, IngestOutcome::Done);
}

/// The next reply after a message, while other work may continue.
async fn told(world: &World, message: InboundMessage) -> String {
    let (peer, thread) = (message.address.peer.clone(), message.address.thread.clone());
    let read = || world.ground.fake_channel.texts_at(&peer, thread.as_deref());
    let before = read().len();
    take(world, message).await;
    while read().len() == before {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    read().split_off(before).remove(0)
}

/// The approval request shown where the message came from.
async fn asked(world: &World, message: InboundMessage) -> ApprovalId {
    let text = told(world, message).await;
    let id = question(world).await;
    assert!(text.contains(&format!("/approve {id}")), "{text}");
    id
}

async fn is_open(world: &World, id: &ApprovalId) -> bool {
    let open = world.engine.list_open_approvals().await.unwrap();
    open.iter().any(|approval| approval.id == *id)
}

async fn runs_in(world: &World, key: &str) -> bool {
    let key = SessionKey::parse(key).unwrap();
    let running = world.engine.db().read(jobs::list_running).await.unwrap();
    running.iter().any(|running| running.session == key)
}

/// Sends a message and waits until its turn runs.
async fn at_work(world: &World, message: InboundMessage, key: &str) {
    take(world, message).await;
    wait_until("the turn runs", async || runs_in(world, key).await).await;
}

#[tokio::test(start_paused = true)]
async fn approval_of_any_agent_is_answered_in_its_chat() {
    for answer in ["/approve", "/ops /approve"] {
        let world = asker().await;
        let id = asked(&world, inbound_dm("guest", "/ops run it")).await;
        let line = format!("{answer} {id}");
        assert_eq!(told(&world, inbound_dm("guest", &line)).await, "Approved. It runs now.");
        world.wait_settled().await;
        assert_eq!(world.ground.fake_channel.texts_at("guest", None).last().unwrap(), "fine");
        let again = told(&world, inbound_dm("guest", &format!("{line} again"))).await;
        assert!(again.contains("already approved"), "{again}");
        assert_eq!(said_in(&world, "agent:ops:telegram:dm:guest").await, ["run it"], "no message");
    }
}

#[tokio::test(start_paused = true)]
async fn only_owner_answers_named_agents_approval_in_group() {
    let world = asker().await;
    let id = asked(&world, inbound_group("-8", "guest", "/ops run it")).await;
    for line in [format!("/approve {id}"), format!("/ops /approve {id}")] {
        let refused = told(&world, inbound_group("-8", "guest", &line)).await;
        assert_eq!(refused, "Only owners of this assistant can use /approve.");
    }
    let text = told(&world, inbound_group("-8", "boss", &format!("/deny {id} not today"))).await;
    assert_eq!(text, "Denied. The agent is notified.");
    world.wait_settled().await;
}

#[tokio::test(start_paused = true)]
async fn approval_is_refused_from_other_chat_or_thread() {
    let world = asker().await;
    let id = asked(&world, topic(inbound_group("-8", "guest", "/ops run it"), "5")).await;
    let (plain, named) = (format!("/approve {id}"), format!("/ops /approve {id}"));
    for line in [&plain, &named] {
        for elsewhere in [
            inbound_dm("guest", line),
            inbound_dm("boss", line),
            inbound_group("-7", "boss", line),
            inbound_group("-8", "boss", line),
            topic(inbound_group("-8", "boss", line), "6"),
        ] {
            let place = elsewhere.address.clone();
            let refused = told(&world, elsewhere).await;
            assert!(refused.contains("made in another conversation"), "{place:?}: {refused}");
            assert!(is_open(&world, &id).await, "{place:?}");
        }
    }
    take(&world, topic(inbound_group("-8", "boss", &plain), "5")).await;
    world.wait_settled().await;
    assert!(!is_open(&world, &id).await);
}

#[tokio::test(start_paused = true)]
async fn status_and_stop_see_other_agents_turn_in_its_chat() {
    let key = "agent:ops:telegram:group:-8:topic:5";
    let world = busy(CONFIG).await;
    at_work(&world, topic(inbound_group("-8", "guest", "/ops work"), "5"), key).await;
    for (elsewhere, n) in [
        (inbound_group("-8", "boss", "/stop"), 1),
        (topic(inbound_group("-8", "boss", "/stop"), "6"), 2),
        (inbound_dm("boss", "/stop"), 3),
    ] {
        assert_eq!(told(&world, elsewhere).await, "This conversation has no messages yet.", "{n}");
        assert!(runs_in(&world, key).await, "{n}");
    }
    let here = |text: &str| topic(inbound_group("-8", "guest", text), "5");
    let status = told(&world, here("/status")).await;
    assert!(
        status.contains(key) && status.contains("agent ops") && status.ends_with("answering"),
        "{status}"
    );
    assert_eq!(told(&world, here("/stop")).await, "Stopped.");
    world.wait_settled().await;
    assert!(!runs_in(&world, key).await);
}

#[tokio::test(start_paused = true)]
async fn stop_command_names_each_stopped_agent() {
    let world = busy(CONFIG).await;
    at_work(&world, inbound_dm("guest", "work"), "agent:main:telegram:dm:guest").await;
    at_work(&world, inbound_dm("guest", "/ops work too"), "agent:ops:telegram:dm:guest").await;
    assert_eq!(told(&world, inbound_dm("guest", "/ops /stop")).await, "Stopped.", "only the named one");
    assert!(runs_in(&world, "agent:main:telegram:dm:guest").await);
    let key = "agent:ops-night:telegram:dm:guest";
    at_work(&world, inbound_dm("guest", "/ops_night work"), key).await;
    assert_eq!(told(&world, inbound_dm("guest", "/stop")).await, "main: Stopped.\nops-night: Stopped.");
    world.wait_settled().await;
    let left = |tx: &mut polyclaw_store::Tx<'_>| jobs::list(tx, None, Some(JobState::Done), 10);
    assert!(world.engine.db().read(left).await.unwrap().is_empty(), "all three were stopped");
}

/// Two people who share every session still have separate chats.
#[tokio::test(start_paused = true)]
async fn shared_session_is_stopped_and_renewed_only_from_its_chat() {
    let shared = CONFIG.replace("\"per-channel-peer\"", "\"main\"\nallow_shared_dm = true");
    let world = busy(&shared).await;
    told(&world, inbound_dm("boss", "hello")).await;
    at_work(&world, inbound_dm("guest", "/ops work"), "agent:ops:main").await;
    assert_eq!(told(&world, inbound_dm("boss", "/stop")).await, "Nothing is running.");
    assert_eq!(
        told(&world, inbound_dm("boss", "/new")).await,
        "A new conversation has started. The old one is kept."
    );
    assert!(runs_in(&world, "agent:ops:main").await);
    assert_eq!(said_in(&world, "agent:ops:main").await, ["work"]);
    assert_eq!(told(&world, inbound_dm("guest", "/stop")).await, "main: Nothing is running.\nops: Stopped.");
    world.wait_settled().await;
}

#[tokio::test(start_paused = true)]
async fn new_command_renews_sessions_of_all_agents_in_chat() {
    let world = busy(CONFIG).await;
    for text in ["hello", "/ops hello you"] {
        told(&world, inbound_dm("guest", text)).await;
    }
    told(&world, inbound_dm("boss", "/ops mine")).await;
    let restarted = "A new conversation has started. The old one is kept.";
    assert_eq!(told(&world, inbound_dm("guest", "/ops /new")).await, restarted);
    assert!(said_in(&world, "agent:ops:telegram:dm:guest").await.is_empty());
    assert_eq!(said_in(&world, "agent:main:telegram:dm:guest").await, ["hello"], "only the named one");
    told(&world, inbound_dm("guest", "/ops once more")).await;
    assert_eq!(
        told(&world, inbound_dm("guest", "/new")).await,
        format!("main: {restarted}\nops: {restarted}")
    );
    for key in ["agent:main:telegram:dm:guest", "agent:ops:telegram:dm:guest"] {
        assert!(said_in(&world, key).await.is_empty(), "{key}");
    }
    assert_eq!(said_in(&world, "agent:ops:telegram:dm:boss").await, ["mine"], "another chat's");
}
