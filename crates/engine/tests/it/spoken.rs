//! Messages to an explicitly named session: agent prefixes and broadcasts work as in every chat.

use std::sync::Arc;

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::Error;
use polyclaw_engine::ingress::{AcceptedMessage, IngressMessage};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider, last_user_text};

use crate::reception::cast;

const KEY: &str = "agent:main:web:dm:x";

async fn world(rest: &str) -> (World, Arc<ScriptedProvider>) {
    let model = ScriptedProvider::new(|prompt| {
        let names = ["ops-night", "ann", "bob"];
        let name = names.into_iter().find(|name| prompt.system.contains(&format!("I am {name}")));
        vec![ScriptStep::Say(format!("{} on {}", name.unwrap_or("main"), last_user_text(prompt)))]
    });
    let mut ground = World::with_provider(model.clone()).await.kill().await;
    ground.configure(&format!("{}\n{rest}", cast(&["main", "ops-night", "ann", "bob"]))).await;
    (ground.start_engine(KillPointFaults::no_kill()), model)
}

fn inbound(channel: &str, text: &str) -> IngressMessage {
    let key = SessionKey::parse(KEY).unwrap();
    let address =
        ChatAddress { channel: channel.into(), account: "default".into(), peer: KEY.into(), thread: None };
    IngressMessage::from_person(key, AgentId::main(), address, text)
}

async fn say(world: &World, inbound: IngressMessage) -> Result<AcceptedMessage, Error> {
    let inbound = world.engine.resolve_addressee(inbound).await?;
    world.engine.submit_message(inbound).await
}

#[tokio::test(start_paused = true)]
async fn name_prefix_addresses_agent_for_one_message_in_open_session() {
    let (world, _) = world("").await;
    for channel in ["web", "cli", "api"] {
        for name in ["ops-night", "ops_night", "OPS-night"] {
            let accepted = say(&world, inbound(channel, &format!("/{name} hi"))).await.unwrap();
            assert_eq!(accepted.session_key.as_str(), KEY);
            assert_eq!(world.wait_answer(&accepted).await.text, "ops-night on hi");
        }
        let next = say(&world, inbound(channel, "and you")).await.unwrap();
        assert_eq!(world.wait_answer(&next).await.text, "main on and you", "that message only");
        let alone = say(&world, inbound(channel, "/ops-night ")).await;
        assert!(matches!(alone, Err(Error::OnlyAName(id)) if id.as_str() == "ops-night"));
        let unknown = say(&world, inbound(channel, "/ops-nihgt")).await.unwrap_err();
        assert_eq!(unknown.to_string(), "there is no command /ops-nihgt; did you mean /ops-night?");
        for text in ["/ops hi", "/etc/passwd", "ops-night hi", "/"] {
            let accepted = say(&world, inbound(channel, text)).await.unwrap();
            assert_eq!(world.wait_answer(&accepted).await.text, format!("main on {text}"), "it names nobody");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn focus_applies_until_unfocus_or_target_deletion() {
    let (world, _) = world("").await;
    let ann = AgentId::parse("ann").unwrap();
    let there = SessionKey::parse("agent:ann:web:dm:there").unwrap();
    say(&world, inbound("web", "hello")).await.unwrap();
    let gives = async |line: &str| {
        world.engine.run_command(&SessionKey::parse(KEY).unwrap(), line).await.unwrap().unwrap();
    };
    for channel in ["web", "cli", "api"] {
        world.engine.create_session(&there, &ann, None).await.unwrap();
        gives(&format!("/focus {there}")).await;
        let away = say(&world, inbound(channel, "are you there")).await.unwrap();
        assert_eq!(away.session_key, there, "{channel}");
        assert_eq!(world.wait_answer(&away).await.text, "ann on are you there");
        let named = say(&world, inbound(channel, "/bob hi")).await.unwrap();
        assert_eq!(named.session_key.as_str(), KEY, "a name in front goes past a focus");
        gives("/unfocus").await;
        let back = say(&world, inbound(channel, "and here")).await.unwrap();
        assert_eq!(world.wait_answer(&back).await.text, "main on and here");
        gives(&format!("/focus {there}")).await;
        world.wait_settled().await;
        world.engine.delete_session(&there).await.unwrap();
        let gone = say(&world, inbound(channel, "and now")).await.unwrap();
        assert_eq!(
            world.wait_answer(&gone).await.text,
            "main on and now",
            "a session that is gone is no place"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn web_broadcast_uses_own_sessions_and_is_deduplicated() {
    let (world, model) = world(&format!("[broadcast]\n\"{KEY}\" = [\"ann\", \"main\", \"bob\"]")).await;
    let asked = || IngressMessage { idempotency_key: Some("k".into()), ..inbound("web", "/ann hello") };
    let accepted = say(&world, asked()).await.unwrap();
    assert_eq!((accepted.session_key.as_str(), accepted.duplicate), (KEY, false), "the one that is open");
    assert_eq!(world.wait_answer(&accepted).await.text, "main on /ann hello", "a group comes before a name");
    let again = say(&world, asked()).await.unwrap();
    assert_eq!((again.turn_id, again.duplicate), (accepted.turn_id, true));
    world.wait_settled().await;
    for name in ["ann", "bob"] {
        let key = SessionKey::parse(&KEY.replace("main", name)).unwrap();
        let session = world.engine.load_session(&key).await.unwrap();
        assert_eq!(session.agent.as_str(), name);
    }
    assert_eq!(model.prompts().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn concurrent_duplicate_broadcast_is_accepted_once() {
    let (world, model) = world(&format!("[broadcast]\n\"{KEY}\" = [\"ann\", \"bob\"]")).await;
    let asked = || IngressMessage { idempotency_key: Some("k".into()), ..inbound("web", "hello") };
    let (one, other) = tokio::join!(say(&world, asked()), say(&world, asked()));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.turn_id, other.turn_id);
    assert!(one.duplicate != other.duplicate, "one of them is the first");
    world.wait_settled().await;
    assert_eq!(model.prompts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn fixed_agent_ignores_name_prefix_and_broadcast() {
    let (world, model) = world(&format!("[broadcast]\n\"{KEY}\" = [\"ann\", \"bob\"]")).await;
    let asked = IngressMessage { by: Some(AgentId::main()), ..inbound("webhook", "/ann hello") };
    let accepted = say(&world, asked).await.unwrap();
    assert_eq!(world.wait_answer(&accepted).await.text, "main on /ann hello");
    world.wait_settled().await;
    assert_eq!(model.prompts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn bindings_choose_agent_for_channel_and_account() {
    let rules = "[[bindings]]\nagent_id = \"ann\"\nmatch = { channel = \"cli\" }\n\
                 [[bindings]]\nagent_id = \"bob\"\nmatch = { channel = \"webhook\", account_id = \"*\" }";
    let (world, _) = world(rules).await;
    let bound = |channel, account| world.engine.agent_by_bindings(channel, account, "me").to_string();
    assert_eq!(bound("cli", "default"), "ann");
    assert_eq!(bound("web", "default"), "main");
    assert_eq!(bound("webhook", "build"), "bob");
}
