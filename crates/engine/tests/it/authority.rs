//! Authority: only owners may allow changes that extend an agent's rights, whoever asks and in whatever way.

use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::{ChatAddress, InboundMessage, IngestOutcome};
use polyclaw_domain::command::CallerRole;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::message::MessageOrigin;
use polyclaw_domain::provider::PromptMessage;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider, inbound_dm, last_user_text};
use serde_json::json;

use crate::agents::caller;
use crate::approvals::question;

const CONFIG: &str = r#"
    [agents]
    default = "main"
    [[agents.list]]
    id = "main"
    [[agents.list]]
    id = "weak"
    tools = { allow = ["read_file"] }
    [[agents.list]]
    id = "weaker"
    tools = { allow = ["read_file"], deny = ["todo"] }
    [[agents.list]]
    id = "ops"
    tools = { allow = ["shell"] }
    sandbox = { mode = "off" }
    [[agents.list]]
    id = "given"
    tools = { allow = ["list_dir"] }
    [[bindings]]
    agent_id = "weak"
    match = { channel = "telegram", peer = { kind = "direct", id = "bound" } }
    [session]
    dm_scope = "per-channel-peer"
    [channels.telegram.default]
    bot_token = "123:token"
    dm_policy = "open"
    owners = ["boss"]
    agents = ["given"]
"#;

const CREATE: &str = r#"agent_create {"agent_id": "pwn", "description": "x", "allow_tools": ["todo"]}"#;

async fn ground() -> DurableWorld {
    let mut ground = World::with_provider(caller()).await.kill().await;
    ground.configure(CONFIG).await;
    // Tests write no files: this workspace does not exist.
    ground.settings.workspace = "/dev/null/workspace".into();
    for tool in ["write_file", "memory_store"] {
        ground.tools.add_tool(tool, ToolEffect::Idempotent, ToolConsent::NotNeeded, |_| {
            Box::pin(async { ToolOutcome::ok("ran") })
        });
    }
    ground
}

async fn world() -> World {
    ground().await.start_engine(KillPointFaults::no_kill())
}

/// The next reply after a message.
async fn told(world: &World, n: usize, message: InboundMessage) -> String {
    let peer = message.address.peer.clone();
    let before = world.ground.fake_channel.texts_at(&peer, None).len();
    let message = InboundMessage { platform_id: format!("{peer}-{n}"), ..message };
    assert_eq!(world.ground.fake_channel.deliver_inbound(message).await, IngestOutcome::Done);
    read_next(world, &peer, before).await
}

async fn read_next(world: &World, peer: &str, before: usize) -> String {
    let wait = async {
        while world.ground.fake_channel.texts_at(peer, None).len() == before {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), wait).await.expect("something is read there");
    world.ground.fake_channel.texts_at(peer, None)[before].clone()
}

fn agent(id: &str) -> AgentId {
    AgentId::parse(id).unwrap()
}

#[tokio::test(start_paused = true)]
async fn only_owner_approves_agent_requested_by_non_owner() {
    let world = world().await;
    told(&world, 0, inbound_dm("boss", "todo {}")).await;
    let waits = told(&world, 1, inbound_dm("eve", CREATE)).await;
    assert!(waits.contains("needs an owner's approval"), "{waits}");
    let asked = read_next(&world, "boss", 1).await;
    let id = question(&world).await;
    assert!(
        asked.contains("Requested by \"telegram:default:eve\"") && asked.contains(&format!("/approve {id}")),
        "{asked}"
    );
    let own = told(&world, 2, inbound_dm("eve", &format!("/approve {id}"))).await;
    assert!(own.contains("only an owner of this instance can answer"), "{own}");
    assert!(world.engine.load_agent(&agent("pwn")).await.is_err());
    let approved = told(&world, 3, inbound_dm("boss", &format!("/approve {id}"))).await;
    assert_eq!(approved, "Approved. It runs now.");
    world.wait_settled().await;
    assert!(world.engine.load_agent(&agent("pwn")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn owner_approves_own_agent_request_in_same_chat() {
    let world = world().await;
    let asked = told(&world, 1, inbound_dm("boss", CREATE)).await;
    assert!(asked.contains("asks for your approval"), "{asked}");
    let id = question(&world).await;
    assert_eq!(
        told(&world, 2, inbound_dm("boss", &format!("/approve {id}"))).await,
        "Approved. It runs now."
    );
    world.wait_settled().await;
    assert!(world.engine.load_agent(&agent("pwn")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn approval_request_shows_high_risk_tools_despite_padding() {
    let world = world().await;
    let mut tools = vec!["read_file"; 90];
    tools.push("shell");
    let (text, prompt) = ("d".repeat(400), "p".repeat(400));
    let draft =
        json!({ "agent_id": "pwn", "description": text, "system_prompt": prompt, "allow_tools": tools });
    let asked = told(&world, 1, inbound_dm("boss", &format!("agent_create {draft}"))).await;
    assert!(asked.contains("\nHigh-risk tools: shell\n"), "{asked}");
    assert!(asked.contains("\"shell\", \"read_file\"\n"), "{asked}");
    let id = question(&world).await;
    told(&world, 2, inbound_dm("boss", &format!("/approve {id}"))).await;
    world.wait_settled().await;
    let patch = json!({ "description": "e".repeat(400), "defaults": { "system_prompt": "q".repeat(400) },
        "policy": { "tools": { "allow": tools, "approval": "never" } }, "sandbox": { "mode": "off" } });
    let update = json!({ "agent_id": "pwn", "patch": patch });
    let asked = told(&world, 3, inbound_dm("boss", &format!("agent_update {update}"))).await;
    for line in ["High-risk tools: shell", "Programs: run WITHOUT a sandbox", "Default approval: never"] {
        assert!(asked.lines().any(|own| own == line), "{line}\n{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn bound_non_owner_cannot_switch_to_unbound_agents() {
    let world = world().await;
    for (n, line) in
        ["/agent ops", "/agent main", "/ops todo {}", "/ops /status", "/main todo {}"].into_iter().enumerate()
    {
        let text = told(&world, n, inbound_dm("bound", line)).await;
        assert!(text.contains("is not available to you here"), "{line}: {text}");
    }
    assert!(
        told(&world, 10, inbound_dm("bound", "/agent weaker")).await.contains("is not available to you here"),
        "it may do no more, and has files and memories of its own"
    );
    assert!(
        told(&world, 11, inbound_dm("bound", "/agent given")).await.starts_with("given answers"),
        "the account names it"
    );
    assert!(
        told(&world, 12, inbound_dm("bound", "/agent weak")).await.starts_with("weak answers"),
        "it is bound to it"
    );
    assert!(
        told(&world, 13, inbound_dm("boss", "/agent ops")).await.starts_with("ops answers"),
        "owners go anywhere"
    );
}

fn hooked(text: &str) -> IngressMessage {
    let weak = agent("weak");
    let address =
        ChatAddress { channel: "webhook".into(), account: "ci".into(), peer: "p".into(), thread: None };
    let session = SessionKey::from_parts(&weak, &["webhook", "ci", "dm", "p"]);
    IngressMessage {
        origin: MessageOrigin::Hook,
        ..IngressMessage::from_person(session, weak, address, text)
    }
}

#[tokio::test(start_paused = true)]
async fn webhook_cannot_switch_to_agent_with_more_rights() {
    let world = world().await;
    let first = world.engine.accept_message(hooked("read_file {}")).await.unwrap();
    world.wait_answer(&first).await;
    let text =
        world.engine.run_inbound_command(&hooked("/agent ops"), CallerRole::Alone).await.unwrap().unwrap();
    assert!(text.contains("is not available to you here"), "{text}");
    let named = world.engine.resolve_addressee(hooked("/ops shell {}")).await;
    assert_eq!(named.unwrap_err().code(), "agent_not_allowed");
    let fine = world.engine.resolve_addressee(hooked("/weaker read_file {}")).await.unwrap();
    assert_eq!(fine.by, Some(agent("weaker")), "no binding says who answers there");
}

fn operated(text: &str) -> IngressMessage {
    let mut inbound = World::inbound("desk", text);
    inbound.address.channel = "web".into();
    inbound.meta = None;
    Authority::Operator.write_to_meta(&mut inbound.meta);
    inbound
}

#[tokio::test(start_paused = true)]
async fn operator_turn_needs_approval_for_admin_operations() {
    for call in [
        r#"write_file {"path": "AGENTS.md", "content": "obey"}"#,
        r#"write_file {"path": "skills/x/SKILL.md", "content": "obey"}"#,
        r#"write_file {"path": "skills/x\\..\\../SKILL.md", "content": "obey"}"#,
        r#"memory_store {"content": "x"}"#,
        r#"cron_add {"id": "j", "schedule": "every 10m", "message": "x"}"#,
    ] {
        let world = world().await;
        let accepted = world.engine.accept_message(operated(call)).await.unwrap();
        let id = question(&world).await;
        // The same after a crash, because the authority is stored with the message.
        let world = world.kill().await.start_engine(KillPointFaults::no_kill());
        assert_eq!(question(&world).await, id, "{call}");
        let verdict = crate::approvals::by_owner(polyclaw_domain::approval::ApprovalDecision::Deny);
        polyclaw_engine::decide_approval(&world.engine, &id, verdict).await.unwrap();
        assert!(world.wait_answer(&accepted).await.text.contains("did not allow"), "{call}");
    }
    let world = world().await;
    for call in [r#"write_file {"path": "notes.md", "content": "x"}"#, "look {}"] {
        let accepted = world.engine.accept_message(operated(call)).await.unwrap();
        assert!(world.wait_answer(&accepted).await.text.starts_with("got "), "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn write_through_link_to_briefing_file_needs_approval() {
    let world = world().await;
    world.ground.tools.link("CLAUDE.md", "AGENTS.md");
    told(&world, 0, inbound_dm("boss", "todo {}")).await;
    let write = r#"write_file {"path": "CLAUDE.md", "content": "obey"}"#;
    let waits = told(&world, 1, inbound_dm("eve", write)).await;
    assert!(waits.contains("needs an owner's approval"), "{waits}");
    let asked = read_next(&world, "boss", 1).await;
    assert!(asked.contains("This changes \"AGENTS.md\", a file that tells"), "{asked}");
    world.ground.tools.link("notes.md", "notes/today.md");
    let other = r#"write_file {"path": "notes.md", "content": "x"}"#;
    assert!(told(&world, 2, inbound_dm("ada", other)).await.starts_with("got "));
}

#[tokio::test(start_paused = true)]
async fn write_to_configured_skill_folder_needs_approval() {
    let mut ground = ground().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("tricks/juggle")).unwrap();
    ground.settings.workspace = folder.path().to_owned();
    ground.settings.skill_folders = vec![folder.path().join("tricks")];
    let world = ground.start_engine(KillPointFaults::no_kill());
    told(&world, 0, inbound_dm("boss", "todo {}")).await;
    for (n, path) in ["tricks/juggle/helper.md", "elsewhere/SKILL.md"].into_iter().enumerate() {
        let write = format!(r#"write_file {{"path": "{path}", "content": "obey"}}"#);
        world.ground.tools.link(path, path);
        let waits = told(&world, n + 1, inbound_dm(&format!("eve{n}"), &write)).await;
        assert!(waits.contains("needs an owner's approval"), "{path}: {waits}");
    }
    world.ground.tools.link("trickster.md", "trickster.md");
    let other = r#"write_file {"path": "trickster.md", "content": "x"}"#;
    assert!(told(&world, 9, inbound_dm("ada", other)).await.starts_with("got "));
}

#[tokio::test(start_paused = true)]
async fn admin_operation_is_refused_where_nobody_can_approve() {
    let world = world().await;
    let by_program = |text: &str| {
        let mut inbound = operated(text);
        inbound.address.channel = "api".into();
        inbound
    };
    for (call, why) in [
        (r#"write_file {"path": "SOUL.md", "content": "obey"}"#, "Only an owner"),
        (r#"memory_store {"content": "x"}"#, "approval.nobody_to_ask"),
    ] {
        let accepted = world.engine.accept_message(by_program(call)).await.unwrap();
        let text = world.wait_answer(&accepted).await.text;
        assert!(text.contains(why), "{call}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn subagent_does_not_raise_authority() {
    let model = ScriptedProvider::new(|prompt| match (prompt.messages.last(), last_user_text(prompt)) {
        (Some(PromptMessage::ToolResult { .. }), _) => vec![ScriptStep::Say("done".into())],
        (_, text) if text.starts_with("sessions_spawn") => {
            vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "please write" }))]
        }
        (_, text) if text.contains("please write") => {
            vec![ScriptStep::Call("write_file".into(), json!({ "path": "AGENTS.md", "content": "obey" }))]
        }
        _ => vec![ScriptStep::Say("fine".into())],
    });
    let mut ground = World::with_provider(model).await.kill().await;
    ground.configure(CONFIG).await;
    ground.tools.add_tool("write_file", ToolEffect::Idempotent, ToolConsent::NotNeeded, |_| {
        Box::pin(async { ToolOutcome::ok("ran") })
    });
    let world = ground.start_engine(KillPointFaults::no_kill());
    let spawn = "sessions_spawn";
    let accepted = world.engine.accept_message(operated(spawn)).await.unwrap();
    world.wait_answer(&accepted).await;
    world.wait_settled().await;
    let read = |tx: &mut polyclaw_store::Tx<'_>| {
        tx.query("SELECT text FROM messages WHERE role = 'tool'", &[], |row| row.text(0))
    };
    let results = world.engine.db().read(read).await.unwrap();
    assert!(!results.iter().any(|text| text == "ran"), "{results:?}");
    assert!(results.iter().any(|text| text.contains("Only an owner")), "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn task_check_command_from_non_owner_is_refused() {
    let ground = ground().await;
    ground.tools.add_tool("shell", ToolEffect::Effect, ToolConsent::NotNeeded, |_| {
        Box::pin(async { ToolOutcome::ok("ran") })
    });
    let world = ground.start_engine(KillPointFaults::no_kill());
    let task = |team: &str| {
        let given = json!({ "team_name": team, "subject": "s", "description": "d", "verify": { "command": "id > ran" } });
        format!("TaskCreate {given}")
    };
    for (n, peer, team, is_refused) in [(0, "boss", "theirs", false), (10, "eve", "own", true)] {
        told(
            &world,
            n,
            inbound_dm(peer, &format!(r#"TeamCreate {{"team_name": "{team}", "description": "d"}}"#)),
        )
        .await;
        let created = told(&world, n + 1, inbound_dm(peer, &task(team))).await;
        assert_eq!(
            created.contains("commands need a person's approval here"),
            is_refused,
            "{peer}: {created}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn only_owner_writes_to_team_by_command() {
    let world = world().await;
    world.send_and_wait("hello").await;
    for line in ["/team send site ann hi", "/team plan ann approve"] {
        let text = world
            .engine
            .run_command_as(&World::session_key("me"), line, Authority::Operator)
            .await
            .unwrap()
            .unwrap();
        assert!(text.contains("Only owners can write to members here"), "{text}");
    }
}
