//! The intent classifier: replaces only the default agent, only with enough confidence, and only in time.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::agent::AgentBudget;
use polyclaw_domain::event::EventKind;
use polyclaw_domain::provider::Prompt;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{
    KillPointFaults, ScriptStep, ScriptedProvider, inbound_dm, inbound_group, last_user_text,
};

use crate::reception::{cast, read_after, recorded};

fn config() -> String {
    cast(&["main", "ops"]) + RULES
}

const RULES: &str = r#"
    description = "servers and deployments"
    [[bindings]]
    agent_id = "main"
    match = { channel = "telegram", peer = { kind = "group", id = "-7" } }
    [routing.intent_classifier]
    model = "small/judge"
    [providers.small]
    kind = "openai"
    api_key = "k"
    [session]
    dm_scope = "per-channel-peer"
    [channels.telegram.default]
    bot_token = "123:token"
    dm_policy = "open"
    groups = ["-7"]
"#;

fn is_judging(prompt: &Prompt) -> bool {
    prompt.system.starts_with("You classify messages")
}

/// A model whose verdict depends on the message: `sure`, `unsure`, `slow`, `prose`.
fn model() -> Arc<ScriptedProvider> {
    let judged = |confidence: &str| {
        let reason = "it is about servers";
        ScriptStep::Say(format!(
            r#"{{"agent_id": "ops", "confidence": {confidence}, "reasoning": "{reason}"}}"#
        ))
    };
    ScriptedProvider::new(move |prompt| {
        let asked = last_user_text(prompt).to_owned();
        if !is_judging(prompt) {
            let who = if prompt.system.contains("I am ops") { "ops" } else { "main" };
            return vec![ScriptStep::Say(who.to_owned())];
        }
        match () {
            () if asked.contains("unsure") => vec![judged("0.8")],
            () if asked.contains("sure") => vec![judged("0.81")],
            () if asked.contains("slow") => {
                vec![ScriptStep::Pause(Duration::from_millis(501)), judged("0.99")]
            }
            () => vec![ScriptStep::Say("ops, I would say".to_owned())],
        }
    })
}

async fn world(config: &str) -> (World, Arc<ScriptedProvider>) {
    let model = model();
    let mut ground = World::with_provider(model.clone()).await.kill().await;
    ground.configure(config).await;
    (ground.start_engine(KillPointFaults::no_kill()), model)
}

fn judgements(model: &ScriptedProvider) -> usize {
    model.prompts().iter().filter(|prompt| is_judging(prompt)).count()
}

#[tokio::test(start_paused = true)]
async fn only_confident_verdict_in_time_overrides_default_agent() {
    let (world, _) = world(&config()).await;
    for (text, who) in [("sure", "ops"), ("unsure", "main"), ("slow", "main"), ("prose", "main")] {
        assert_eq!(read_after(&world, inbound_dm("guest", text)).await, [who], "{text}");
    }
    let entries = recorded(&world, EventKind::MessageRouted).await;
    assert_eq!(entries[0]["reasoning"], "it is about servers");
    assert_eq!(
        (&entries[0]["text"], entries[0]["platform_id"].is_string()),
        (&"sure".into(), true),
        "which it is about"
    );
    let sessions = |tx: &mut polyclaw_store::Tx<'_>| {
        polyclaw_store::events::list(tx, 0, Some(EventKind::MessageRouted.as_str()), None, 2)
    };
    let sessions = world.engine.db().read(sessions).await.unwrap();
    let sessions: Vec<_> =
        sessions.into_iter().filter_map(|row| row.session).map(|key| key.to_string()).collect();
    assert_eq!(sessions, ["agent:ops:telegram:dm:guest", "agent:main:telegram:dm:guest"]);
    let used: Vec<_> = entries.iter().map(|data| data["used"].as_bool().unwrap()).collect();
    assert_eq!(used, [true, false, false, false]);
    assert_eq!(entries[2]["failed"], "it took too long");
}

#[tokio::test(start_paused = true)]
async fn classifier_is_not_called_if_other_rule_decides() {
    let (world, model) = world(&config()).await;
    read_after(&world, inbound_group("-7", "guest", "sure, by a binding")).await;
    read_after(&world, inbound_dm("guest", "/main sure, by name")).await;
    read_after(&world, inbound_dm("guest", "/agent ops")).await;
    assert_eq!(read_after(&world, inbound_dm("guest", "sure, switched")).await, ["ops"]);
    assert_eq!(judgements(&model), 0);
}

#[tokio::test(start_paused = true)]
async fn classifier_is_off_without_configured_model() {
    let off = config().replace("model = \"small/judge\"", "");
    let (world, model) = world(&off).await;
    assert_eq!(read_after(&world, inbound_dm("guest", "sure")).await, ["main"]);
    assert_eq!((judgements(&model), recorded(&world, EventKind::MessageRouted).await.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn classifier_call_respects_timeout() {
    let (world, _) = world(&config()).await;
    let began = tokio::time::Instant::now();
    world.ground.fake_channel.deliver_inbound(inbound_dm("guest", "slow")).await;
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(500) && took <= Duration::from_millis(550), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn classifier_verdict_is_cached_until_config_reload() {
    let (world, model) = world(&config()).await;
    for sender in ["a", "b", "c"] {
        assert_eq!(read_after(&world, inbound_dm(sender, "sure")).await, ["ops"]);
    }
    assert_eq!(judgements(&model), 1);
    let entries = recorded(&world, EventKind::MessageRouted).await;
    assert_eq!((entries.len(), &entries[2]["from"]), (3, &"cache".into()), "every decision is recorded");
    world.engine.reload_settings(world.ground.settings.clone());
    read_after(&world, inbound_dm("d", "sure")).await;
    assert_eq!(judgements(&model), 2);
}

#[tokio::test(start_paused = true)]
async fn exhausted_budget_falls_back_to_default_agent() {
    let model = model();
    let mut ground = World::with_provider(model.clone()).await.kill().await;
    ground.configure(&config()).await;
    ground.settings.budget = AgentBudget { tokens_per_day: Some(15), ..AgentBudget::default() };
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert_eq!(
        count_replies_after(&world, "sure one").await,
        count_replies_after(&world, "nothing else").await
    );
    assert_eq!(judgements(&model), 1, "fifteen tokens are one judgement");
    let entries = recorded(&world, EventKind::MessageRouted).await;
    assert_eq!(entries[1]["failed"], "the budget of instance is used up");
}

/// The answer's text does not matter here: the exhausted budget refuses answers, too.
async fn count_replies_after(world: &World, text: &str) -> usize {
    let read = read_after(world, inbound_dm("guest", text)).await.len();
    tokio::time::sleep(Duration::from_secs(1)).await;
    read
}
