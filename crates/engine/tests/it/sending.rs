//! Sessions that write to each other: who may, what is seen of it, and that it ends.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::message::MessageRole;
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::relay::AgentToAgent;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Db, events, jobs, usage};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider};
use serde_json::json;

use crate::families::{results, said, task, transcript};
use crate::reception::recorded;

fn other() -> AgentId {
    AgentId::parse("other").unwrap()
}

/// The session of the agent that is written to.
fn there() -> SessionKey {
    SessionKey::main(&other())
}

fn send(to: &SessionKey, wait_seconds: Option<u32>) -> ScriptStep {
    let arguments = json!({ "session_key": to, "message": "your turn", "wait_seconds": wait_seconds });
    ScriptStep::Call("sessions_send".into(), arguments)
}

/// Two agents, `main` and `other`, each with a session of its own.
async fn two(author: impl Fn(&Prompt) -> ModelScript + Send + Sync + 'static, allow: &[&str]) -> World {
    let mut ground = DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::new(author)).await;
    ground.add_agent("other").await;
    let allow: Vec<String> = allow.iter().map(|entry| (*entry).to_owned()).collect();
    ground.settings.agent_to_agent = AgentToAgent { enabled: !allow.is_empty(), allow };
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.engine.create_session(&there(), &other(), None).await.unwrap();
    world
}

/// Whether the turn of this prompt has called a tool already.
fn has_called(prompt: &Prompt) -> bool {
    matches!(prompt.messages.last(), Some(PromptMessage::ToolResult { .. }))
}

fn is_other(prompt: &Prompt) -> bool {
    prompt.system.contains("You are other")
}

async fn codes(world: &World, kind: &'static str) -> Vec<String> {
    let found = world.engine.db().read(move |tx| events::list(tx, 0, Some(kind), None, 100)).await.unwrap();
    found.iter().map(|event| event.data["code"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn tokens(world: &World) -> i64 {
    let totals = world
        .engine
        .db()
        .read(|tx| usage::sum_totals(tx, polyclaw_domain::time::Millis(0), usage::UsageGroupKey::Agent))
        .await
        .unwrap();
    totals.iter().map(|total| total.input_tokens.unwrap_or(0) + total.output_tokens.unwrap_or(0)).sum()
}

#[tokio::test(start_paused = true)]
async fn session_send_waits_for_reply_without_holding_slot() {
    let author = |prompt: &Prompt| match (is_other(prompt), results(prompt)) {
        (true, _) => vec![ScriptStep::Pause(Duration::from_secs(2)), ScriptStep::Say("42".into())],
        (false, 0) => vec![send(&there(), Some(60))],
        (false, _) => vec![ScriptStep::Say(said(prompt))],
    };
    let mut ground = two(author, &["main", "other"]).await.kill().await;
    ground.settings.slots.values_mut().for_each(|slots| *slots = 1);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let answer = world.send_and_wait("ask the other").await.text;
    assert!(answer.contains("\"status\":\"replied\"") && answer.contains("\"reply\":\"42\""), "{answer}");
    assert!(answer.contains("origin=\"agent\""), "what another agent said is framed: {answer}");
    world.wait_settled().await;
    let lines = transcript(world.engine.db(), &there()).await;
    let first = &lines[0];
    assert_eq!(
        (first.text.as_str(), first.channel.as_str(), first.deliver),
        ("your turn", "internal", false)
    );
    assert_eq!((first.role, first.origin.to_string().as_str()), (MessageRole::User, "agent:main"));
    assert_eq!(world.ground.fake_channel.visible_messages().len(), 1, "only the person is answered");
}

#[tokio::test(start_paused = true)]
async fn session_send_returns_accepted_or_timeout() {
    let author = |prompt: &Prompt| match (is_other(prompt), results(prompt)) {
        (true, _) => vec![ScriptStep::Pause(Duration::from_secs(30)), ScriptStep::Say("late".into())],
        (false, 0) => vec![send(&there(), None), send(&there(), Some(1))],
        (false, _) => vec![ScriptStep::Say(said(prompt))],
    };
    let world = two(author, &["*"]).await;
    let answer = world.send_and_wait("tell the other").await.text;
    assert!(
        answer.contains("\"status\":\"accepted\"") && answer.contains("\"status\":\"timeout\""),
        "{answer}"
    );
    world.wait_settled().await;
    let lines = transcript(world.engine.db(), &there()).await;
    assert_eq!(lines.iter().filter(|line| line.text == "your turn").count(), 2, "neither is lost");
}

/// Each would wait for the other for five minutes: the second is refused, sends nothing, and both come to an end.
#[tokio::test(start_paused = true)]
async fn mutual_wait_is_refused_as_deadlock() {
    let author = |prompt: &Prompt| match (is_other(prompt), has_called(prompt)) {
        (_, true) => vec![ScriptStep::Say(said(prompt))],
        (true, false) => vec![send(&World::session_key("me"), Some(300))],
        (false, false) => vec![send(&there(), Some(300))],
    };
    let world = two(author, &["main", "other"]).await;
    let began = tokio::time::Instant::now();
    let answer = world.send_and_wait("ask the other").await.text;
    assert!(answer.contains("\"status\":\"replied\"") && answer.contains("wait_deadlock"), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(60), "of virtual time");
    world.wait_settled().await;
    let lines = transcript(world.engine.db(), &World::session_key("me")).await;
    assert!(lines.iter().all(|line| line.text != "your turn"), "what is refused is not sent: {lines:#?}");
    let refused = recorded(&world, EventKind::ToolRefused).await;
    assert!(refused.len() == 1 && refused[0]["code"] == "wait_deadlock", "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn denied_session_send_names_missing_rule() {
    let author = |prompt: &Prompt| match results(prompt) {
        0 => vec![send(&there(), None)],
        _ => vec![ScriptStep::Say(said(prompt))],
    };
    for (allow, missing) in [
        (&[][..], "tools.agent_to_agent.enabled is false"),
        (&["other"][..], "tools.agent_to_agent.allow does not include 'main'"),
        (&["main"][..], "tools.agent_to_agent.allow does not include 'other'"),
    ] {
        let world = two(author, allow).await;
        let answer = world.send_and_wait("tell the other").await.text;
        assert!(answer.contains(missing) && answer.contains("send_denied"), "{answer}");
        assert_eq!(codes(&world, "message.refused").await, ["send_denied"]);
        assert!(transcript(world.engine.db(), &there()).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn session_sends_without_rule_only_to_own_children() {
    let author = |prompt: &Prompt| {
        let asked = said(prompt);
        if asked.contains("do part") {
            let heard = asked.matches("your turn").count();
            return vec![
                ScriptStep::Pause(Duration::from_secs(3)),
                ScriptStep::Say(format!("heard {heard}")),
            ];
        }
        match results(prompt) {
            0 => vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part 1" }))],
            1 => {
                let key = asked.split("child_session_key\":\"").nth(1).unwrap().split('"').next().unwrap();
                vec![send(&SessionKey::parse(key).unwrap(), Some(60)), send(&World::session_key("you"), None)]
            }
            _ => vec![ScriptStep::Say(asked)],
        }
    };
    let world = two(author, &[]).await;
    world.engine.create_session(&World::session_key("you"), &AgentId::main(), None).await.unwrap();
    let answer = world.send_and_wait("begin and tell").await.text;
    assert!(answer.contains("\"status\":\"replied\"") && answer.contains("heard 1"), "{answer}");
    assert!(
        answer.contains("agent_to_agent.enabled is false"),
        "another conversation is not its own: {answer}"
    );
}

/// Sends once in each turn, then says nothing more.
fn sends_on(prompt: &Prompt) -> ModelScript {
    match has_called(prompt) {
        true => vec![ScriptStep::Say("NO_REPLY".into())],
        false => vec![send(&if is_other(prompt) { World::session_key("me") } else { there() }, None)],
    }
}

#[tokio::test(start_paused = true)]
async fn message_ping_pong_ends_at_hop_eight() {
    let world = two(sends_on, &["*"]).await;
    world.send_text("me", "start").await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.wait_settled().await;
    assert_eq!(codes(&world, "message.refused").await, ["too_many_hops"]);
    let turns = world.engine.db().read(|tx| jobs::list(tx, None, None, 100)).await.unwrap();
    assert_eq!(turns.len(), 8, "hops 0 to 7");
    assert!(turns.iter().all(|turn| turn.trace == turns[0].trace), "one trace");
    let mut hops: Vec<u32> = turns.iter().map(|turn| turn.hop).collect();
    hops.sort_unstable();
    assert_eq!(hops, [0, 1, 2, 3, 4, 5, 6, 7]);
    // Two calls of the model in each turn, 15 tokens each.
    assert_eq!(tokens(&world).await, 8 * 2 * 15);
}

#[tokio::test(start_paused = true)]
async fn endless_agent_messages_stop_at_autonomous_turn_budget() {
    let tireless = |prompt: &Prompt| {
        vec![send(&if is_other(prompt) { World::session_key("me") } else { there() }, None)]
    };
    let world = two(tireless, &["*"]).await;
    world.send_text("me", "start").await.unwrap();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    world.wait_settled().await;
    let refused = codes(&world, "message.refused").await;
    assert!(refused.iter().any(|code| code == "autonomous_turns_exhausted"), "{refused:?}");
    let turns = world.engine.db().read(|tx| jobs::list(tx, None, None, 1_000)).await.unwrap();
    assert!(turns.len() <= 21, "the first, and the budget: {}", turns.len());
    let most = i64::from(world.ground.settings.limits.rounds + 1) * 15 * 21;
    let spent = tokens(&world).await;
    assert!(spent > 0 && spent <= most, "{spent} of {most}");
    world.send_text("me", "go on").await.unwrap();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let more = world.engine.db().read(|tx| jobs::list(tx, None, None, 1_000)).await.unwrap();
    assert!(more.len() > turns.len() + 1, "a person begins a trace of its own");
}

#[tokio::test(start_paused = true)]
async fn session_send_to_itself_is_refused() {
    let author = |prompt: &Prompt| match results(prompt) {
        0 => vec![send(&World::session_key("me"), Some(5))],
        _ => vec![ScriptStep::Say(said(prompt))],
    };
    let world = two(author, &["*"]).await;
    let answer = world.send_and_wait("tell yourself").await.text;
    assert!(answer.contains("self_send"), "{answer}");
    assert_eq!(codes(&world, "message.refused").await, ["self_send"]);
}

#[tokio::test(start_paused = true)]
async fn mutual_spawning_ends_at_max_spawn_depth() {
    let author = |prompt: &Prompt| {
        let target = if is_other(prompt) { "main" } else { "other" };
        match results(prompt) {
            0 => vec![ScriptStep::Call(
                "sessions_spawn".into(),
                json!({ "task": "do part", "agent_id": target }),
            )],
            1 if !said(prompt).contains("max_spawn_depth") => {
                vec![ScriptStep::Call("sessions_yield".into(), json!({}))]
            }
            _ => vec![ScriptStep::Say(said(prompt))],
        }
    };
    let mut ground = DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::new(author)).await;
    ground
        .configure(
            r#"
            [[agents.list]]
            id = "main"
            default = true
            subagents = { allow_agents = ["*"] }
            [[agents.list]]
            id = "other"
            subagents = { allow_agents = ["*"] }
            "#,
        )
        .await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "start").await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.wait_settled().await;
    let depths: Vec<u32> = depths(&world).await;
    assert_eq!(depths.iter().max(), Some(&2), "{depths:?}");
    let refused = recorded(&world, EventKind::ToolRefused).await;
    assert!(refused.iter().any(|data| data["reason"].as_str().unwrap().contains("no_room")), "{refused:?}");
    assert!(tokens(&world).await <= 15 * 60, "{}", tokens(&world).await);
}

async fn depths(world: &World) -> Vec<u32> {
    let filter = polyclaw_store::sessions::SessionFilter { limit: 1_000, ..Default::default() };
    let all = world.engine.db().read(move |tx| polyclaw_store::sessions::list(tx, &filter)).await.unwrap();
    all.iter().map(|session| session.spawn_depth).collect()
}

/// A leaf has no tool to spawn with: it is not listed, and a call of it is refused with the rule.
#[tokio::test(start_paused = true)]
async fn child_cannot_call_tools_it_is_not_shown() {
    let shown = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&shown);
    let author = move |prompt: &Prompt| {
        let names = prompt.tools.iter().map(|tool| tool.name.clone());
        let names: Vec<String> = names.filter(|name| name.starts_with("sessions_")).collect();
        let heard = said(prompt);
        if task(prompt).contains("do leaf") {
            seen.lock().unwrap().push(("leaf", names, heard.clone()));
            return match results(prompt) {
                0 => ["sessions_spawn", "sessions_send", "sessions_list", "sessions_history", "message"]
                    .map(|name| ScriptStep::Call(name.into(), json!({ "task": "x" })))
                    .into(),
                _ => vec![ScriptStep::Say("done".into())],
            };
        }
        let place = if task(prompt).contains("do branch") { "branch" } else { "top" };
        seen.lock().unwrap().push((place, names, String::new()));
        match (results(prompt), place) {
            (0, "top") => vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do branch" }))],
            (0, _) => vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do leaf" }))],
            _ => vec![ScriptStep::Say("begun".into())],
        }
    };
    let world = World::with_provider(ScriptedProvider::new(author)).await;
    world.send_text("me", "start").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    let shown = shown.lock().unwrap();
    let names = |place: &str| shown.iter().find(|(at, ..)| *at == place).unwrap().1.join(" ");
    assert_eq!(names("top"), "sessions_spawn sessions_yield sessions_list sessions_history sessions_send");
    assert_eq!(names("branch"), "sessions_spawn sessions_yield sessions_list sessions_history");
    assert_eq!(names("leaf"), "");
    let (_, _, heard) = shown.iter().rev().find(|(at, ..)| *at == "leaf").unwrap();
    for rule in ["subagents.no_room", "subagents.not_by_default", "There is no tool 'message' here."] {
        assert!(heard.contains(rule), "{rule}: {heard}");
    }
}

#[tokio::test(start_paused = true)]
async fn agent_cannot_spawn_less_confined_agent() {
    let author = |prompt: &Prompt| match (task(prompt).contains("do part"), results(prompt)) {
        (true, _) => vec![ScriptStep::Say("done".into())],
        (false, 0) => {
            vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part", "agent_id": "other" }))]
        }
        (false, _) => vec![ScriptStep::Say(said(prompt))],
    };
    let order = ["off", "workspace", "strict"];
    for (own, of_parent) in order.iter().enumerate() {
        for (its, of_child) in order.iter().enumerate() {
            let mut ground =
                DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::new(author)).await;
            ground
                .configure(&format!(
                    "[[agents.list]]\nid = \"main\"\ndefault = true\nsubagents = {{ allow_agents = [\"other\"] }}\n\
                     sandbox = {{ mode = \"{of_parent}\" }}\n[[agents.list]]\nid = \"other\"\n\
                     sandbox = {{ mode = \"{of_child}\" }}\n"
                ))
                .await;
            let answer = ground.start_engine(KillPointFaults::no_kill()).send_and_wait("go").await.text;
            let is_refused = answer.contains("weaker sandbox");
            assert_eq!(is_refused, its < own, "{of_parent} begins {of_child}: {answer}");
        }
    }
}
