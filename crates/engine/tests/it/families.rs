use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polyclaw_domain::agent::{AgentSpec, DelegationPolicy};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::message::MessageRole;
use polyclaw_domain::provider::{ErrorClass, Prompt, PromptMessage, ProviderError};
use polyclaw_domain::run::{RunStatus, SubagentRun};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome, ToolScope};
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::sessions::SessionFilter;
use polyclaw_store::{Db, events, messages, sessions};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider, last_user_text};
use serde_json::{Value, json};

pub fn said(prompt: &Prompt) -> String {
    prompt
        .messages
        .iter()
        .map(|message| match message {
            PromptMessage::User { text, .. } => format!("user {text}\n"),
            PromptMessage::Assistant { text, .. } => format!("assistant {text}\n"),
            PromptMessage::ToolResult { content, .. } => format!("result {content}\n"),
        })
        .collect()
}

pub fn results(prompt: &Prompt) -> usize {
    prompt.messages.iter().filter(|message| matches!(message, PromptMessage::ToolResult { .. })).count()
}

/// What its conversation began with.
pub fn task(prompt: &Prompt) -> &str {
    match prompt.messages.first() {
        Some(PromptMessage::User { text, .. }) => text,
        _ => "",
    }
}

fn is_child(prompt: &Prompt) -> bool {
    task(prompt).contains("do part")
}

/// A parent that begins three children and rests; children answer after a while; then it tells what it heard.
fn parent_of_three(prompt: &Prompt) -> ModelScript {
    if is_child(prompt) {
        let part =
            last_user_text(prompt).split("do part ").nth(1).unwrap_or("?").chars().next().unwrap_or('?');
        return vec![
            ScriptStep::Pause(Duration::from_secs(2)),
            ScriptStep::Say(format!("part {part} is done")),
        ];
    }
    let heard = said(prompt).matches("[Context: subagent_announce]").count();
    match (results(prompt), heard) {
        (0, 0) => (1..=3)
            .map(|n| {
                ScriptStep::Call(
                    "sessions_spawn".into(),
                    json!({ "task": format!("do part {n}"), "label": format!("p{n}") }),
                )
            })
            .collect(),
        (3, 0) => vec![ScriptStep::Call("sessions_yield".into(), json!({}))],
        (_, heard) => vec![ScriptStep::Say(format!("heard {heard}"))],
    }
}

pub async fn transcript(db: &Db, key: &SessionKey) -> Vec<SessionMessage> {
    let key = key.clone();
    let read = move |tx: &mut polyclaw_store::Tx<'_>| match sessions::get(tx, &key)? {
        Some(session) => messages::list_page(tx, &key, &session.id, 0, 10_000),
        None => Ok(Vec::new()),
    };
    db.read(read).await.unwrap()
}

pub fn announces(lines: &[SessionMessage]) -> Vec<&SessionMessage> {
    lines.iter().filter(|line| line.text.ends_with("] finish")).collect()
}

async fn assert_no_context_block_stored(db: &Db) {
    let filter = SessionFilter { agent: None, status: None, owner: None, after: None, limit: 1_000 };
    let all = db.read(move |tx| sessions::list(tx, &filter)).await.unwrap();
    for listed in all {
        for line in transcript(db, &listed.key).await {
            assert!(!line.text.contains("[Context:"), "{line:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn children_run_in_parallel_and_each_is_announced_once() {
    // No child is answered before all three have asked: one after the other they would wait here for ever.
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let closed = Arc::clone(&gate);
    let model = ScriptedProvider::new(move |prompt| {
        let mut script = parent_of_three(prompt);
        if is_child(prompt) {
            script.insert(0, ScriptStep::Gate(Arc::clone(&closed)));
        }
        script
    });
    let world = World::with_provider(Arc::clone(&model) as _).await;
    world.send_text("me", "do it").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let peak = model.prompts().iter().filter(|prompt| is_child(prompt)).count();
    assert_eq!(peak, 3, "at the model at once");
    assert!(announces(&transcript(world.engine.db(), &World::session_key("me")).await).is_empty());
    gate.add_permits(3);
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    let lines = transcript(world.engine.db(), &World::session_key("me")).await;
    let messages = announces(&lines);
    assert_eq!(messages.len(), 3, "{lines:#?}");
    for line in &messages {
        let meta = line.meta.as_ref().unwrap();
        assert_eq!((meta["result"]["status"].as_str(), line.deliver), (Some("ok"), false));
        assert_eq!((line.channel.as_str(), line.text.as_str()), ("internal", "[@agent:main#main] finish"));
        assert!(meta["result"]["summary"].as_str().unwrap().starts_with("part "));
    }
    // Children say nothing to people; the parent does, where it was asked.
    let visible: Vec<String> =
        world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect();
    assert!(!visible.is_empty() && visible.iter().all(|text| text.starts_with("heard ")), "{visible:?}");
    let shown: usize = model.prompts().iter().map(|prompt| said(prompt).matches("[Context:").count()).sum();
    assert_eq!(shown, 3, "each block is in one prompt, once");
    assert_no_context_block_stored(world.engine.db()).await;
    let runs = world.engine.list_runs(&World::session_key("me"), 10).await.unwrap();
    assert!(runs.iter().all(|run| run.status == RunStatus::Ok) && runs.len() == 3);
    let events =
        world.engine.db().read(|tx| events::list(tx, 0, Some("announce.delivered"), None, 10)).await.unwrap();
    let mut named: Vec<&str> = events.iter().filter_map(|event| event.data["run_id"].as_str()).collect();
    named.sort_unstable();
    named.dedup();
    assert_eq!((events.len(), named.len()), (3, 3), "each announce is an event");
}

/// A child may be done before its owner says that it waits: the announce is due then, and resting is no mistake.
#[tokio::test(start_paused = true)]
async fn yield_after_child_ended_delivers_announce_immediately() {
    let model = ScriptedProvider::new(|prompt| match () {
        () if is_child(prompt) => vec![ScriptStep::Say("part 1 is done".to_owned())],
        () if said(prompt).contains("[Context: subagent_announce]") => {
            vec![ScriptStep::Say("heard of it".to_owned())]
        }
        () if results(prompt) == 0 => vec![
            ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part 1" })),
            ScriptStep::Call("nap".into(), json!({})),
            ScriptStep::Call("sessions_yield".into(), json!({})),
        ],
        () => vec![ScriptStep::Say("asked a second time".to_owned())],
    });
    let ground = DurableWorld::from_db(Db::in_memory().unwrap(), Arc::clone(&model) as _).await;
    // Long enough for the child to end, and to be announced.
    ground.tools.add_tool("nap", ToolEffect::Pure, ToolConsent::NotNeeded, |_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            ToolOutcome::ok("slept")
        })
    });
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "do it").await.unwrap();
    tokio::time::sleep(Duration::from_secs(120)).await;
    world.wait_settled().await;
    let own = model.prompts().into_iter().filter(|prompt| !is_child(prompt)).count();
    assert_eq!(own, 2, "asked once, told once");
    let visible: Vec<String> =
        world.ground.fake_channel.visible_messages().into_iter().map(|(_, text)| text).collect();
    assert_eq!(visible, ["heard of it"]);
    let lines = transcript(world.engine.db(), &World::session_key("me")).await;
    assert_eq!(announces(&lines).len(), 1);
}

/// The turn that is told of children may fail: the next one is told of them, too.
#[tokio::test(start_paused = true)]
async fn announces_of_failed_turn_are_shown_to_next_turn() {
    let is_down = Arc::new(AtomicUsize::new(1));
    let down = Arc::clone(&is_down);
    let model = ScriptedProvider::new(move |prompt| {
        let heard = said(prompt).contains("[Context: subagent_announce]");
        match heard && !is_child(prompt) && down.load(Ordering::SeqCst) == 1 {
            true => vec![ScriptStep::Fail(ProviderError {
                class: ErrorClass::BadRequest,
                model: "any/model".to_owned(),
                message: "no".to_owned(),
                retry_after_ms: None,
            })],
            false => parent_of_three(prompt),
        }
    });
    let ground = DurableWorld::from_db(Db::in_memory().unwrap(), Arc::clone(&model) as _).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "do it").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    is_down.store(0, Ordering::SeqCst);
    assert_eq!(world.send_and_wait("and?").await.text, "heard 3");
    let before = model.prompts().len();
    world.send_and_wait("thanks").await;
    let shown = said(&model.prompts()[before]);
    assert_eq!(shown.matches("[Context: subagent_announce]").count(), 3, "each stays, once: {shown}");
    assert_no_context_block_stored(world.engine.db()).await;
}

/// What a child wrote is named to its owner: each file once, and none that was not written.
#[tokio::test(start_paused = true)]
async fn announce_lists_files_written_by_child() {
    let patch = "*** Begin Patch\n*** Add File: c.txt\n+c\n*** Delete File: d.txt\n*** End Patch";
    let model = ScriptedProvider::new(move |prompt| match (is_child(prompt), results(prompt)) {
        (true, 0) => vec![
            ScriptStep::Call("write_file".into(), json!({ "path": "a.txt", "content": "a" })),
            ScriptStep::Call("edit_file".into(), json!({ "path": "refused.txt" })),
            ScriptStep::Call("write_file".into(), json!({ "path": "a.txt", "content": "b" })),
            ScriptStep::Call("apply_patch".into(), json!({ "patch": patch })),
        ],
        (true, _) => vec![ScriptStep::Say("part 1 is done".to_owned())],
        (false, 0) => vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part 1" }))],
        _ => vec![ScriptStep::Say("heard".to_owned())],
    });
    let ground = DurableWorld::from_db(Db::in_memory().unwrap(), Arc::clone(&model) as _).await;
    for name in ["write_file", "edit_file", "apply_patch"] {
        ground.tools.add_tool(name, ToolEffect::Idempotent, ToolConsent::NotNeeded, |call| {
            let refused = call.arguments["path"] == "refused.txt";
            let outcome = if refused { ToolOutcome::error("no") } else { ToolOutcome::ok("written") };
            Box::pin(std::future::ready(outcome))
        });
    }
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "do it").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    let lines = transcript(world.engine.db(), &World::session_key("me")).await;
    let artifacts = &announces(&lines)[0].meta.as_ref().unwrap()["result"]["artifacts"];
    let file = |path: &str| json!({ "kind": "file", "path": path });
    assert_eq!(*artifacts, json!([file("a.txt"), file("c.txt")]));
    let shown = model.prompts().iter().map(said).find(|text| text.contains("[Context:")).unwrap();
    assert!(shown.contains("Artifacts: \n- file: a.txt\n- file: c.txt"), "{shown}");
}

fn git(folder: &std::path::Path, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]);
    let done = command.arg("-C").arg(folder).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The runtime sees it in the workspace: what a child says about commits is no proof.
#[tokio::test(start_paused = true)]
async fn announce_lists_commits_made_by_child() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedProvider::new(|prompt| {
        match (is_child(prompt), task(prompt).contains("commit"), results(prompt)) {
            (true, true, 0) => vec![ScriptStep::Call("commit".into(), json!({}))],
            (true, _, _) => vec![ScriptStep::Say("I made commit 1234".to_owned())],
            (false, _, 0) => vec![
                ScriptStep::Call(
                    "sessions_spawn".into(),
                    json!({ "task": "do part 1: commit", "label": "one" }),
                ),
                ScriptStep::Call("sessions_yield".into(), json!({})),
            ],
            _ => vec![ScriptStep::Say("heard".to_owned())],
        }
    });
    let mut ground = DurableWorld::from_db(Db::in_memory().unwrap(), Arc::clone(&model) as _).await;
    ground.settings.workspace = folder.path().to_owned();
    let spec = AgentSpec::with_id(AgentId::main());
    let scope = ToolScope::for_session(&spec, World::session_key("me"), folder.path(), false);
    let workspace = scope.workspace.clone();
    std::fs::create_dir_all(&workspace).unwrap();
    git(&workspace, &["init"]);
    git(&workspace, &["commit", "--allow-empty", "-m", "first"]);
    let place = workspace.clone();
    ground.tools.add_tool("commit", ToolEffect::Effect, ToolConsent::NotNeeded, move |_| {
        git(&place, &["commit", "--allow-empty", "-m", "second"]);
        Box::pin(std::future::ready(ToolOutcome::ok("done")))
    });
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "do it").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    let lines = transcript(world.engine.db(), &World::session_key("me")).await;
    let artifacts = &announces(&lines)[0].meta.as_ref().unwrap()["result"]["artifacts"];
    let id = std::fs::read_to_string(workspace.join(".git/refs/heads/main")).unwrap();
    assert_eq!(*artifacts, json!([{ "kind": "commit", "sha": id.trim() }]));
}

fn keyed() -> IngressMessage {
    IngressMessage { idempotency_key: Some("once".into()), ..World::inbound("me", "do it") }
}

#[tokio::test(start_paused = true)]
async fn no_announce_is_lost_or_duplicated_at_any_kill_point() {
    let points = [
        KillPoint::IngressCommitted,
        KillPoint::TurnClaimed,
        KillPoint::IntentStored,
        KillPoint::ToolRan,
        KillPoint::ResultStored,
        KillPoint::FinishBefore,
        KillPoint::FinishCommitted,
        KillPoint::MidStream,
    ];
    for point in points {
        for n in 1..=3 {
            let ground =
                DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::new(parent_of_three)).await;
            let faults = KillPointFaults::at_point(point, n);
            let world = ground.start_engine(Arc::clone(&faults));
            // Whether this comes back depends on where the engine dies; the message is asked for again below.
            let _ = tokio::time::timeout(Duration::from_secs(1), world.engine.accept_message(keyed())).await;
            let _ = tokio::time::timeout(Duration::from_secs(60), faults.wait_killed()).await;
            let world = world.kill().await.start_engine(KillPointFaults::no_kill());
            world.engine.accept_message(keyed()).await.unwrap();
            tokio::time::sleep(Duration::from_secs(120)).await;
            world.wait_settled().await;
            let lines = transcript(world.engine.db(), &World::session_key("me")).await;
            let keys: Vec<_> = announces(&lines).iter().map(|line| line.idempotency_key.clone()).collect();
            assert_eq!(keys.len(), 3, "{point:?} {n}: {keys:?}");
            let runs = world.engine.list_runs(&World::session_key("me"), 10).await.unwrap();
            assert!(runs.len() == 3 && runs.iter().all(|run| run.status == RunStatus::Ok), "{point:?} {n}");
        }
    }
}

/// Waits inside its turn for what it began.
fn waiting_parent(prompt: &Prompt) -> ModelScript {
    if is_child(prompt) {
        return vec![ScriptStep::Pause(Duration::from_secs(2)), ScriptStep::Say("part done".into())];
    }
    match results(prompt) {
        0 => vec![
            ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part 1" })),
            ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part 2" })),
        ],
        2 => {
            let ids: Vec<Value> = said(prompt)
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("result ")?).ok())
                .map(|result| result["run_id"].clone())
                .collect();
            vec![ScriptStep::Call("agents_wait".into(), json!({ "run_ids": ids, "timeout": 30 }))]
        }
        _ => {
            vec![ScriptStep::Say(format!("got {}", said(prompt).matches("\"result\":\"part done\"").count()))]
        }
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_turn_receives_results_without_new_turn() {
    let mut ground =
        DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::new(waiting_parent)).await;
    // One slot in every lane: whoever waits holds none.
    ground.settings.slots.values_mut().for_each(|slots| *slots = 1);
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert_eq!(world.send_and_wait("do it").await.text, "got 2");
    world.wait_settled().await;
    let lines = transcript(world.engine.db(), &World::session_key("me")).await;
    assert_eq!(announces(&lines).len(), 2);
    assert_eq!(
        lines.iter().filter(|line| line.role == MessageRole::Assistant && !line.text.is_empty()).count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn stopping_parent_stops_all_descendants() {
    fn endless(prompt: &Prompt) -> ModelScript {
        if task(prompt).contains("do part leaf") {
            return vec![ScriptStep::Hang];
        }
        match results(prompt) {
            0 if task(prompt).contains("do part branch") => {
                vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part leaf" }))]
            }
            0 => (0..4)
                .map(|_| ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part branch" })))
                .collect(),
            _ => vec![ScriptStep::Call("sessions_yield".into(), json!({}))],
        }
    }
    let model = ScriptedProvider::new(endless);
    let world = World::with_provider(Arc::clone(&model) as _).await;
    world.send_text("me", "do it").await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let stopped = world.engine.stop_session(&World::session_key("me")).await.unwrap();
    assert_eq!(stopped.children.len(), 8);
    assert!(stopped.children.iter().all(|label| label.starts_with("do part")), "{stopped:?}");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let runs = world.engine.list_runs(&World::session_key("me"), 10).await.unwrap();
    assert!(runs.iter().all(|run| run.status == RunStatus::Cancelled), "{runs:#?}");
    // What was stopped starts nothing; whoever stopped it is told when they write again.
    let asked = model.prompts().len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(model.prompts().len(), asked, "nobody is asked after a stop");
    world.send_text("me", "and now?").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let text = said(&model.prompts()[asked]);
    assert_eq!(text.matches("Status: cancelled").count(), 4, "{text}");
}

#[tokio::test(start_paused = true)]
async fn user_message_resets_hop_count() {
    fn one_more(prompt: &Prompt) -> ModelScript {
        if is_child(prompt) {
            return vec![ScriptStep::Say("done".into())];
        }
        match prompt.messages.last() {
            Some(PromptMessage::ToolResult { content, .. }) => vec![ScriptStep::Say(content.clone())],
            _ => vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part x" }))],
        }
    }
    let mut ground = DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::new(one_more)).await;
    // An announce waits until the person writes: each message joins a turn that agents began.
    ground.settings.slots.insert(polyclaw_domain::job::JobLane::InternalAnnounce, 0);
    let world = ground.start_engine(KillPointFaults::no_kill());
    for n in 0..12 {
        let answer = world.send_and_wait(&format!("one more {n}")).await.text;
        assert!(answer.contains("accepted"), "{n}: {answer}");
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(world.engine.list_runs(&World::session_key("me"), 100).await.unwrap().len(), 12);
}

#[tokio::test(start_paused = true)]
async fn spawn_limits_are_reported_and_slow_run_times_out() {
    let refusals = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&refusals);
    let asked = AtomicUsize::new(0);
    let model = ScriptedProvider::new(move |prompt: &Prompt| {
        if is_child(prompt) {
            return vec![ScriptStep::Hang];
        }
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => (0..6)
                .map(|_| {
                    ScriptStep::Call(
                        "sessions_spawn".into(),
                        json!({ "task": "do part x", "timeout_seconds": 5 }),
                    )
                })
                .chain([ScriptStep::Call(
                    "sessions_spawn".into(),
                    json!({ "task": "do part y", "agent_id": "other" }),
                )])
                .collect(),
            _ => {
                heard.lock().unwrap().push(said(prompt));
                vec![ScriptStep::Say("so be it".into())]
            }
        }
    });
    let ground = DurableWorld::from_db(Db::in_memory().unwrap(), model).await;
    ground.add_agent("other").await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert_eq!(world.send_and_wait("go").await.text, "so be it");
    let first = refusals.lock().unwrap()[0].clone();
    assert!(first.contains("max_children_per_agent"), "{first}");
    assert!(first.contains("subagents.allow_agents"), "{first}");
    tokio::time::sleep(Duration::from_secs(90)).await;
    let runs = world.engine.list_runs(&World::session_key("me"), 10).await.unwrap();
    assert!(runs.len() == 5 && runs.iter().all(|run| run.status == RunStatus::Timeout), "{runs:#?}");
    let took = |run: &SubagentRun| run.ended_at.unwrap().since(run.created_at);
    // Leases are renewed every ten seconds: nobody waits for that.
    assert!(runs.iter().all(|run| (5_000..8_000).contains(&took(run))), "{runs:#?}");
}

pub async fn delegating_ground(author: fn(&Prompt) -> ModelScript) -> DurableWorld {
    let ground = DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::new(author)).await;
    ground.add_agent("expert").await;
    let delegation =
        DelegationPolicy { allow_agents: vec!["expert".into()], max_concurrent: 2, max_depth: 1 };
    let spec = AgentSpec { delegation: Some(delegation), ..AgentSpec::with_id(AgentId::main()) };
    let write = move |tx: &mut polyclaw_store::Tx<'_>| {
        agents::upsert(tx, &spec, AgentSource::Config, polyclaw_domain::time::Millis(1))
    };
    ground.db.write(write).await.unwrap();
    ground
}

#[tokio::test(start_paused = true)]
async fn delegate_to_agent_returns_answer_or_error_code() {
    fn author(prompt: &Prompt) -> ModelScript {
        if task(prompt).contains("do part of the expert") {
            return vec![
                ScriptStep::Pause(Duration::from_secs(1)),
                ScriptStep::Say("the expert says 42".into()),
            ];
        }
        if task(prompt).contains("do part too long") {
            return vec![ScriptStep::Hang];
        }
        match results(prompt) {
            0 => vec![
                ScriptStep::Call(
                    "delegate_to_agent".into(),
                    json!({ "agent_id": "expert", "task": "do part of the expert" }),
                ),
                ScriptStep::Call(
                    "delegate_to_agent".into(),
                    json!({ "agent_id": "nobody", "task": "do part" }),
                ),
                ScriptStep::Call(
                    "delegate_to_agent".into(),
                    json!({ "agent_id": "main", "task": "do part" }),
                ),
                ScriptStep::Call(
                    "delegate_to_agent".into(),
                    json!({ "agent_id": "expert", "task": "do part too long", "timeout_ms": 1000 }),
                ),
            ],
            _ => vec![ScriptStep::Say(said(prompt))],
        }
    }
    let world = delegating_ground(author).await.start_engine(KillPointFaults::no_kill());
    let answer = world.send_and_wait("ask").await.text;
    assert!(answer.contains("\"status\":\"completed\"") && answer.contains("the expert says 42"), "{answer}");
    assert!(answer.contains("\"code\":\"agent_not_found\""), "{answer}");
    assert!(answer.contains("\"code\":\"delegation_denied\""), "{answer}");
    assert!(answer.contains("\"status\":\"timeout\""), "{answer}");
    world.wait_settled().await;
    assert_eq!(announces(&transcript(world.engine.db(), &World::session_key("me")).await).len(), 2);
}

/// Longer than a turn may be silent.
#[tokio::test(start_paused = true)]
async fn caller_waiting_for_active_delegate_does_not_stall() {
    fn author(prompt: &Prompt) -> ModelScript {
        match (task(prompt).contains("do part"), results(prompt)) {
            (true, n @ 0..2) => {
                vec![
                    ScriptStep::Pause(Duration::from_secs(80)),
                    ScriptStep::Call("look".into(), json!({ "n": n })),
                ]
            }
            (true, _) => {
                vec![ScriptStep::Pause(Duration::from_secs(80)), ScriptStep::Say("the expert says 42".into())]
            }
            (_, 0) => vec![ScriptStep::Call(
                "delegate_to_agent".into(),
                json!({ "agent_id": "expert", "task": "do part slowly", "timeout_ms": 300_000 }),
            )],
            _ => vec![ScriptStep::Pause(Duration::from_secs(80)), ScriptStep::Say(said(prompt))],
        }
    }
    let world = delegating_ground(author).await.start_engine(KillPointFaults::no_kill());
    let answer = world.send_and_wait("ask").await;
    assert!(answer.error_code.is_none() && answer.text.contains("the expert says 42"), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn automatic_turn_budget_holds_announces_until_user_message() {
    fn tireless(prompt: &Prompt) -> ModelScript {
        if is_child(prompt) {
            return vec![ScriptStep::Say("done".into())];
        }
        match prompt.messages.last() {
            Some(PromptMessage::ToolResult { .. }) => {
                vec![ScriptStep::Call("sessions_yield".into(), json!({}))]
            }
            _ => vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part again" }))],
        }
    }
    let mut ground = DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::new(tireless)).await;
    ground.settings.automatic_budget = 2;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "go").await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let start = world.engine.list_runs(&World::session_key("me"), 100).await.unwrap().len();
    assert_eq!(start, 3, "the first, and one for each automatic turn");
    let held =
        world.engine.db().read(|tx| events::list(tx, 0, Some("announce.held"), None, 10)).await.unwrap();
    assert_eq!(held.len(), 1);
    world.send_text("me", "go on").await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let lines = transcript(world.engine.db(), &World::session_key("me")).await;
    let start = world.engine.list_runs(&World::session_key("me"), 100).await.unwrap().len();
    assert!(start > 3 && announces(&lines).len() + 1 >= start, "the held announce was taken up");
}
