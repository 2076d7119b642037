//! Agents with different specs: switching changes model and tools together, listed tools are usable, hidden tools
//! cannot be called, and agents are created or changed only with a person's approval.

use std::sync::Arc;

use polyclaw_domain::agent::{AgentSpec, from_toml};
use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::policy::ToolProfile;
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_engine::{Error, decide_approval};
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider, last_user_text};
use serde_json::{Value, json};

use crate::approvals::{by_owner, question};
use crate::glance;

async fn add(ground: &DurableWorld, spec: Value) -> AgentId {
    let spec: AgentSpec = serde_json::from_value(spec).unwrap();
    let (id, stored) = (spec.agent_id.clone(), spec);
    ground
        .db
        .write(move |tx| agents::upsert(tx, &stored, AgentSource::Config, polyclaw_domain::time::Millis(1)))
        .await
        .unwrap();
    id
}

/// A model that makes the call the message names (`<tool> <arguments>`), then repeats the result.
pub fn caller() -> Arc<ScriptedProvider> {
    ScriptedProvider::new(|prompt| match prompt.messages.last() {
        Some(PromptMessage::ToolResult { content, .. }) => vec![ScriptStep::Say(format!("got {content}"))],
        _ => {
            let (tool, arguments) =
                last_user_text(prompt).split_once(' ').unwrap_or((last_user_text(prompt), "{}"));
            match serde_json::from_str(arguments) {
                Ok(arguments) => vec![ScriptStep::Call(tool.to_owned(), arguments)],
                Err(_) => vec![ScriptStep::Say("no call".into())],
            }
        }
    })
}

fn shown(prompt: &Prompt) -> Vec<&str> {
    prompt.tools.iter().map(|tool| tool.name.as_str()).collect()
}

async fn all_tools(world: &World) -> Vec<String> {
    let all = world.engine.explain_tools(None, None).await.unwrap();
    all.into_iter().map(|one| one.tool.name.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn agent_switch_changes_model_and_tools_at_next_turn() {
    let model = ScriptedProvider::echo();
    let ground = World::with_provider(Arc::clone(&model) as _).await.kill().await;
    add(&ground, json!({
        "agent_id": "ops", "name": "Operations",
        "defaults": { "model": { "provider": "lab", "model": "big" }, "system_prompt": "You are careful." },
        "policy": { "tools": { "allow": ["look", "todo"] } },
    }))
    .await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let key = World::session_key("me");
    assert_eq!(world.send_and_wait("x").await.model.as_deref(), Some("scripted/model"));
    let listed = world.engine.run_command(&key, "/agents").await.unwrap().unwrap();
    assert!(listed.contains("* main") && listed.contains("  ops"), "{listed}");
    for name in ["ops", "Operations"] {
        world.engine.run_command(&key, &format!("/agent {name}")).await.unwrap().unwrap();
        assert_eq!(world.send_and_wait("x").await.model.as_deref(), Some("lab/big"));
        let prompt = model.prompts().pop().unwrap();
        assert_eq!(shown(&prompt), ["look", "todo"]);
        assert!(prompt.system.starts_with("You are careful."));
        world.engine.run_command(&key, "/agent main").await.unwrap().unwrap();
        assert_eq!(world.send_and_wait("x").await.model.as_deref(), Some("scripted/model"));
        assert!(shown(&model.prompts().pop().unwrap()).contains(&"pay"));
    }
    assert!(
        matches!(world.engine.run_command(&key, "/agent oper").await.unwrap(), Err(Error::UnknownAgent(_))),
        "exactly"
    );
    world.engine.run_command(&key, "/model lab/small").await.unwrap().unwrap();
    assert_eq!(world.send_and_wait("x").await.model.as_deref(), Some("lab/small"));
}

/// A message that waits behind a running turn has not started, so a switch applies to it.
#[tokio::test(start_paused = true)]
async fn agent_switch_applies_to_queued_message() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let ground = World::with_provider(crate::worker(1, &gate)).await.kill().await;
    add(&ground, json!({ "agent_id": "ops", "name": "ops", "defaults": { "model": "lab/big" } })).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "work").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let waiting = world.send_text("me", "hello").await.unwrap();
    world.engine.run_command(&World::session_key("me"), "/agent ops").await.unwrap().unwrap();
    gate.add_permits(10);
    assert_eq!(world.wait_answer(&waiting).await.model.as_deref(), Some("lab/big"));
    world.wait_settled().await;
}

#[tokio::test(start_paused = true)]
async fn tool_policy_accepts_every_engine_tool_name() {
    let world = World::new().await;
    let tools = world.engine.explain_tools(None, None).await.unwrap();
    let names = tools.iter().map(|tool| tool.tool.name.clone());
    // The other tools are the test toolbox's own.
    let own = names.filter(|name| !["look", "put", "pay"].contains(&name.as_str()));
    let named = polyclaw_domain::policy::ToolPolicy { allow: own.collect(), ..Default::default() };
    assert!(named.allow.len() > 5, "{named:?}");
    assert_eq!(polyclaw_domain::policy::find_invalid_entries(&named, &[], &[]), []);
}

#[tokio::test(start_paused = true)]
async fn calls_to_hidden_tools_are_refused() {
    let model = caller();
    let ground = World::with_provider(Arc::clone(&model) as _).await.kill().await;
    for name in ["shell", "read_file", "http_fetch", "message"] {
        ground.tools.add_tool(name, ToolEffect::Effect, ToolConsent::NotNeeded, |_| {
            Box::pin(async { ToolOutcome::ok("IT RAN") })
        });
    }
    let mut tried = 0;
    for (n, tools) in [
        json!({ "allow": ["look"] }),
        json!({ "deny": ["*"] }),
        json!({ "deny": ["group:fs", "p*", "shell"] }),
        json!({ "profile": "minimal" }),
    ]
    .into_iter()
    .enumerate()
    {
        let id = add(
            &ground,
            json!({ "agent_id": format!("a{n}"), "name": format!("a{n}"), "policy": { "tools": tools } }),
        )
        .await;
        let world = ground.start_engine(KillPointFaults::no_kill());
        world.send_and_wait("look {}").await;
        world.engine.set_session_agent(&World::session_key("me"), &id).await.unwrap();
        let runs_before = ground.tools.run_counts().len();
        let mut hidden = Vec::new();
        for name in all_tools(&world).await {
            let explained =
                world.engine.explain_tool(&name, Some(&id), Some(&World::session_key("me"))).await.unwrap();
            if explained.allowed {
                continue;
            }
            let text = world.send_and_wait(&format!("{name} {{}}")).await.text;
            let decided = explained.deciding_reason().unwrap();
            assert!(text.starts_with(&format!("got The tool '{name}' is not available here")), "{text}");
            assert!(text.contains(&format!("(rule {})", decided.rule)), "the same rule: {text}");
            assert!(!shown(&model.prompts().pop().unwrap()).contains(&name.as_str()));
            hidden.push(name);
        }
        assert!(hidden.len() >= 5, "{hidden:?}");
        assert_eq!(ground.tools.run_counts().len(), runs_before, "nothing ran");
        tried += hidden.len();
        drop(world.kill().await);
    }
    assert!(tried > 30, "{tried}");
}

#[tokio::test(start_paused = true)]
async fn every_offered_tool_can_be_called() {
    let model = caller();
    let world = World::with_provider(Arc::clone(&model) as _).await;
    world.send_and_wait("look {}").await;
    for name in shown(&model.prompts()[0]) {
        let text = world.send_and_wait(&format!("{name} {{}}")).await.text;
        assert!(!text.contains("not available") && !text.contains("There is no tool"), "{name}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn sender_and_subagent_tool_rules_restrict_calls() {
    let mut ground = World::with_provider(caller()).await.kill().await;
    let deny = |list: &[&str]| serde_json::from_value(json!({ "deny": list })).unwrap();
    ground.settings.tools.senders.insert("chat:test:you".to_owned(), deny(&["pay"]));
    ground.settings.tools.subagents = deny(&["put"]);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let accepted = world.send_text("you", "pay {}").await.unwrap();
    assert!(world.wait_answer(&accepted).await.text.contains("rule sender.deny"));
    assert!(world.send_and_wait("pay {}").await.text.starts_with("got pay"), "others are not meant");
    world.engine.db().write(|tx| tx.execute("UPDATE sessions SET spawn_depth = 1", &[])).await.unwrap();
    assert!(world.send_and_wait("put {}").await.text.contains("rule subagents.deny"));
    assert!(world.send_and_wait("agent_create {}").await.text.contains("rule risk.not_granted"));
}

#[tokio::test(start_paused = true)]
async fn model_lists_agents_and_switches_with_approval() {
    let ground = World::with_provider(caller()).await.kill().await;
    add(
        &ground,
        json!({ "agent_id": "reader", "name": "Careful Reader", "description": "reads",
        "policy": { "tools": { "deny": ["pay"] } } }),
    )
    .await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let listed = world.send_and_wait("agents_list {}").await.text;
    assert!(
        listed.contains("main \"main\" (active in this session)")
            && listed.contains("reader \"Careful Reader\": reads"),
        "{listed}"
    );
    assert!(world.send_and_wait("models_list {}").await.text.contains("No models are known"));
    let home = SessionKey::for_direct(&AgentId::main(), "web", "me");
    let address =
        ChatAddress { channel: "web".into(), account: String::new(), peer: "me".into(), thread: None };
    let at_home = async |text: &str| {
        let asked = IngressMessage::from_person(home.clone(), AgentId::main(), address.clone(), text);
        let accepted = world.engine.accept_message(asked).await.unwrap();
        world.wait_answer(&accepted).await
    };
    assert!(at_home(r#"session_set_model {"model_ref": "nonsense"}"#).await.text.contains("is not a model"));
    at_home(r#"session_set_model {"model_ref": "lab/x"}"#).await;
    assert_eq!(at_home("todo {}").await.model.as_deref(), Some("lab/x"));
    at_home(r#"session_set_model {"model_ref": "default"}"#).await;
    assert_ne!(at_home("todo {}").await.model.as_deref(), Some("lab/x"));
    // The agent has no more rights but its own files and memories, so a person must approve.
    let accepted = world.send_text("me", r#"session_set_agent {"agent": "careful"}"#).await.unwrap();
    let id = question(&world).await;
    let asked = world.engine.find_approval(&id).await.unwrap().unwrap().question;
    assert!(asked.contains("context_policy, workspace"), "{asked}");
    decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Approve)).await.unwrap();
    assert!(
        world
            .wait_answer(&accepted)
            .await
            .text
            .contains("reader answers in this session from the next turn on")
    );
    assert_eq!(
        world.engine.load_session(&World::session_key("me")).await.unwrap().active_agent.as_str(),
        "reader"
    );
}

#[tokio::test(start_paused = true)]
async fn switch_to_agent_with_more_rights_can_be_denied() {
    let ground = World::with_provider(caller()).await.kill().await;
    let weak = add(
        &ground,
        json!({ "agent_id": "weak", "name": "weak", "policy": { "tools": { "deny": ["pay"] } } }),
    )
    .await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("todo {}").await;
    world.engine.set_session_agent(&World::session_key("me"), &weak).await.unwrap();
    let accepted = world.send_text("me", r#"session_set_agent {"agent": "main"}"#).await.unwrap();
    let id = question(&world).await;
    decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Deny)).await.unwrap();
    assert!(world.wait_answer(&accepted).await.text.contains("did not allow"));
    assert_eq!(world.engine.load_session(&World::session_key("me")).await.unwrap().active_agent, weak);
}

pub fn in_a_folder(mut ground: DurableWorld) -> (DurableWorld, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    ground.settings.workspace = folder.path().to_owned();
    (ground, folder)
}

#[tokio::test(start_paused = true)]
async fn approved_agent_create_stores_agent_and_its_file() {
    let (mut ground, folder) = in_a_folder(World::with_provider(caller()).await.kill().await);
    // Even if nothing else requires approval.
    ground.settings.tools.policy.approval = Some(polyclaw_domain::policy::ApprovalMode::Never);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let draft =
        r#"agent_create {"agent_id": "ops", "description": "looks after servers", "profile": "coding"}"#;
    let bad = world
        .send_and_wait(r#"agent_create {"agent_id": "ops", "description": "", "allow_tools": ["shel"]}"#)
        .await
        .text;
    assert!(bad.contains("there is no tool \"shel\"; did you mean \"shell\"?"), "nobody was asked: {bad}");
    for (decision, made) in [(ApprovalDecision::Deny, false), (ApprovalDecision::Approve, true)] {
        let accepted = world.send_text("me", draft).await.unwrap();
        let id = question(&world).await;
        let asked =
            world.engine.db().read(move |tx| polyclaw_store::approvals::get(tx, &id)).await.unwrap().unwrap();
        for text in ["Create a new agent", "looks after servers", "Tools: the profile \"coding\""] {
            assert!(asked.question.contains(text), "{}", asked.question);
        }
        decide_approval(&world.engine, &asked.id, by_owner(decision)).await.unwrap();
        world.wait_answer(&accepted).await;
        assert_eq!(world.engine.load_agent(&AgentId::parse("ops").unwrap()).await.is_ok(), made);
    }
    let stored = world.engine.load_agent(&AgentId::parse("ops").unwrap()).await.unwrap();
    assert_eq!(
        (stored.source, stored.spec.policy.tools.profile),
        (AgentSource::Api, Some(ToolProfile::Coding))
    );
    let file = folder.path().join("agents/ops/agent.toml");
    assert_eq!(from_toml(&std::fs::read_to_string(&file).unwrap()).unwrap(), stored.spec);
    let again = world.send_and_wait(draft).await.text;
    assert!(again.contains("agent_exists"), "{again}");
    world.engine.delete_agent(&stored.spec.agent_id).await.unwrap();
    assert!(!file.exists() && !file.parent().unwrap().exists());
    assert!(!folder.path().join("agents/main").exists(), "agents of the config are in the config");
}

#[tokio::test(start_paused = true)]
async fn approved_agent_update_is_refused_if_agent_changed_since() {
    let (ground, _folder) = in_a_folder(World::with_provider(caller()).await.kill().await);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let spec: AgentSpec = serde_json::from_value(json!({ "agent_id": "ops", "name": "ops",
        "policy": { "tools": { "deny": ["shell"] } } }))
    .unwrap();
    world.engine.create_agent(spec.clone()).await.unwrap();
    let change = r#"agent_update {"agent_id": "ops", "patch": {"policy": {"tools": {"deny": null}}}}"#;
    let accepted = world.send_text("me", change).await.unwrap();
    let id = question(&world).await;
    // Meanwhile the owner changes it.
    let mut other = spec;
    other.policy.tools.allow = vec!["*".into(), "shell".into()];
    world.engine.update_agent(other.clone()).await.unwrap();
    let asked = world
        .engine
        .db()
        .read({
            let id = id.clone();
            move |tx| polyclaw_store::approvals::get(tx, &id)
        })
        .await
        .unwrap()
        .unwrap();
    assert!(asked.question.contains("It may do MORE than now: policy.tools."), "{}", asked.question);
    decide_approval(&world.engine, &id, by_owner(ApprovalDecision::Approve)).await.unwrap();
    assert!(world.wait_answer(&accepted).await.text.contains("changed after the approval"));
    assert_eq!(world.engine.load_agent(&other.agent_id).await.unwrap().spec, other);
    let main = world.send_and_wait(r#"agent_update {"agent_id": "main", "patch": {}}"#).await.text;
    assert!(main.contains("agent_in_config"), "{main}");
}

#[tokio::test(start_paused = true)]
async fn todo_list_survives_restart_and_ends_with_conversation() {
    let world = World::with_provider(caller()).await;
    let text = world
        .send_and_wait(r#"todo {"items": [{"text": "plan", "state": "done"}, {"text": "build"}]}"#)
        .await
        .text;
    assert_eq!(text, "got 1. [x] plan\n2. [ ] build\n1 of 2 done");
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    assert_eq!(world.send_and_wait("todo {}").await.text, text);
    assert!(world.send_and_wait(r#"todo {"items": [{"text": ""}]}"#).await.text.contains("item 1 is empty"));
    world.engine.renew_session(&World::session_key("me")).await.unwrap();
    assert_eq!(world.send_and_wait("todo {}").await.text, "got The todo list is empty.");
    assert_eq!(glance(&world.transcript("me").await).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn agent_named_in_config_cannot_be_deleted() {
    let (mut ground, _folder) = in_a_folder(World::with_provider(caller()).await.kill().await);
    let ops = AgentId::parse("ops").unwrap();
    ground.settings.agents_in_rules = vec![(ops.clone(), "bindings[0].agent_id".to_owned())];
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.engine.create_agent(AgentSpec::with_id(ops.clone())).await.unwrap();
    let refused = world.engine.delete_agent(&ops).await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.to_string().as_str()),
        ("agent_in_use", "the config names the agent 'ops' in bindings[0].agent_id")
    );
    assert!(world.engine.load_agent(&ops).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn agent_name_cannot_duplicate_other_name_or_id() {
    let (ground, _folder) = in_a_folder(World::with_provider(caller()).await.kill().await);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let named = |id: &str, name: &str| AgentSpec {
        name: name.into(),
        ..AgentSpec::with_id(AgentId::parse(id).unwrap())
    };
    world.engine.create_agent(named("ops", "Operations")).await.unwrap();
    for (id, name) in [("spy", "ops"), ("spy", " Ops"), ("spy", "OPERATIONS"), ("operations", "Other")] {
        let refused = world.engine.create_agent(named(id, name)).await.map(|_| ());
        assert_eq!(refused.unwrap_err().code(), "agent_exists", "{id}: {name}");
    }
    world.engine.create_agent(named("spy", "Olga")).await.unwrap();
    assert_eq!(world.engine.update_agent(named("spy", "ops")).await.unwrap_err().code(), "agent_exists");
}

#[tokio::test(start_paused = true)]
async fn agent_that_allows_deleted_agent_can_be_updated() {
    let (ground, _folder) = in_a_folder(World::with_provider(caller()).await.kill().await);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let named = |id: &str| AgentSpec::with_id(AgentId::parse(id).unwrap());
    world.engine.create_agent(named("helper")).await.unwrap();
    let mut boss = named("boss");
    boss.subagents.allow_agents = vec!["helper".into()];
    world.engine.create_agent(boss.clone()).await.unwrap();
    world.engine.delete_agent(&AgentId::parse("helper").unwrap()).await.unwrap();
    boss.description = "leads".into();
    world.engine.update_agent(boss.clone()).await.unwrap();
    boss.subagents.allow_agents.push("nobody".into());
    assert!(world.engine.update_agent(boss).await.unwrap_err().to_string().contains("\"nobody\""));
}
