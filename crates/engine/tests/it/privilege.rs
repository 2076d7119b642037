//! Least privilege: what a session may use is what the turn that began it could AND its own agent may, however deep.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polyclaw_domain::agent::{AgentSpec, DelegationPolicy, SubagentPolicy};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::provider::Prompt;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_engine::team::{NewMember, NewTeam, TeamActor};
use polyclaw_store::Db;
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider};
use serde_json::json;

use crate::families::{results, said, task};

const AGENTS: [&str; 4] = ["main", "one", "two", "three"];
const TOOLS: [&str; 5] = ["t0", "t1", "t2", "t3", "free"];

/// Which tool ran how deep.
type Ran = Arc<Mutex<BTreeSet<(usize, String)>>>;

/// The agent of each depth is denied the tool of that depth; nobody is denied `free`.
fn spec(depth: usize, denied: &[&str]) -> AgentSpec {
    let mut spec = AgentSpec::with_id(AgentId::parse(AGENTS[depth]).unwrap());
    spec.policy.tools.deny = denied.iter().map(|tool| (*tool).to_owned()).collect();
    spec.subagents =
        SubagentPolicy { allow_agents: vec!["*".into()], max_spawn_depth: 3, ..SubagentPolicy::default() };
    spec.delegation =
        Some(DelegationPolicy { allow_agents: vec!["*".into()], max_concurrent: 2, max_depth: 1 });
    spec
}

async fn store(ground: &DurableWorld, spec: AgentSpec) {
    let write = move |tx: &mut polyclaw_store::Tx<'_>| {
        agents::upsert(tx, &spec, AgentSource::Config, polyclaw_domain::time::Millis(1))
    };
    ground.db.write(write).await.unwrap();
}

/// Everybody tries every tool, by name and whether it is shown or not; then `next` says what else it does.
fn probing(next: fn(usize) -> ModelScript) -> impl Fn(&Prompt) -> ModelScript + Send + Sync + 'static {
    move |prompt| {
        let text = said(prompt);
        let depth = text.split("probe at depth ").nth(1).and_then(|rest| rest.chars().next()?.to_digit(10));
        let depth = depth.unwrap_or(0) as usize;
        match results(prompt) {
            0 => TOOLS.map(|tool| ScriptStep::Call(tool.into(), json!({ "depth": depth }))).into(),
            5 => next(depth),
            _ => vec![ScriptStep::Say("tried".into())],
        }
    }
}

async fn ground(model: Arc<ScriptedProvider>) -> (DurableWorld, Ran) {
    let ground = DurableWorld::from_db(Db::in_memory().unwrap(), model).await;
    let ran = Ran::default();
    for tool in TOOLS {
        let ran = Arc::clone(&ran);
        ground.tools.add_tool(tool, ToolEffect::Pure, ToolConsent::NotNeeded, move |call| {
            let depth = call.arguments["depth"].as_u64().unwrap_or_default();
            ran.lock().unwrap().insert((usize::try_from(depth).unwrap(), call.name.clone()));
            Box::pin(std::future::ready(ToolOutcome::ok("ran")))
        });
    }
    for (depth, denied) in TOOLS.iter().enumerate().take(AGENTS.len()) {
        store(&ground, spec(depth, &[denied])).await;
    }
    (ground, ran)
}

async fn usable(world: &World, key: &SessionKey) -> Vec<String> {
    let all = world.engine.explain_tools(None, Some(key)).await.unwrap();
    let probed = all.into_iter().filter(|one| TOOLS.contains(&one.tool.name.as_str()) && one.allowed);
    probed.map(|one| one.tool.name.clone()).collect()
}

/// The session at each depth, the first of them the person's own.
async fn chain(world: &World) -> Vec<SessionKey> {
    let mut keys = vec![World::session_key("me")];
    while let Some(run) = world.engine.list_runs(keys.last().unwrap(), 1).await.unwrap().pop() {
        keys.push(run.child);
    }
    keys
}

#[tokio::test(start_paused = true)]
async fn subagent_has_no_tool_that_an_ancestor_lacks() {
    let model = ScriptedProvider::new(probing(|depth| match AGENTS.get(depth + 1) {
        Some(agent) => {
            let task = format!("probe at depth {}", depth + 1);
            vec![ScriptStep::Call("sessions_spawn".into(), json!({ "agent_id": agent, "task": task }))]
        }
        None => vec![ScriptStep::Say("deep enough".into())],
    }));
    let (ground, ran) = ground(Arc::clone(&model)).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "probe at depth 0").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    let expected =
        |depth: usize| TOOLS.iter().skip(depth + 1).map(|tool| (*tool).to_owned()).collect::<Vec<_>>();
    let all: BTreeSet<(usize, String)> =
        (0..4).flat_map(|depth| expected(depth).into_iter().map(move |tool| (depth, tool))).collect();
    assert_eq!(*ran.lock().unwrap(), all, "what ran");
    for prompt in model.prompts().iter().filter(|prompt| task(prompt).contains("depth 3")) {
        let shown: Vec<_> = prompt.tools.iter().filter(|tool| TOOLS.contains(&tool.name.as_str())).collect();
        assert!(shown.len() == 1 && shown[0].name == "free", "what is shown is what runs");
    }
    // It is stored: another life knows it, and an agent that is given more later gives no more to what was begun before.
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    let keys = chain(&world).await;
    assert_eq!(keys.len(), 4);
    for (depth, key) in keys.iter().enumerate() {
        assert_eq!(usable(&world, key).await, expected(depth), "depth {depth}, after a restart");
    }
    for depth in 0..4 {
        store(&ground, spec(depth, &[])).await;
    }
    assert_eq!(usable(&world, &keys[0]).await, TOOLS);
    assert_eq!(
        usable(&world, &keys[3]).await,
        ["t3", "free"],
        "its own agent may t3 now, those above it lent no more"
    );
}

#[tokio::test(start_paused = true)]
async fn delegate_has_tools_of_its_own_agent() {
    let model = ScriptedProvider::new(probing(|depth| match depth {
        0 => vec![ScriptStep::Call(
            "delegate_to_agent".into(),
            json!({ "agent_id": "one", "task": "probe at depth 1" }),
        )],
        _ => vec![ScriptStep::Say("tried".into())],
    }));
    let (ground, ran) = ground(model).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert_eq!(world.send_and_wait("probe at depth 0").await.text, "tried");
    let ran = ran.lock().unwrap().clone();
    assert!(ran.contains(&(1, "t0".to_owned())) && !ran.contains(&(0, "t0".to_owned())), "{ran:?}");
    assert!(!ran.contains(&(1, "t1".to_owned())), "{ran:?}");
}

/// `main` lends to `one`, and `one` gives work to `two`: what `main` may not use is not to be had that way.
#[tokio::test(start_paused = true)]
async fn delegate_of_subagent_is_limited_to_inherited_tools() {
    let model = ScriptedProvider::new(probing(|depth| match depth {
        0 => vec![ScriptStep::Call(
            "sessions_spawn".into(),
            json!({ "agent_id": "one", "task": "probe at depth 1" }),
        )],
        1 => vec![ScriptStep::Call(
            "delegate_to_agent".into(),
            json!({ "agent_id": "two", "task": "probe at depth 2" }),
        )],
        _ => vec![ScriptStep::Say("tried".into())],
    }));
    let (ground, ran) = ground(model).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "probe at depth 0").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    let ran = ran.lock().unwrap().clone();
    let of_two: Vec<&str> =
        ran.iter().filter(|(depth, _)| *depth == 2).map(|(_, tool)| tool.as_str()).collect();
    assert_eq!(
        of_two,
        ["free", "t1", "t3"],
        "t0 was not lent to the sub-agent, t2 is denied to its own agent"
    );
}

/// Whoever brings a member in, its lead's rules hold for it: a letter of the lead would otherwise reach further than the lead.
#[tokio::test(start_paused = true)]
async fn team_member_has_no_tool_that_lead_lacks() {
    let (ground, ran) =
        ground(ScriptedProvider::new(probing(|_| vec![ScriptStep::Say("tried".into())]))).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("probe at depth 0").await;
    let operator = |call: &str| TeamActor::Operator { call: call.to_owned() };
    let team = NewTeam {
        name: "web".into(),
        description: String::new(),
        agent_type: String::new(),
        lead: World::session_key("me"),
        turn: None,
    };
    world.engine.create_team(&operator("c1"), team).await.unwrap();
    let new = NewMember {
        name: "ann".into(),
        agent: AgentId::parse("one").ok(),
        task: Some("probe at depth 1".into()),
        ..NewMember::default()
    };
    let joined = world.engine.spawn_teammate(&operator("c2"), "web", new).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let of_ann = |ran: &Ran| {
        let ran = ran.lock().unwrap();
        ran.iter().filter(|(depth, _)| *depth == 1).map(|(_, tool)| tool.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of_ann(&ran), ["free", "t2", "t3"]);
    let all = world.engine.explain_tools(None, Some(&joined.session_key)).await.unwrap();
    let claims = all.iter().find(|one| one.tool.name == "TaskClaim").unwrap();
    assert!(claims.allowed, "{:?}", claims.deciding_reason());
}
