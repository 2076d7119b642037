//! What runs are asked for and answered with: waiting for any, results of a shape, limits, and refusals by their codes.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::agent::{AgentSpec, DelegationPolicy, SubagentPolicy};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::provider::{Prompt, PromptMessage, ReasoningEffort};
use polyclaw_domain::run::RunStatus;
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::{Db, Tx};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider, last_user_text};
use serde_json::{Value, json};

use crate::families::{delegating_ground, results, said, task};

/// What the calls of a turn were answered, as values. What others said stands in a frame.
fn answers(text: &str) -> Vec<Value> {
    let lines = text.lines().map(|line| line.strip_prefix("result ").unwrap_or(line));
    lines.filter(|line| line.starts_with('{')).filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn call(name: &str, given: Value) -> ScriptStep {
    ScriptStep::Call(name.to_owned(), given)
}

fn spawn(given: Value) -> ScriptStep {
    call("sessions_spawn", given)
}

async fn store(ground: &DurableWorld, spec: AgentSpec) {
    let write = move |tx: &mut Tx<'_>| {
        agents::upsert(tx, &spec, AgentSource::Config, polyclaw_domain::time::Millis(1))
    };
    ground.db.write(write).await.unwrap();
}

async fn ground(author: fn(&Prompt) -> ModelScript) -> (DurableWorld, Arc<ScriptedProvider>) {
    let model = ScriptedProvider::new(author);
    (DurableWorld::from_db(Db::in_memory().unwrap(), Arc::clone(&model) as _).await, model)
}

/// The last thing the lead of a test was shown.
fn last(model: &ScriptedProvider) -> Prompt {
    model.prompts().into_iter().rfind(|prompt| !task(prompt).contains("do part")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn agents_wait_any_returns_with_first_result() {
    let (ground, model) = ground(|prompt| match (task(prompt), results(prompt)) {
        (first, _) if first.contains("do part quick") => vec![ScriptStep::Say("quick is done".into())],
        (first, _) if first.contains("do part slow") => vec![ScriptStep::Hang],
        (_, 0) => vec![spawn(json!({ "task": "do part slow" })), spawn(json!({ "task": "do part quick" }))],
        (_, 2) => {
            let ids: Vec<Value> = answers(&said(prompt)).iter().map(|run| run["run_id"].clone()).collect();
            vec![call("agents_wait", json!({ "run_ids": ids, "mode": "any", "timeout": 500 }))]
        }
        _ => vec![ScriptStep::Say("went on".into())],
    })
    .await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let began = world.engine.now();
    assert_eq!(world.send_and_wait("go").await.text, "went on");
    assert!(world.engine.now().since(began) < 60_000, "it did not wait for the other");
    let runs = answers(&said(&last(&model))).remove(2)["runs"].clone();
    let of = |word: &str| {
        let found = runs.as_array().unwrap().iter().find(|run| run["label"].as_str().unwrap().contains(word));
        found.unwrap().clone()
    };
    assert_eq!((&of("quick")["status"], &of("quick")["result"]), (&json!("ok"), &json!("quick is done")));
    assert_eq!((&of("slow")["status"], &of("slow")["fits_schema"]), (&json!("running"), &Value::Null));
    // The name it had before is no name of it any more.
    let (old, model) = self::ground(|prompt| match results(prompt) {
        0 => vec![call("agents_wait", json!({ "run_ids": ["x"], "timeout_seconds": 5 }))],
        _ => vec![ScriptStep::Say(said(prompt))],
    })
    .await;
    assert!(
        old.start_engine(KillPointFaults::no_kill())
            .send_and_wait("go")
            .await
            .text
            .contains("timeout_seconds")
    );
    drop(model);
}

#[tokio::test(start_paused = true)]
async fn run_result_reports_whether_it_fits_schema() {
    let (ground, model) = ground(|prompt| match (task(prompt), results(prompt)) {
        (first, _) if first.contains("do part good") => vec![ScriptStep::Say("{\"n\": 7}".into())],
        (first, _) if first.contains("do part bad") => vec![ScriptStep::Say("{\"n\": \"seven\"}".into())],
        (first, _) if first.contains("do part prose") => vec![ScriptStep::Say("seven".into())],
        (first, _) if first.contains("do part free") => vec![ScriptStep::Say("seven".into())],
        (_, 0) => {
            let schema = json!({ "type": "object", "required": ["n"],
                "properties": { "n": { "type": "integer" } } });
            let asked =
                |word: &str| spawn(json!({ "task": format!("do part {word}"), "result_schema": schema }));
            vec![asked("good"), asked("bad"), asked("prose"), spawn(json!({ "task": "do part free" }))]
        }
        (_, 4) => {
            let ids: Vec<Value> = answers(&said(prompt)).iter().map(|run| run["run_id"].clone()).collect();
            vec![call("agents_wait", json!({ "run_ids": ids, "timeout": 60 }))]
        }
        _ => vec![ScriptStep::Say("checked".into())],
    })
    .await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert_eq!(world.send_and_wait("go").await.text, "checked");
    let runs = answers(&said(&last(&model))).remove(4)["runs"].clone();
    let fits: Vec<&Value> = runs.as_array().unwrap().iter().map(|run| &run["fits_schema"]).collect();
    assert_eq!(fits, [&json!(true), &json!(false), &json!(false), &Value::Null]);
    let asked = model.prompts().into_iter().find(|prompt| task(prompt).contains("do part good")).unwrap();
    assert!(task(&asked).contains("matches this schema") && task(&asked).contains("\"integer\""));
}

/// Counted over all sessions of the agent, and named.
#[tokio::test(start_paused = true)]
async fn max_concurrent_subagents_counts_all_sessions_of_agent() {
    let (ground, model) = ground(|prompt| match (task(prompt), results(prompt)) {
        (first, _) if first.contains("do part") => vec![ScriptStep::Hang],
        (_, 0) => (0..2).map(|_| spawn(json!({ "task": "do part", "timeout_seconds": 60 }))).collect(),
        _ => vec![ScriptStep::Say(said(prompt))],
    })
    .await;
    let rules = SubagentPolicy { max_concurrent: 3, ..SubagentPolicy::default() };
    store(&ground, AgentSpec { subagents: rules, ..AgentSpec::with_id(AgentId::main()) }).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert!(!world.send_and_wait("go").await.text.contains("max_concurrent"));
    let other = world.send_text("other", "go").await.unwrap();
    let text = world.wait_answer(&other).await.text;
    assert!(
        text.contains("this would exceed subagents.max_concurrent: this agent already has 3 active sub-agents, and the maximum is 3"),
        "{text}"
    );
    assert_eq!(world.engine.list_runs(&World::session_key("other"), 9).await.unwrap().len(), 1);
    tokio::time::sleep(Duration::from_secs(90)).await;
    let third = world.send_text("third", "go").await.unwrap();
    assert!(!world.wait_answer(&third).await.text.contains("max_concurrent"), "those have ended");
    drop(model);
}

#[tokio::test(start_paused = true)]
async fn spawn_request_sets_reasoning_effort_of_child() {
    let (ground, model) = ground(|prompt| match (task(prompt), results(prompt)) {
        (first, _) if first.contains("do part") => vec![ScriptStep::Say("done".into())],
        (_, 0) => vec![
            spawn(json!({ "task": "do part a", "thinking": "high" })),
            spawn(json!({ "task": "do part b" })),
            spawn(json!({ "task": "do part c", "thinking": "a lot" })),
        ],
        _ => vec![ScriptStep::Say("begun".into())],
    })
    .await;
    let mut spec = AgentSpec::with_id(AgentId::main());
    spec.defaults.reasoning_effort = Some(ReasoningEffort::Medium);
    spec.subagents.thinking = Some(ReasoningEffort::Low);
    store(&ground, spec).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("go").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let of = |word: &str| {
        let found = model.prompts().into_iter().find(|prompt| task(prompt).contains(word));
        found.and_then(|prompt| prompt.reasoning_effort)
    };
    assert_eq!((of("do part a"), of("do part b")), (Some(ReasoningEffort::High), Some(ReasoningEffort::Low)));
    assert_eq!(of("go"), Some(ReasoningEffort::Medium), "its own is as its agent says");
    assert_eq!(
        world.engine.list_runs(&World::session_key("me"), 9).await.unwrap().len(),
        2,
        "a lot is no measure"
    );
}

/// Whatever became of it, whoever gave work away is told in which session and how long that took.
#[tokio::test(start_paused = true)]
async fn every_delegation_result_has_same_fields() {
    fn author(prompt: &Prompt) -> ModelScript {
        if task(prompt).contains("do part quick") {
            return vec![ScriptStep::Pause(Duration::from_secs(1)), ScriptStep::Say("done".into())];
        }
        if task(prompt).contains("do part") {
            return vec![ScriptStep::Hang];
        }
        let give = |agent: &str, rest: Value| {
            let mut given = json!({ "agent_id": agent, "task": "do part for ever" });
            given.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            call("delegate_to_agent", given)
        };
        match results(prompt) {
            0 => vec![
                give("expert", json!({ "task": "do part quick" })),
                give("expert", json!({ "timeout_ms": 1000 })),
                give("nobody", json!({})),
                give("expert", json!({ "mode": "async", "timeout_ms": 2000 })),
            ],
            _ => vec![ScriptStep::Say(said(prompt))],
        }
    }
    let world = delegating_ground(author).await.start_engine(KillPointFaults::no_kill());
    let text = world.send_and_wait("ask").await.text;
    let entries = answers(&text);
    let statuses: Vec<&str> = entries.iter().map(|one| one["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["completed", "timeout", "rejected", "accepted"]);
    for one in &entries {
        assert!(one["duration_ms"].is_i64() && one.get("session_key").is_some(), "{one}");
        assert!(one["agent_id"].is_string(), "{one}");
    }
    assert!(entries[0]["duration_ms"].as_i64().unwrap() >= 1_000 && entries[2]["session_key"].is_null());
    // What nobody waits for has the time it was given, too.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let run = world.engine.list_runs(&World::session_key("me"), 9).await.unwrap().remove(0);
    let took = run.ended_at.expect("it has ended").since(run.created_at);
    assert!(run.status == RunStatus::Timeout && (2_000..5_000).contains(&took), "{run:#?}");
}

/// A model may call what it was not shown: it is told which rule is against it, by the codes of delegations.
#[tokio::test(start_paused = true)]
async fn denied_or_too_deep_delegation_returns_error_code() {
    fn author(prompt: &Prompt) -> ModelScript {
        match prompt.messages.last() {
            Some(PromptMessage::User { .. }) => {
                vec![call("delegate_to_agent", json!({ "agent_id": "expert", "task": "do part below" }))]
            }
            _ => vec![ScriptStep::Say(said(prompt))],
        }
    }
    let of = |agent: &str, delegation: Option<DelegationPolicy>| AgentSpec {
        delegation,
        ..AgentSpec::with_id(AgentId::parse(agent).unwrap())
    };
    let rules = DelegationPolicy { allow_agents: vec!["*".into()], max_concurrent: 2, max_depth: 1 };
    let (ground, model) = ground(author).await;
    store(&ground, of("expert", Some(rules.clone()))).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let text = world.send_and_wait("ask").await.text;
    let is_hidden = |prompt: &Prompt| prompt.tools.iter().all(|tool| tool.name != "delegate_to_agent");
    assert!(model.prompts().iter().all(is_hidden));
    assert!(
        text.contains("\"code\":\"delegation_denied\"") && text.contains("\"status\":\"rejected\""),
        "{text}"
    );
    store(&ground, of("main", Some(rules))).await;
    let text = world.send_and_wait("ask again").await.text;
    assert!(text.contains("\"status\":\"completed\""), "{text}");
    let below = model.prompts().into_iter().rfind(|prompt| task(prompt).contains("do part below")).unwrap();
    assert!(is_hidden(&below) && last_user_text(&below).contains("do part below"));
    assert!(said(&below).contains("\"code\":\"delegation_depth_exceeded\""), "{}", said(&below));
    assert!(said(&below).contains("\"duration_ms\":0"), "{}", said(&below));
}

/// main gives to expert, expert to third: the first one's limit holds for its whole chain.
#[tokio::test(start_paused = true)]
async fn max_depth_of_first_agent_limits_delegation_chain() {
    fn author(prompt: &Prompt) -> ModelScript {
        let next = match task(prompt) {
            first if first.contains("for the expert") => Some(("third", "for the third")),
            first if first.contains("for the third") => None,
            _ => Some(("expert", "for the expert")),
        };
        match (prompt.messages.last(), next) {
            (Some(PromptMessage::User { .. }), Some((agent, task))) => {
                vec![call("delegate_to_agent", json!({ "agent_id": agent, "task": task }))]
            }
            _ => vec![ScriptStep::Say(said(prompt))],
        }
    }
    let of = |agent: &str, max_depth: u32| {
        let rules = DelegationPolicy { allow_agents: vec!["*".into()], max_concurrent: 2, max_depth };
        AgentSpec { delegation: Some(rules), ..AgentSpec::with_id(AgentId::parse(agent).unwrap()) }
    };
    for (depth, is_refused) in [(1, true), (2, false)] {
        let (ground, model) = ground(author).await;
        for spec in [of("main", depth), of("expert", 3), of("third", 3)] {
            store(&ground, spec).await;
        }
        let world = ground.start_engine(KillPointFaults::no_kill());
        world.send_and_wait("go").await;
        let asked_third = model.prompts().iter().any(|prompt| task(prompt).contains("for the third"));
        assert_eq!(asked_third, !is_refused, "max_depth {depth} of the first agent");
        let pairs = world.engine.list_delegations().await.unwrap();
        let rejected = pairs.iter().find(|pair| pair.target.as_str() == "third").unwrap().counts.rejected;
        assert_eq!(rejected, u64::from(is_refused), "refusals are counted");
    }
}

#[tokio::test(start_paused = true)]
async fn max_concurrent_delegations_counts_all_sessions_of_agent() {
    fn author(prompt: &Prompt) -> ModelScript {
        match (task(prompt), prompt.messages.last()) {
            (first, _) if first.contains("do part") => vec![ScriptStep::Hang],
            (_, Some(PromptMessage::User { .. })) => {
                let given = json!({ "agent_id": "expert", "task": "do part", "mode": "async" });
                vec![call("delegate_to_agent", given)]
            }
            _ => vec![ScriptStep::Say(said(prompt))],
        }
    }
    let (ground, _) = ground(author).await;
    let rules = DelegationPolicy { allow_agents: vec!["*".into()], max_concurrent: 1, max_depth: 1 };
    let main = AgentSpec { delegation: Some(rules), ..AgentSpec::with_id(AgentId::main()) };
    store(&ground, main).await;
    store(&ground, AgentSpec::with_id(AgentId::parse("expert").unwrap())).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert!(world.send_and_wait("go").await.text.contains("\"status\":\"accepted\""));
    let other = world.send_text("somebody else", "go").await.unwrap();
    let text = world.wait_answer(&other).await.text;
    assert!(text.contains("\"code\":\"max_concurrent_exceeded\""), "{text}");
    assert!(text.contains("this agent already has 1 active delegations"), "{text}");
    world.engine.stop_session(&World::session_key("me")).await.unwrap();
    world.wait_settled().await;
}

#[tokio::test(start_paused = true)]
async fn delegation_without_grant_is_counted_as_rejected() {
    fn author(prompt: &Prompt) -> ModelScript {
        match prompt.messages.last() {
            Some(PromptMessage::User { .. }) => {
                vec![call("delegate_to_agent", json!({ "agent_id": "expert", "task": "anything" }))]
            }
            _ => vec![ScriptStep::Say("so be it".into())],
        }
    }
    let (ground, _) = ground(author).await;
    store(&ground, AgentSpec::with_id(AgentId::parse("expert").unwrap())).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("go").await;
    let pairs = world.engine.list_delegations().await.unwrap();
    assert_eq!(pairs.iter().map(|pair| pair.counts.rejected).sum::<u64>(), 1);
    let turns = world.engine.agent_turns();
    assert_eq!((turns["main"].done, turns["main"].count), (1, 1), "turns are counted by agent");
}
