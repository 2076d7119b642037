//! A command runs once, wherever the process dies: its change and its reply are stored together.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::channel::IngestOutcome;
use polyclaw_domain::command::{COMMANDS, CallerRole};
use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Db, messages};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, inbound_dm, inbound_group};
use tokio::sync::Semaphore;

use crate::approvals::{self, question};
use crate::reception::{CONFIG, read_after, recorded};
use crate::{glance, worker};

const OWN: &str = "agent:main:telegram:dm:boss";

/// The replies a person reads, and the changes of the command.
#[derive(Debug, PartialEq)]
struct Story {
    read: Vec<String>,
    session: String,
    jobs: Vec<(String, i64)>,
    /// Numbers of new conversations and of answered approval requests.
    counts: [usize; 2],
}

impl Story {
    async fn of(world: &World) -> Self {
        let key = SessionKey::parse(OWN).unwrap();
        let session = world.engine.load_session(&key).await.unwrap();
        let read = |tx: &mut polyclaw_store::Tx<'_>| {
            const SQL: &str = "SELECT state, COUNT(*) FROM jobs GROUP BY state ORDER BY state";
            tx.query(SQL, &[], |row| Ok((row.text(0)?, row.int(1)?)))
        };
        let renewed = recorded(world, EventKind::SessionRenewed).await.len();
        let decided = recorded(world, EventKind::ApprovalDecided).await.len();
        let mut texts = world.ground.fake_channel.texts_at("boss", None);
        texts.sort();
        Self {
            read: texts,
            session: format!(
                "{:?}",
                (
                    session.active_agent,
                    session.model_override,
                    session.focus,
                    session.ttl_ms,
                    session.language
                )
            ),
            jobs: world.engine.db().read(read).await.unwrap(),
            counts: [renewed, decided],
        }
    }
}

async fn says(world: &World, text: &str) {
    assert_eq!(
        world.ground.fake_channel.deliver_inbound(inbound_dm("boss", text)).await,
        IngestOutcome::Done
    );
}

/// A conversation with a transcript, a running turn, and a waiting message or an approval request.
async fn ground(command: &str) -> (DurableWorld, String) {
    let mut ground = match command {
        "approve" | "deny" => approvals::ground().await,
        _ => DurableWorld::from_db(Db::in_memory().unwrap(), worker(1, &Arc::new(Semaphore::new(0)))).await,
    };
    ground.configure(CONFIG).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    says(&world, "hello").await;
    world.wait_settled().await;
    let ops = AgentId::parse("ops").unwrap();
    world.engine.create_session(&SessionKey::main(&ops), &ops, None).await.unwrap();
    let line = match command {
        "approve" | "deny" => {
            says(&world, "run it").await;
            format!("/{command} {}", question(&world).await)
        }
        "stop" => {
            says(&world, "work").await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            says(&world, "wait").await;
            "/stop".to_owned()
        }
        "unfocus" => {
            says(&world, "/focus agent:ops:main").await;
            "/unfocus".to_owned()
        }
        "model" => "/model lab/small".to_owned(),
        "agent" => "/agent ops".to_owned(),
        "focus" => "/focus agent:ops:main".to_owned(),
        "session" => "/session ttl 5h".to_owned(),
        "language" => "/language zh".to_owned(),
        other => format!("/{other}"),
    };
    (world.kill().await, line)
}

/// Gives a command to an engine that dies at a kill point, and to its successor.
async fn story(command: &str, point: Option<KillPoint>) -> Story {
    let (ground, line) = ground(command).await;
    let faults = point.map_or_else(KillPointFaults::no_kill, |point| KillPointFaults::at_point(point, 1));
    let world = ground.start_engine(faults.clone());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = Story::of(&world).await;
    let (outlet, text) = (ground.fake_channel.clone(), line.clone());
    let delivered = tokio::spawn(async move { outlet.deliver_inbound(inbound_dm("boss", &text)).await });
    tokio::select! {
        _ = faults.wait_killed(), if point.is_some() => {}
        () = tokio::time::sleep(Duration::from_secs(5)) => assert!(point.is_none(), "{line}: {point:?} is not reached"),
    }
    if point == Some(KillPoint::ReplyOnceBefore) {
        assert_eq!(Story::of(&world).await, before, "{line}: nothing is changed before it is answered");
    }
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    assert_eq!(delivered.await.unwrap(), IngestOutcome::Done, "{line}");
    world.wait_settled().await;
    says(&world, &line).await;
    world.wait_settled().await;
    Story::of(&world).await
}

#[tokio::test(start_paused = true)]
async fn command_takes_effect_once_at_every_kill_point() {
    for command in COMMANDS.iter().map(|command| command.name) {
        let undisturbed = story(command, None).await;
        for point in [KillPoint::ReplyOnceBefore, KillPoint::ReplyOnceCommitted] {
            assert_eq!(story(command, Some(point)).await, undisturbed, "/{command} at {point:?}");
        }
    }
}

/// Ensures that the stories above are not equal merely because nothing happens.
#[tokio::test(start_paused = true)]
async fn each_command_changes_observed_state() {
    let notice = story("whoami", None).await;
    for (command, reply) in [
        ("new", "A new conversation"),
        ("model", "lab/small is used starting with the next turn"),
        ("agent", "ops answers"),
        ("focus", "now go to agent:ops:main"),
        ("session", "After 5h without a message"),
        ("language", "现在使用中文"),
        ("compact", "The old history is being summarized."),
        ("stop", "Stopped."),
        ("approve", "Approved. It runs now."),
        ("deny", "Denied. The agent is notified."),
    ] {
        let story = story(command, None).await;
        assert!(story.read.iter().any(|text| text.contains(reply)), "{story:?}");
        let changes = (&story.session, &story.jobs, &story.counts);
        assert_ne!(changes, (&notice.session, &notice.jobs, &notice.counts), "/{command}");
    }
    let stopped = story("stop", None).await;
    assert!(stopped.read.iter().any(|text| text == "reply to wait"), "what waits is answered: {stopped:?}");
    assert!(stopped.jobs.contains(&("cancelled".to_owned(), 1)), "{stopped:?}");
}

async fn glances(world: &World, key: &SessionKey) -> Vec<String> {
    let wanted = key.clone();
    let read = move |tx: &mut polyclaw_store::Tx<'_>| messages::list_all(tx, &wanted, 0, 100);
    glance(&world.engine.db().read(read).await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn unauthorized_command_changes_nothing() {
    let world = crate::reception::ground(CONFIG).await.start_engine(KillPointFaults::no_kill());
    let key = SessionKey::parse("agent:ops:telegram:group:-7").unwrap();
    for sender in ["guest", "boss"] {
        world.ground.fake_channel.deliver_inbound(inbound_group("-7", sender, "hello")).await;
    }
    world.wait_settled().await;
    let status_of = async || {
        let session = world.engine.load_session(&key).await.unwrap();
        let renewed = recorded(&world, EventKind::SessionRenewed).await.len();
        (format!("{session:?}"), renewed, glances(&world, &key).await)
    };
    let before = status_of().await;
    for command in COMMANDS.iter().filter(|command| !CallerRole::AmongOthers.may_run(command.required_role)) {
        for rest in ["", "lab/small", "main", "agent:ops:telegram:group:-7", "ttl 1h", "off"] {
            let line = format!("/{} {rest}", command.name);
            if !CallerRole::AmongOthers.may_run(command.required_role_for(rest)) {
                world.ground.fake_channel.deliver_inbound(inbound_group("-7", "guest", &line)).await;
            }
        }
    }
    world.wait_settled().await;
    assert_eq!(status_of().await, before);
}

/// The reply to `/model`, and replies to unknown or unusable models.
#[tokio::test(start_paused = true)]
async fn model_command_shows_agent_model_and_refuses_unknown_provider() {
    let config = CONFIG.replace(" id = \"ops\"\n", " id = \"ops\"\n    model = \"lab/small\"\n");
    let mut ground = crate::reception::ground(&config).await;
    ground.settings.providers = vec!["lab".to_owned()];
    let world = ground.start_engine(KillPointFaults::no_kill());
    let reads =
        async |text: &str| read_after(&world, inbound_dm("boss", text)).await.pop().unwrap_or_default();
    assert_eq!(reads("hello").await, "echo: hello");
    assert!(reads("/status").await.contains("\nmodel scripted/model\n"));
    reads("/agent ops").await;
    for line in ["/STATUS", "/Model", "/model"] {
        assert!(reads(line).await.contains("\nmodel lab/small\n"), "{line}");
    }
    let refused = reads("/model nope/x").await;
    assert!(refused.contains("no provider 'nope'") && refused.contains("/models"), "{refused}");
    assert!(reads("/model lab/large").await.contains("lab/large is used starting with the next turn"));
    assert!(reads("/sTatus").await.contains("\nmodel lab/large (selected)\n"));
    assert!(reads("/agent").await.contains("/agents"));
    assert_eq!(reads("/start").await, reads("/Help").await);
    assert_eq!(reads("/Ops-Night hi").await, "echo: hi", "an agent's name in whatever case");
}

/// Commands by a token holder: web page, terminal, CLI and API.
#[tokio::test(start_paused = true)]
async fn commands_work_before_the_first_message() {
    let ground = World::new().await.kill().await;
    ground.add_agent("coder").await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let lines = [
        "/status",
        "/model default",
        "/agent coder",
        "/whoami",
        "/new",
        "/stop",
        "/session ttl 1h",
        "/context",
    ];
    for (n, line) in lines.iter().enumerate() {
        let key = SessionKey::from_parts(&AgentId::main(), &["web", &n.to_string()]);
        let reply = world.engine.run_command(&key, line).await.unwrap();
        assert!(reply.is_ok(), "{line}: {reply:?}");
    }
    let key = SessionKey::from_parts(&AgentId::main(), &["web", "2"]);
    assert_eq!(world.engine.load_session(&key).await.unwrap().active_agent.as_str(), "coder");
    let spawned = SessionKey::from_parts(&AgentId::main(), &["web", "spawn"]);
    let text = world.engine.run_command(&spawned, "/subagents spawn look around").await.unwrap().unwrap();
    assert!(text.starts_with("Started in "), "{text}");
    // General commands create no session, and no command creates a sub-agent's session.
    let none = SessionKey::from_parts(&AgentId::main(), &["web", "none"]);
    world.engine.run_command(&none, "/help").await.unwrap().unwrap();
    assert!(world.engine.load_session(&none).await.is_err());
    let child = SessionKey::from_parts(&AgentId::main(), &["subagent", "abc"]);
    assert!(world.engine.run_command(&child, "/status").await.unwrap().is_err());
    let nobody = SessionKey::from_parts(&AgentId::parse("nobody").unwrap(), &["main"]);
    assert!(world.engine.run_command(&nobody, "/status").await.unwrap().is_err());
    world.wait_settled().await;
}
