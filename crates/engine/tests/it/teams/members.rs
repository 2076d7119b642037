use std::collections::HashSet;

use polyclaw_domain::agent::{AgentSpec, SandboxMode};
use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::JobLane;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::session::SessionStatus;
use polyclaw_domain::task::{TaskNo, TeamTaskState};
use polyclaw_domain::team::TeamRole;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_engine::decide_approval;
use polyclaw_engine::hub::FrameKind;
use polyclaw_engine::team::{NewMember, TaskOutcome};
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::jobs;
use polyclaw_testkit::world::World;
use serde_json::json;

use super::fixture::{Hall, TEAM, actor, call, code, lead, say, who};

on_both!(
    member_has_its_own_lasting_session,
    members_inherit_sandbox_of_confined_lead,
    first_prompt_of_member_has_task_and_team_state,
    member_uses_its_own_model,
    a_member_can_be_another_agent,
    unknown_team_or_invalid_member_name_is_refused,
    member_spawn_depth_is_counted_and_limited,
    spawn_depth_below_member_is_limited,
    task_end_is_announced_to_lead_once,
    team_shutdown_archives_member_sessions,
    concurrently_joining_members_are_all_added,
    only_lead_adds_members_up_to_limit,
    repeated_spawn_call_creates_one_member,
    member_approval_request_shows_member_name,
);

fn named(name: &str) -> NewMember {
    NewMember { name: name.to_owned(), ..NewMember::default() }
}

pub async fn agent(hall: &Hall, spec: AgentSpec) {
    let now = hall.world.engine.now();
    hall.world
        .engine
        .db()
        .write(move |tx| agents::upsert(tx, &spec, AgentSource::Config, now))
        .await
        .unwrap();
}

async fn member_has_its_own_lasting_session(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.try_join(NewMember { task: Some("begin".into()), ..named("ann") }).await.unwrap();
    let session = hall.world.engine.load_session(&ann.session_key).await.unwrap();
    let own = ann.session_key.as_str().strip_prefix("agent:main:teammate:").unwrap();
    assert_eq!(own, own.to_lowercase(), "a key has one spelling");
    assert_eq!((session.lane, session.spawn_depth), (JobLane::Teammate, 1));
    assert_eq!((session.owner, session.team_role), (Some(World::session_key("me")), Some(TeamRole::Member)));
    assert!(!session.delivers);
    hall.rest().await;
    let key = ann.session_key.clone();
    let ran = hall.world.engine.db().read(move |tx| jobs::list(tx, Some(&key), None, 9)).await.unwrap();
    assert!(!ran.is_empty() && ran.iter().all(|job| job.lane == JobLane::Teammate));
    let session = hall.world.engine.load_session(&ann.session_key).await.unwrap();
    assert_eq!(session.status, SessionStatus::Active, "it stays when its task is done");
    let member = &hall.json("web/config.json")["members"][0];
    assert_eq!(
        (member["name"].as_str(), member["sessionKey"].as_str()),
        (Some("ann"), Some(ann.session_key.as_str()))
    );
    hall.send(&lead(), "ann", "again").await.unwrap();
    assert_eq!(hall.inbox("ann").len(), 1);
    hall.rest().await;
    let again = hall.shown("ann").pop().unwrap();
    assert!(again.contains(">again<") && again.contains("begin"), "and remembers: {again}");
}

async fn members_inherit_sandbox_of_confined_lead(hall: Hall) {
    let mut walled = AgentSpec::with_id(AgentId::main());
    walled.sandbox.mode = SandboxMode::Strict;
    walled.subagents.allow_agents = vec!["*".into()];
    agent(&hall, walled).await;
    for (name, mode) in [("open", SandboxMode::Off), ("half", SandboxMode::Workspace)] {
        let mut freer = AgentSpec::with_id(AgentId::parse(name).unwrap());
        freer.sandbox.mode = mode;
        agent(&hall, freer).await;
    }
    let hall = hall.with_team().await;
    for name in ["open", "half"] {
        let refused = hall.try_join(NewMember { agent: AgentId::parse(name).ok(), ..named("ann") }).await;
        assert_eq!(code(&refused), "spawn_denied", "{name}");
    }
    hall.script("bob", vec![call("look", json!({})), say("seen"), call("look", json!({})), say("seen")]);
    let bob = hall.try_join(NewMember { task: Some("look".into()), ..named("bob") }).await;
    let bob = bob.expect("one under the same walls");
    let inherited = hall
        .world
        .engine
        .load_session(&bob.session_key)
        .await
        .unwrap()
        .inherited
        .expect("what its lead lends it");
    assert_eq!(inherited.sandbox, SandboxMode::Strict);
    hall.rest().await;
    let inherited_mode = || hall.world.ground.tools.sandbox_mode(&bob.session_key);
    assert_eq!(inherited_mode(), Some(SandboxMode::Strict), "and its tools run there");
    let mut freer = AgentSpec::with_id(AgentId::main());
    freer.sandbox.mode = SandboxMode::Off;
    agent(&hall, freer).await;
    hall.send(&lead(), "bob", "look again").await.unwrap();
    hall.rest().await;
    assert_eq!(hall.times("bob", "look of "), 3, "it looked twice");
    assert_eq!(inherited_mode(), Some(SandboxMode::Strict), "it stays so, whatever its agent is changed to");
}

async fn first_prompt_of_member_has_task_and_team_state(hall: Hall) {
    let hall = hall.with_team().await;
    hall.task("draw the page", &[]).await;
    hall.try_join(NewMember { task: Some("Start with task 1.".into()), ..named("ann") }).await.unwrap();
    hall.rest().await;
    let first = hall.shown("ann").remove(0);
    assert!(first.contains("Start with task 1.") && first.contains("=== TEAM STATE ==="), "{first}");
    assert!(first.contains("Team: web (active)") && first.contains("#1 [pending] draw the page"));
}

async fn member_uses_its_own_model(hall: Hall) {
    let hall = hall.with_team().await;
    let model = ModelRef::parse("scripted/other").unwrap();
    let new = NewMember { model: Some(model.clone()), task: Some("x".into()), ..named("ann") };
    let ann = hall.try_join(new).await.unwrap();
    assert_eq!(hall.world.engine.load_session(&ann.session_key).await.unwrap().model_override, Some(model));
    hall.rest().await;
    let key = ann.session_key.clone();
    let ran = hall.world.engine.db().read(move |tx| jobs::list(tx, Some(&key), None, 9)).await.unwrap();
    assert_eq!(ran[0].model.as_deref(), Some("scripted/other"));
}

async fn a_member_can_be_another_agent(hall: Hall) {
    let mut main = AgentSpec::with_id(AgentId::main());
    main.subagents.allow_agents = vec!["writer".into()];
    agent(&hall, main).await;
    let mut writer = AgentSpec::with_id(AgentId::parse("writer").unwrap());
    writer.defaults.model = ModelRef::parse("scripted/prose").ok();
    writer.defaults.system_prompt = Some("You write prose.".into());
    writer.policy.tools.deny = vec!["pay".into()];
    agent(&hall, writer).await;
    agent(&hall, AgentSpec::with_id(AgentId::parse("hidden").unwrap())).await;
    let hall = hall.with_team().await;
    let of = |name: &str, agent: &str| NewMember { agent: AgentId::parse(agent).ok(), ..named(name) };
    let ann = hall.try_join(NewMember { task: Some("x".into()), ..of("ann", "writer") }).await.unwrap();
    assert!(ann.session_key.as_str().starts_with("agent:writer:teammate:"));
    hall.rest().await;
    let key = ann.session_key.clone();
    let ran = hall.world.engine.db().read(move |tx| jobs::list(tx, Some(&key), None, 9)).await.unwrap();
    assert_eq!(ran[0].model.as_deref(), Some("scripted/prose"));
    let prompts = hall.model.prompts();
    let prompt = prompts.iter().find(|prompt| who(prompt) == "ann").unwrap();
    assert!(prompt.system.contains("You write prose."), "{}", prompt.system);
    let has = |name: &str| prompt.tools.iter().any(|tool| tool.name == name);
    assert!(has("look") && has("TaskClaim") && !has("pay"), "its own agent's tools");
    assert_eq!(code(&hall.try_join(of("bob", "hidden")).await), "spawn_denied");
    assert_eq!(code(&hall.try_join(of("bob", "nobody")).await), "unknown_agent");
}

async fn unknown_team_or_invalid_member_name_is_refused(hall: Hall) {
    assert_eq!(code(&hall.try_join(named("ann")).await), "unknown_team");
    let hall = hall.with_team().await;
    assert_eq!(code(&hall.try_join(named("Ann!")).await), "invalid_name");
    assert_eq!(code(&hall.try_join(named("lead")).await), "invalid_name");
}

async fn member_spawn_depth_is_counted_and_limited(hall: Hall) {
    let hall = hall.with_team().await;
    hall.script("ann", vec![call("sessions_spawn", json!({ "task": "dig deeper" })), say("asked")]);
    let ann = hall.try_join(NewMember { task: Some("go".into()), ..named("ann") }).await.unwrap();
    hall.rest().await;
    let runs = hall.world.engine.list_runs(&ann.session_key, 9).await.unwrap();
    assert_eq!(runs.len(), 1, "a member may begin sub-agents of its own");
    let below = hall.world.engine.load_session(&runs[0].child).await.unwrap();
    assert_eq!(below.spawn_depth, 2);
    let mut flat = AgentSpec::with_id(AgentId::main());
    flat.subagents.max_spawn_depth = 0;
    agent(&hall, flat).await;
    assert_eq!(code(&hall.try_join(named("bob")).await), "spawn_depth_exceeded");
}

/// A member is at depth one: with a limit of one it begins nobody, with two its sub-agents begin nobody.
async fn spawn_depth_below_member_is_limited(hall: Hall) {
    let hall = hall.with_team().await;
    for (most, name) in [(1, "ann"), (2, "bob"), (3, "cat")] {
        let mut main = AgentSpec::with_id(AgentId::main());
        main.subagents.max_spawn_depth = most;
        agent(&hall, main).await;
        hall.script(name, vec![call("sessions_spawn", json!({ "task": "dig deeper" })), say("asked")]);
        let member = hall.try_join(NewMember { task: Some("go".into()), ..named(name) }).await.unwrap();
        hall.rest().await;
        let engine = &hall.world.engine;
        let runs = engine.list_runs(&member.session_key, 9).await.unwrap();
        assert_eq!(runs.len(), usize::from(most > 1), "{name}");
        for run in runs {
            let tools = engine.explain_tools(None, Some(&run.child)).await.unwrap();
            let spawns = tools.iter().any(|one| one.tool.name == "sessions_spawn" && one.allowed);
            assert_eq!(spawns, most > 2, "what {name} began");
        }
    }
}

async fn task_end_is_announced_to_lead_once(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    hall.task("draw", &[]).await;
    let by = actor(&ann.session_key);
    let engine = &hall.world.engine;
    engine.claim_task(&by, TEAM, Some(TaskNo(1))).await.unwrap();
    let finish = TaskOutcome {
        state: TeamTaskState::Completed,
        summary: Some("drawn in blue".into()),
        artifacts: vec![],
    };
    engine.finish_task(&by, TEAM, TaskNo(1), finish).await.unwrap();
    hall.rest().await;
    let lines = hall.world.transcript("me").await;
    let messages: Vec<_> =
        lines.iter().filter(|line| line.text == "[@agent:ann#main] completed #1 draw").collect();
    assert_eq!(messages.len(), 1);
    let meta = messages[0].meta.as_ref().unwrap();
    assert_eq!(
        (meta["kind"].as_str(), meta["result"]["status"].as_str()),
        (Some("subagent_announce"), Some("ok"))
    );
    assert!(!messages[0].deliver && messages[0].channel == "internal");
    let shown = "Status: ok\nResult: drawn in blue";
    assert!(hall.shown("lead").iter().all(|prompt| prompt.matches(shown).count() <= 1));
    assert!(hall.times("lead", shown) > 0);
    assert!(lines.iter().all(|line| !line.text.contains("drawn in blue")));
}

async fn team_shutdown_archives_member_sessions(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    hall.task("left", &[]).await;
    hall.world.engine.claim_task(&actor(&ann.session_key), TEAM, None).await.unwrap();
    hall.world.engine.shut_down_team(&lead(), TEAM, "", true).await.unwrap();
    hall.rest().await;
    assert_eq!(
        hall.world.engine.load_session(&ann.session_key).await.unwrap().status,
        SessionStatus::Archived
    );
    assert_eq!(code(&hall.send(&actor(&ann.session_key), "lead", "x").await), "unknown_team");
}

async fn concurrently_joining_members_are_all_added(hall: Hall) {
    let hall = hall.with_team().await;
    let names: Vec<String> = (0..8).map(|n| format!("m{n}")).collect();
    let engine = hall.world.engine.clone();
    // Each on a thread of its own.
    let join = |name: &String| {
        let (engine, name) = (engine.clone(), name.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(engine.spawn_teammate(&lead(), TEAM, named(&name))).unwrap().session_key
        })
    };
    let joins: Vec<_> = names.iter().map(join).collect();
    let joined = tokio::task::spawn_blocking(|| {
        joins.into_iter().map(|one| one.join().unwrap()).collect::<HashSet<_>>()
    });
    assert_eq!(joined.await.unwrap().len(), 8, "each has a session of its own");
    let view = hall.world.engine.team_snapshot(&lead(), TEAM).await.unwrap();
    let mut found: Vec<String> = view.members.iter().map(|one| one.member.name.clone()).collect();
    found.sort_unstable();
    assert_eq!(found, names);
    assert_eq!(hall.json("web/config.json")["members"].as_array().unwrap().len(), 8);
}

async fn only_lead_adds_members_up_to_limit(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    let by = actor(&ann.session_key);
    assert_eq!(code(&hall.world.engine.spawn_teammate(&by, TEAM, named("bob")).await), "not_lead");
    assert_eq!(code(&hall.world.engine.shut_down_team(&by, TEAM, "", true).await), "not_lead");
    assert_eq!(code(&hall.try_join(named("ann")).await), "member_exists");
    for n in 1..10 {
        hall.join(&format!("m{n}")).await;
    }
    assert_eq!(code(&hall.try_join(named("one-more")).await), "too_many_members");
}

async fn repeated_spawn_call_creates_one_member(hall: Hall) {
    let hall = hall.with_team().await;
    let by = lead();
    let engine = &hall.world.engine;
    let first = engine.spawn_teammate(&by, TEAM, named("ann")).await.unwrap();
    let again = engine.spawn_teammate(&by, TEAM, named("ann")).await.unwrap();
    assert_eq!(first.session_key, again.session_key);
}

async fn member_approval_request_shows_member_name(hall: Hall) {
    let tools = &hall.world.ground.tools;
    tools.add_tool("danger", ToolEffect::Effect, ToolConsent::AskPerson, |_| {
        Box::pin(async { ToolOutcome::ok("it ran") })
    });
    let hall = hall.with_team().await;
    // Who writes to the lead is who the team works for.
    hall.world.send_and_wait("go on").await;
    let mut watch = hall.world.engine.hub.subscribe(&World::session_key("me"));
    hall.script("ann", vec![call("danger", json!({})), say("done")]);
    hall.try_join(NewMember { task: Some("begin".into()), ..named("ann") }).await.unwrap();
    let id = crate::approvals::question(&hall.world).await;
    let asked = hall.world.engine.find_approval(&id).await.unwrap().unwrap();
    assert_eq!(asked.requested_by, "ann");
    let shown = loop {
        if let FrameKind::ApprovalAsked { requested_by: asked_by, .. } = &watch.recv().await.unwrap().kind {
            break asked_by.clone();
        }
    };
    assert_eq!(shown, "ann", "in the conversation of the lead, too");
    decide_approval(&hall.world.engine, &id, crate::approvals::by_owner(ApprovalDecision::Approve))
        .await
        .unwrap();
    hall.rest().await;
}
