//! `route explain` reports how a message would be routed, and changes nothing.

use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::route::BindingMismatch;
use polyclaw_engine::inbound::RouteLayer;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, inbound_dm, inbound_group};

use crate::reception::{ground, read_after};

const CONFIG: &str = r#"
    [agents]
    default = "main"
    [[agents.list]]
    id = "main"
    [[agents.list]]
    id = "ops"
    model = "small/ops"
    [[bindings]]
    agent_id = "main"
    match = { channel = "telegram" }
    [[bindings]]
    agent_id = "ops"
    match = { channel = "telegram", peer = { kind = "group", id = "-7" } }
    [providers.small]
    kind = "openai"
    api_key = "k"
    [session]
    dm_scope = "per-channel-peer"
    [broadcast]
    "-9" = ["ops", "main"]
    [channels.telegram.default]
    bot_token = "123:token"
    allow_from = ["guest"]
    agents = ["ops"]
    groups = ["-7", "-9"]
"#;

/// All rows of all tables, as text.
async fn everything(world: &World) -> Vec<String> {
    let dump = |tx: &mut polyclaw_store::Tx<'_>| {
        let mut rows = tx.query(
            "SELECT session_key || active_agent_id || updated_at || next_position FROM sessions",
            &[],
            |row| row.text(0),
        )?;
        rows.extend(tx.query("SELECT id || position FROM messages", &[], |row| row.text(0))?);
        rows.extend(tx.query("SELECT turn_id || state FROM jobs", &[], |row| row.text(0))?);
        rows.extend(tx.query("SELECT id || state FROM outbox", &[], |row| row.text(0))?);
        rows.extend(tx.query("SELECT platform_id FROM inbound_dedup", &[], |row| row.text(0))?);
        rows.extend(tx.query("SELECT sender || code || notified_at FROM pairings", &[], |row| row.text(0))?);
        rows.extend(tx.query("SELECT broadcast_id FROM broadcasts", &[], |row| row.text(0))?);
        rows.extend(tx.query("SELECT CAST(seq AS TEXT) || kind FROM events", &[], |row| row.text(0))?);
        Ok(rows)
    };
    world.engine.db().read(dump).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn explain_route_reports_layer_agents_and_sessions() {
    let world = ground(CONFIG).await.start_engine(KillPointFaults::no_kill());
    let text_of = async |message: &InboundMessage| {
        let explanation = world.engine.explain_route(message).await.unwrap();
        let answers: Vec<String> =
            explanation.answers.iter().map(|one| format!("{} in {}", one.agent, one.session)).collect();
        (explanation.admission, explanation.layer, answers.join(", "))
    };
    for (message, admission, layer, answers) in [
        (inbound_dm("guest", "hi"), "admitted", RouteLayer::Binding, "main in agent:main:telegram:dm:guest"),
        (inbound_dm("eve", "hi"), "pair", RouteLayer::Binding, "main in agent:main:telegram:dm:eve"),
        (
            inbound_group("-7", "x", "hi"),
            "admitted",
            RouteLayer::Binding,
            "ops in agent:ops:telegram:group:-7",
        ),
        (
            inbound_group("-8", "x", "hi"),
            "group_not_listed",
            RouteLayer::Binding,
            "main in agent:main:telegram:group:-8",
        ),
        (
            inbound_dm("guest", "/ops hi"),
            "admitted",
            RouteLayer::Prefix,
            "ops in agent:ops:telegram:dm:guest",
        ),
        (
            inbound_group("-9", "x", "/ops hi"),
            "admitted",
            RouteLayer::Broadcast,
            "ops in agent:ops:telegram:group:-9, main in agent:main:telegram:group:-9",
        ),
    ] {
        assert_eq!(text_of(&message).await, (admission, Some(layer), answers.to_owned()), "{message:?}");
    }
    let command = world.engine.explain_route(&inbound_dm("guest", "/status")).await.unwrap();
    assert_eq!((command.command, command.layer, command.answers.len()), (Some("status"), None, 0));
    let ops = world.engine.explain_route(&inbound_group("-7", "x", "hi")).await.unwrap();
    assert_eq!(ops.answers[0].model.as_ref().unwrap().to_string(), "small/ops");
    assert!(ops.answers[0].tools.iter().any(|tool| tool.tool.name == "look"));
    let losses: Vec<_> =
        ops.bindings.candidates.iter().map(|one| one.mismatch.map(BindingMismatch::description)).collect();
    assert_eq!(losses, [Some("it matches, but another binding is more specific"), None]);
}

#[tokio::test(start_paused = true)]
async fn explain_route_changes_nothing() {
    let world = ground(CONFIG).await.start_engine(KillPointFaults::no_kill());
    read_after(&world, inbound_dm("guest", "/agent ops")).await;
    read_after(&world, inbound_dm("guest", "hello")).await;
    read_after(&world, inbound_dm("eve", "hello")).await;
    let before = everything(&world).await;
    for message in [
        inbound_dm("guest", "more"),
        inbound_dm("eve", "more"),
        inbound_dm("new", "hi"),
        inbound_dm("guest", "/new"),
    ] {
        world.engine.explain_route(&message).await.unwrap();
    }
    assert_eq!(everything(&world).await, before);
    let explanation = world.engine.explain_route(&inbound_dm("guest", "more")).await.unwrap();
    assert_eq!((explanation.layer, explanation.answers[0].agent.as_str()), (Some(RouteLayer::Active), "ops"));
}
