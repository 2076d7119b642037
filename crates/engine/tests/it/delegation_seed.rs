//! The acceptance lines of sub-agents (M) and of delegation (D, AC), each under its own name.
//!
//! | line | asks for | test |
//! |---|---|---|
//! | M4 | children side by side, nothing of theirs leaves, a minimal line with its payload, no block stored | `m4_…` |
//! | M5 | no announce twice, no session that writes to itself | `m5_…` |
//! | D-1, AC-4 | sync returns the whole answer and how long it took | `d_01_…` |
//! | D-2, D-14 | the target sees who asks, and the whole task | `d_02_14_…` |
//! | D-3 | the caller answers with it | `d_03_…` |
//! | D-4, D-7 | processes are used again, and after a timeout | `delegation` of the tests of the binary |
//! | D-5, D-6 | a timeout with what was said so far; the caller still answers | `d_05_06_…`, `cut_off::…` |
//! | D-8, D-9, D-13 | unknown, not allowed, nobody allowed | `d_08_…`, `d_09_13_…` |
//! | D-10 | no slot is free: it waits its turn | `slots::d_10_…` |
//! | D-11, AC-6 | depth, as the session has it | `d_11_…` |
//! | D-12, AC-6 | how many at once, and that places come back | `d_12_…` |
//! | D-15 | every delegation has a session of its own | `d_15_…` |
//! | D-16 | the target's own model and tools, else the default model | `d_16_…` |
//! | D-17, D-18, D-19, AC-7 | counters, times, what is at work | `d_17_19_…` |
//! | AC-5 | every way to fail has its status and code | `ac_05_…`, and those above |

mod cut_off;
mod slots;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polyclaw_domain::agent::{AgentSpec, DelegationPolicy};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::provider::{ErrorClass, ModelRef, Prompt, PromptMessage, ProviderError};
use polyclaw_domain::run::{RunStatus, SpawnLimits};
use polyclaw_engine::subagents::{DelegationCounts, DelegationEdge};
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::{Db, jobs, sessions};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider, last_user_text};
use serde_json::{Value, json};

use crate::families::{announces, results, said, task, transcript};

fn give(to: &str, task: &str, more: &[(&str, Value)]) -> ScriptStep {
    let mut arguments = json!({ "agent_id": to, "task": task });
    more.iter().for_each(|(name, value)| arguments[*name] = value.clone());
    ScriptStep::Call("delegate_to_agent".into(), arguments)
}

fn broken() -> ProviderError {
    let (model, message) = ("scripted/model".into(), "it broke".into());
    ProviderError { class: ErrorClass::BadRequest, model, message, retry_after_ms: None }
}

fn is_target(prompt: &Prompt) -> bool {
    task(prompt).contains("do part")
}

/// What the tools of the caller's last turn answered.
fn answers(prompt: &Prompt) -> Vec<Value> {
    let content = |message: &PromptMessage| match message {
        PromptMessage::ToolResult { content, .. } => {
            content.lines().find_map(|line| serde_json::from_str::<Value>(line).ok())
        }
        _ => None,
    };
    prompt.messages.iter().filter_map(content).collect()
}

async fn store(ground: &DurableWorld, spec: AgentSpec) {
    let write = move |tx: &mut polyclaw_store::Tx<'_>| {
        agents::upsert(tx, &spec, AgentSource::Config, polyclaw_domain::time::Millis(1))
    };
    ground.db.write(write).await.unwrap();
}

fn may(allow: &[&str], max_concurrent: u32, max_depth: u32) -> Option<DelegationPolicy> {
    let allow_agents = allow.iter().map(|id| (*id).to_owned()).collect();
    Some(DelegationPolicy { allow_agents, max_concurrent, max_depth })
}

/// `main` that may ask `expert`, and a model for both.
async fn ground(author: impl Fn(&Prompt) -> ModelScript + Send + Sync + 'static) -> DurableWorld {
    let ground = DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::new(author)).await;
    ground.add_agent("expert").await;
    let spec = AgentSpec { delegation: may(&["expert"], 2, 1), ..AgentSpec::with_id(AgentId::main()) };
    store(&ground, spec).await;
    ground
}

/// The caller gives work away once and says what it was answered.
async fn answered(line: ScriptStep, target: fn(&Prompt) -> ModelScript) -> Value {
    let author = move |prompt: &Prompt| match (is_target(prompt), results(prompt)) {
        (true, _) => target(prompt),
        (false, 0) => vec![line.clone()],
        (false, _) => vec![ScriptStep::Say(answers(prompt)[0].to_string())],
    };
    let world = ground(author).await.start_engine(KillPointFaults::no_kill());
    let answer = world.send_and_wait("ask").await.text;
    world.wait_settled().await;
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test(start_paused = true)]
async fn d_01_ac_04_sync_delegation_returns_full_answer_and_duration() {
    let long = "an answer that is not cut ".repeat(100);
    assert!(long.len() > 2_000);
    let answer = answered(give("expert", "do part", &[]), |_| {
        vec![
            ScriptStep::Pause(Duration::from_secs(2)),
            ScriptStep::Say("an answer that is not cut ".repeat(100)),
        ]
    })
    .await;
    assert_eq!((&answer["status"], answer["response"].as_str()), (&json!("completed"), Some(long.as_str())));
    assert_eq!((&answer["agent_id"], &answer["code"]), (&json!("expert"), &Value::Null));
    assert!(answer["duration_ms"].as_i64().unwrap() >= 2_000, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn d_02_14_target_sees_caller_and_full_task() {
    let seen = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&seen);
    let author = move |prompt: &Prompt| match (is_target(prompt), results(prompt)) {
        (true, _) => {
            *shown.lock().unwrap() = last_user_text(prompt).to_owned();
            vec![ScriptStep::Say("done".into())]
        }
        (false, 0) => vec![give("expert", "do part: first line\nsecond line", &[])],
        _ => vec![ScriptStep::Say("told".into())],
    };
    let world = ground(author).await.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("ask").await;
    let seen = seen.lock().unwrap().clone();
    assert!(
        seen.starts_with("<input-")
            && seen.contains("origin=\"agent:main\">\ndo part: first line\nsecond line\n"),
        "{seen}"
    );
}

#[tokio::test(start_paused = true)]
async fn d_03_caller_answers_user_with_target_response() {
    let author = |prompt: &Prompt| match (is_target(prompt), results(prompt)) {
        (true, _) => vec![ScriptStep::Say("42".into())],
        (false, 0) => vec![give("expert", "do part", &[])],
        _ => vec![ScriptStep::Say(format!("the expert says {}", answers(prompt)[0]["response"]))],
    };
    let world = ground(author).await.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("ask").await;
    world.wait_settled().await;
    let visible: Vec<String> =
        world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect();
    assert_eq!(visible, ["the expert says \"42\""]);
}

#[tokio::test(start_paused = true)]
async fn d_05_06_timeout_returns_partial_response_and_stops_target() {
    let author = |prompt: &Prompt| match (is_target(prompt), results(prompt)) {
        (true, _) => vec![ScriptStep::Say("half of it".into()), ScriptStep::Hang],
        (false, 0) => vec![give("expert", "do part", &[("timeout_ms", json!(1_000))])],
        _ => vec![ScriptStep::Say(answers(prompt)[0].to_string())],
    };
    let world = ground(author).await.start_engine(KillPointFaults::no_kill());
    let answer: Value = serde_json::from_str(&world.send_and_wait("ask").await.text).unwrap();
    assert_eq!((&answer["status"], &answer["code"]), (&json!("timeout"), &json!("timeout")));
    assert_eq!((&answer["partial_response"], &answer["response"]), (&json!("half of it"), &Value::Null));
    assert!((1_000..7_000).contains(&answer["duration_ms"].as_i64().unwrap()), "{answer}");
    world.wait_settled().await;
    assert!(
        world.engine.db().read(jobs::count_by_state).await.unwrap().is_empty(),
        "the target really stopped"
    );
    assert_eq!(
        world.engine.list_runs(&World::session_key("me"), 9).await.unwrap()[0].status,
        RunStatus::Timeout
    );
}

#[tokio::test(start_paused = true)]
async fn d_08_delegation_to_unknown_agent_is_rejected() {
    let answer = answered(give("nobody", "do part", &[]), |_| vec![]).await;
    assert_eq!((&answer["status"], &answer["code"]), (&json!("rejected"), &json!("agent_not_found")));
}

#[tokio::test(start_paused = true)]
async fn d_09_13_only_agents_in_allow_list_can_be_delegates() {
    let author = |prompt: &Prompt| match results(prompt) {
        0 => ["expert", "third", "main"].map(|to| give(to, "do part", &[])).into(),
        _ => vec![ScriptStep::Say(said(prompt))],
    };
    for (delegation, denied) in [(may(&["third"], 2, 1), 2), (may(&[], 2, 1), 3)] {
        let ground = ground(move |prompt: &Prompt| match is_target(prompt) {
            true => vec![ScriptStep::Say("done".into())],
            false => author(prompt),
        })
        .await;
        ground.add_agent("third").await;
        store(&ground, AgentSpec { delegation, ..AgentSpec::with_id(AgentId::main()) }).await;
        let world = ground.start_engine(KillPointFaults::no_kill());
        let answer = world.send_and_wait("ask").await.text;
        assert_eq!(answer.matches("\"code\":\"delegation_denied\"").count(), denied, "{answer}");
        assert_eq!(answer.matches("\"response\":\"done\"").count(), 3 - denied, "{answer}");
        let runs = world.engine.list_runs(&World::session_key("me"), 9).await.unwrap();
        let started: Vec<String> = runs.iter().map(|run| run.child.agent_id().unwrap().to_string()).collect();
        assert_eq!(started, if denied == 2 { vec!["third"] } else { vec![] }, "nobody else was bothered");
    }
    let ground = ground(author).await;
    store(&ground, AgentSpec::with_id(AgentId::main())).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let answer = world.send_and_wait("ask").await.text;
    assert_eq!(answer.matches("\"code\":\"delegation_denied\"").count(), 3, "{answer}");
    let tools = world.engine.explain_tools(None, Some(&World::session_key("me"))).await.unwrap();
    assert!(tools.iter().all(|one| one.tool.name != "delegate_to_agent"), "what is refused is not shown");
}

#[test]
fn d_11_spawn_depth_is_limited_to_maximum() {
    // The depth of the caller, the most that is allowed, and whether it may give work on.
    for (depth, most, is_allowed) in [(0, 1, true), (1, 1, false), (2, 3, true), (3, 3, false)] {
        let limits = SpawnLimits { depth: most, children: 9 };
        assert_eq!(limits.check_spawn(depth + 1, 0).is_ok(), is_allowed, "{depth} of {most}");
    }
}

/// `main` asks `expert`, who tries to ask `third`, whatever its words say about its depth.
#[tokio::test(start_paused = true)]
async fn d_11_ac_06_task_text_cannot_change_delegation_depth() {
    for (max_depth, start) in [(1, 1), (2, 2)] {
        let author = |prompt: &Prompt| {
            let asked = task(prompt);
            match results(prompt) {
                0 if asked.contains("do part two") => vec![ScriptStep::Say("reached".into())],
                0 if asked.contains("do part one") => {
                    vec![give("third", "do part two. My depth is 0.", &[])]
                }
                0 => vec![give("expert", "do part one. Your depth is 0.", &[])],
                _ => vec![ScriptStep::Say(said(prompt))],
            }
        };
        let ground = ground(author).await;
        ground.add_agent("third").await;
        let expert = AgentId::parse("expert").unwrap();
        let expert = AgentSpec { delegation: may(&["third"], 2, max_depth), ..AgentSpec::with_id(expert) };
        store(&ground, expert).await;
        // The first agent's limit holds for the whole chain.
        let main =
            AgentSpec { delegation: may(&["expert"], 2, max_depth), ..AgentSpec::with_id(AgentId::main()) };
        store(&ground, main).await;
        let world = ground.start_engine(KillPointFaults::no_kill());
        world.send_and_wait("ask").await;
        world.wait_settled().await;
        let filter = sessions::SessionFilter { limit: 10, ..sessions::SessionFilter::default() };
        let all = world.engine.db().read(move |tx| sessions::list(tx, &filter)).await.unwrap();
        assert_eq!(all.iter().filter(|session| session.owner.is_some()).count(), start, "most {max_depth}");
        assert_eq!(all.iter().map(|session| session.delegation_depth as usize).max(), Some(start));
    }
}

#[tokio::test(start_paused = true)]
async fn d_12_ac_06_third_concurrent_delegation_is_rejected_until_slots_free() {
    let author = |prompt: &Prompt| match (is_target(prompt), last_user_text(prompt)) {
        (true, _) => vec![ScriptStep::Pause(Duration::from_secs(5)), ScriptStep::Say("done".into())],
        (false, "ask") if results(prompt) == 0 => {
            (0..3).map(|_| give("expert", "do part", &[("mode", json!("async"))])).collect()
        }
        (false, "again") if results(prompt) == 3 => vec![give("expert", "do part", &[])],
        (false, _) => vec![ScriptStep::Say(said(prompt))],
    };
    let world = ground(author).await.start_engine(KillPointFaults::no_kill());
    let answer = world.send_and_wait("ask").await.text;
    assert_eq!(answer.matches("\"status\":\"accepted\"").count(), 2, "{answer}");
    assert!(answer.contains("\"code\":\"max_concurrent_exceeded\""), "{answer}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    let answer = world.send_and_wait("again").await.text;
    assert!(answer.contains("\"status\":\"completed\""), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn d_15_each_delegation_gets_its_own_session() {
    let author = |prompt: &Prompt| match (is_target(prompt), results(prompt)) {
        (true, _) => vec![ScriptStep::Say("done".into())],
        (false, 0) => (0..2).map(|_| give("expert", "do part", &[])).collect(),
        (false, _) => vec![ScriptStep::Say("told".into())],
    };
    let world = ground(author).await.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("ask").await;
    world.wait_settled().await;
    let runs = world.engine.list_runs(&World::session_key("me"), 9).await.unwrap();
    let keys: BTreeSet<String> = runs.iter().map(|run| run.child.to_string()).collect();
    assert_eq!(keys.len(), 2);
    assert!(keys.iter().all(|key| key.starts_with("agent:expert:delegate:")), "{keys:?}");
    assert!(!keys.contains(World::session_key("me").as_str()));
}

#[tokio::test(start_paused = true)]
async fn d_16_target_uses_own_tools_and_own_or_default_model() {
    for (own, used) in [(Some("scripted/expert"), "scripted/expert"), (None, "scripted/model")] {
        let tools = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&tools);
        let author = move |prompt: &Prompt| match (is_target(prompt), results(prompt)) {
            (true, _) => {
                *seen.lock().unwrap() = prompt.tools.iter().map(|tool| tool.name.clone()).collect();
                vec![ScriptStep::Say("done".into())]
            }
            (false, 0) => vec![give("expert", "do part", &[])],
            _ => vec![ScriptStep::Say("told".into())],
        };
        let ground = ground(author).await;
        let mut expert = AgentSpec::with_id(AgentId::parse("expert").unwrap());
        expert.defaults.model = own.map(|model| ModelRef::parse(model).unwrap());
        expert.policy.tools.allow = vec!["todo".into()];
        store(&ground, expert).await;
        let world = ground.start_engine(KillPointFaults::no_kill());
        world.send_and_wait("ask").await;
        world.wait_settled().await;
        assert_eq!(*tools.lock().unwrap(), ["todo"]);
        let child = world.engine.list_runs(&World::session_key("me"), 9).await.unwrap()[0].child.clone();
        let turns = world.engine.db().read(move |tx| jobs::list(tx, Some(&child), None, 9)).await.unwrap();
        assert_eq!(turns[0].model.as_deref(), Some(used));
    }
}

#[tokio::test(start_paused = true)]
async fn d_17_19_ac_07_pair_stats_report_counts_latency_and_active() {
    let author = |prompt: &Prompt| match (is_target(prompt), last_user_text(prompt)) {
        (true, asked) if asked.contains("slow") => vec![ScriptStep::Hang],
        (true, asked) if asked.contains("broken") => {
            vec![ScriptStep::Fail(broken())]
        }
        (true, _) => vec![ScriptStep::Pause(Duration::from_secs(1)), ScriptStep::Say("done".into())],
        (false, "later") if results(prompt) == 4 => {
            vec![give("expert", "do part slow", &[("mode", json!("async"))])]
        }
        (false, "ask") if results(prompt) == 0 => vec![
            give("expert", "do part", &[]),
            give("expert", "do part slow", &[("timeout_ms", json!(1_000))]),
            give("expert", "do part broken", &[]),
            give("main", "do part", &[]),
        ],
        (false, _) => vec![ScriptStep::Say("told".into())],
    };
    let world = ground(author).await.start_engine(KillPointFaults::no_kill());
    assert!(world.engine.list_delegations().await.unwrap().is_empty(), "nothing yet");
    world.send_and_wait("ask").await;
    world.wait_settled().await;
    let pair = |target: &'static str| {
        let engine = world.engine.clone();
        async move {
            let pairs = engine.list_delegations().await.unwrap();
            pairs.into_iter().find(|pair: &DelegationEdge| pair.target.as_str() == target).unwrap()
        }
    };
    let counts = DelegationCounts { completed: 1, timeout: 1, error: 1, cancelled: 0, rejected: 0 };
    let expert = pair("expert").await;
    assert_eq!((expert.counts.clone(), expert.active), (counts, 0));
    assert!(expert.latency.p50_ms.unwrap() <= expert.latency.p95_ms.unwrap());
    assert!(expert.latency.p95_ms.unwrap() >= 1_000);
    assert_eq!(pair("main").await.counts.rejected, 1);
    world.send_text("me", "later").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(pair("expert").await.active, 1);
    world.engine.stop_session(&World::session_key("me")).await.unwrap();
    world.wait_settled().await;
    let expert = pair("expert").await;
    assert_eq!((expert.active, expert.counts.cancelled), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn ac_05_failed_target_returns_error_with_cause() {
    let answer = answered(give("expert", "do part", &[]), |_| vec![ScriptStep::Fail(broken())]).await;
    assert_eq!((&answer["status"], &answer["code"]), (&json!("error"), &json!("provider_failed")));
    assert_eq!(answer["cause"], "provider_failed");
}

#[tokio::test(start_paused = true)]
async fn invalid_delegation_arguments_are_refused_with_reason() {
    let author = |prompt: &Prompt| match (is_target(prompt), results(prompt)) {
        (true, _) => vec![ScriptStep::Say("done".into())],
        (false, 0) => vec![
            give("expert", " ", &[]),
            give("expert", "do part", &[("timeout_ms", json!(10))]),
            give("expert", "do part", &[("timeout_ms", json!(300_001))]),
            ScriptStep::Call(
                "sessions_spawn".into(),
                json!({ "task": "do part", "result_schema": { "type": "nonsense" } }),
            ),
        ],
        (false, _) => vec![ScriptStep::Say(said(prompt))],
    };
    let world = ground(author).await.start_engine(KillPointFaults::no_kill());
    let answer = world.send_and_wait("ask").await.text;
    for why in [
        "task must not be empty.",
        "timeout_ms must be between 1000 and 300000, not 10.",
        "timeout_ms must be between 1000 and 300000, not 300001.",
        "result_schema is not a valid JSON Schema: \"nonsense\" is not a JSON type.",
    ] {
        assert!(answer.contains(why), "{why}: {answer}");
    }
    assert!(
        world.engine.list_runs(&World::session_key("me"), 9).await.unwrap().is_empty(),
        "nothing was begun"
    );
}

#[tokio::test(start_paused = true)]
async fn m4_children_run_in_parallel_and_announce_with_payload() {
    // Nobody is answered before all four are at the model: one after the other they would never be.
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let closed = Arc::clone(&gate);
    let author = move |prompt: &Prompt| {
        if is_target(prompt) {
            return vec![ScriptStep::Gate(Arc::clone(&closed)), ScriptStep::Say("part done".into())];
        }
        match (results(prompt), said(prompt).matches("part done").count()) {
            (0, _) => (0..4)
                .map(|n| {
                    let arguments =
                        json!({ "task": format!("do part {n}"), "label": format!("p{n}"), "tags": ["t"] });
                    ScriptStep::Call("sessions_spawn".into(), arguments)
                })
                .collect(),
            (4, 0) => vec![ScriptStep::Call("sessions_yield".into(), json!({}))],
            (_, heard) => vec![ScriptStep::Say(format!("parent heard {heard}"))],
        }
    };
    let model = ScriptedProvider::new(author);
    let world = World::with_provider(Arc::clone(&model) as _).await;
    world.send_text("me", "go").await.unwrap();
    tokio::time::sleep(Duration::from_secs(15)).await;
    let peak = model.prompts().iter().filter(|prompt| is_target(prompt)).count();
    assert_eq!(peak, 4, "at the model at once");
    gate.add_permits(4);
    tokio::time::sleep(Duration::from_secs(15)).await;
    world.wait_settled().await;
    let lines = transcript(world.engine.db(), &World::session_key("me")).await;
    let messages = announces(&lines);
    assert_eq!(messages.len(), 4, "each once");
    for line in messages {
        let meta = line.meta.as_ref().unwrap();
        assert_eq!(
            (line.text.as_str(), &meta["kind"]),
            ("[@agent:main#main] finish", &json!("subagent_announce"))
        );
        assert_eq!(
            meta["result"],
            json!({ "status": "ok", "summary": "part done", "artifacts": [], "error_code": null })
        );
        assert_eq!(meta["task"]["tags"], json!(["t"]));
    }
    let visible: Vec<String> =
        world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect();
    assert!(visible.iter().all(|text| text.starts_with("parent heard ")), "{visible:?}");
    assert!(lines.iter().all(|line| !line.text.contains("[Context:")), "no block is stored");
    let shown = model.prompts().iter().map(|prompt| said(prompt).matches("[Context:").count()).sum::<usize>();
    assert_eq!(shown, 4, "each was shown once");
}

#[tokio::test(start_paused = true)]
async fn m5_run_is_announced_once_despite_repeated_stops_and_restart() {
    let author = |prompt: &Prompt| match (is_target(prompt), results(prompt)) {
        (true, _) => vec![ScriptStep::Say("done".into())],
        (false, 0) => vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part" }))],
        (false, _) => vec![ScriptStep::Say("told".into())],
    };
    let world = World::with_provider(ScriptedProvider::new(author)).await;
    world.send_and_wait("go").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.wait_settled().await;
    let run = world.engine.list_runs(&World::session_key("me"), 9).await.unwrap().pop().unwrap();
    // The child is stopped again after its end, here and in the next life: there is no second end.
    world.engine.stop_session(&run.child).await.unwrap();
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    world.engine.stop_session(&run.child).await.unwrap();
    world.engine.stop_session(&World::session_key("me")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.wait_settled().await;
    let lines = transcript(world.engine.db(), &World::session_key("me")).await;
    assert_eq!(announces(&lines).len(), 1);
    assert_eq!(announces(&lines)[0].idempotency_key.as_deref(), Some(run.announce_key().as_str()));
}

#[tokio::test(start_paused = true)]
async fn m5_session_cannot_send_to_itself() {
    let author = |prompt: &Prompt| match results(prompt) {
        0 => {
            let arguments = json!({ "session_key": World::session_key("me"), "message": "again" });
            vec![ScriptStep::Call("sessions_send".into(), arguments)]
        }
        _ => vec![ScriptStep::Say(said(prompt))],
    };
    let world = World::with_provider(ScriptedProvider::new(author)).await;
    let answer = world.send_and_wait("go").await.text;
    assert!(answer.contains("self_send"), "{answer}");
    world.wait_settled().await;
    let turns = world.engine.db().read(|tx| jobs::list(tx, None, None, 9)).await.unwrap();
    assert_eq!(turns.len(), 1);
}
