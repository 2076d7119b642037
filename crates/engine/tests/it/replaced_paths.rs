//! Agents replace files and folders of the workspace by links and pipes while the engine uses them. Nothing outside is
//! read or written, and nothing waits for a pipe.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::{Db, Tx};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider};
use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use serde_json::json;

/// The form of a control plane's token, and of a commit.
const SECRET: &str = "1795ea0000000000000000000000000000000000000000000000000000565e00";

async fn world_in(workspace: &Path) -> World {
    let mut ground =
        DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::echo() as Arc<_>).await;
    ground.settings.workspace = workspace.to_owned();
    ground.start_engine(KillPointFaults::no_kill())
}

/// Exchanges two names as fast as it can, as a program of an agent would.
struct NameExchange {
    ends: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl NameExchange {
    fn start(one: &Path, other: &Path) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (until, one, other) = (Arc::clone(&ends), one.to_owned(), other.to_owned());
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for NameExchange {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn create_pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

fn is_child(prompt: &Prompt) -> bool {
    matches!(prompt.messages.first(), Some(PromptMessage::User { text, .. }) if text.contains("do part"))
}

fn has_result(prompt: &Prompt) -> bool {
    prompt.messages.iter().any(|message| matches!(message, PromptMessage::ToolResult { .. }))
}

#[tokio::test(start_paused = true)]
async fn file_behind_linked_git_folder_is_not_announced_as_commit() {
    let room = tempfile::tempdir().unwrap();
    let (workspace, outside) = (room.path().join("workspace"), room.path().join("cp"));
    std::fs::create_dir_all(workspace.join(".git")).unwrap();
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("token"), format!("{SECRET}\n")).unwrap();
    std::fs::write(workspace.join(".git/HEAD"), "1".repeat(40)).unwrap();
    symlink(&outside, workspace.join(".git/refs")).unwrap();
    let model = ScriptedProvider::new(|prompt| match (is_child(prompt), has_result(prompt)) {
        (true, false) => vec![ScriptStep::Call("move_head".into(), json!({}))],
        (false, false) => vec![
            ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part 1" })),
            ScriptStep::Call("sessions_yield".into(), json!({})),
        ],
        _ => vec![ScriptStep::Say("done".to_owned())],
    });
    let mut ground = DurableWorld::from_db(Db::in_memory().unwrap(), Arc::clone(&model) as _).await;
    ground.settings.workspace = workspace.clone();
    let head = workspace.join(".git/HEAD");
    ground.tools.add_tool("move_head", ToolEffect::Effect, ToolConsent::NotNeeded, move |_| {
        std::fs::write(&head, "ref: refs/token\n").unwrap();
        Box::pin(std::future::ready(ToolOutcome::ok("done")))
    });
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "do it").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.wait_settled().await;
    let prompts = model.prompts();
    let shown = prompts.iter().any(|prompt| format!("{:?}", prompt.messages).contains(SECRET));
    assert!(prompts.len() > 3 && !shown, "a file outside the workspace was announced");
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_files_are_not_accessed_through_swapped_links() {
    let room = tempfile::tempdir().unwrap();
    let (workspace, outside) = (room.path().join("workspace"), room.path().join("outside"));
    let own = workspace.join("agents/main");
    for folder in [&own, &outside] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(outside.join("token"), SECRET).unwrap();
    std::fs::write(own.join("SOUL.md"), "mine").unwrap();
    symlink(outside.join("token"), own.join("SOUL.link")).unwrap();
    let world = world_in(&workspace).await;
    let main = AgentId::main();
    let exchange = NameExchange::start(&own.join("SOUL.md"), &own.join("SOUL.link"));
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        let read = world.engine.load_overlay(&main, "SOUL.md").await;
        assert!(!format!("{read:?}").contains(SECRET), "a file outside the workspace was read");
    }
    drop(exchange);
    symlink(&outside, workspace.join("agents/other")).unwrap();
    let exchange = NameExchange::start(&own, &workspace.join("agents/other"));
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        let text = Some("written".to_owned());
        world.engine.write_overlay(&main, "TOOLS.md", text, |_| true).await.ok();
        let found = std::fs::read_dir(&outside).unwrap().count();
        assert_eq!(found, 1, "a file was written outside the workspace");
    }
    drop(exchange);
}

fn agent_in(id: &str, folder: &Path) -> AgentSpec {
    let mut spec = AgentSpec::with_id(AgentId::parse(id).unwrap());
    spec.workspace.dir = Some(folder.display().to_string());
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_workspace_cannot_nest_with_another_workspace() {
    let room = tempfile::tempdir().unwrap();
    let workspace = room.path().join("workspace");
    std::fs::create_dir_all(workspace.join("linked")).unwrap();
    symlink(workspace.join("linked"), room.path().join("elsewhere")).unwrap();
    let world = world_in(&workspace).await;
    let engine = &world.engine;
    for folder in [workspace.join("ops"), room.path().to_owned(), room.path().join("elsewhere")] {
        let refused = engine.create_agent(agent_in("ops", &folder)).await.unwrap_err();
        assert_eq!(refused.code(), "invalid_agent", "{refused}");
        assert!(refused.to_string().contains("omit workspace"), "{refused}");
    }
    engine.create_agent(agent_in("shares", &workspace)).await.unwrap();
    engine.create_agent(agent_in("apart", &room.path().join("apart"))).await.unwrap();
    engine.create_agent(AgentSpec::with_id(AgentId::parse("usual").unwrap())).await.unwrap();
    let refused = engine.update_agent(agent_in("apart", &workspace.join("a/b"))).await.unwrap_err();
    assert_eq!(refused.code(), "invalid_agent", "{refused}");
    engine.update_agent(agent_in("apart", &room.path().join("apart/deeper"))).await.unwrap();
}

/// It was stored before such workspaces were refused.
#[tokio::test(flavor = "multi_thread")]
async fn stored_agent_with_nested_workspace_does_not_run() {
    let room = tempfile::tempdir().unwrap();
    let workspace = room.path().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    let mut ground =
        DurableWorld::from_db(Db::in_memory().unwrap(), ScriptedProvider::echo() as Arc<_>).await;
    ground.settings.workspace = workspace.clone();
    let nested = agent_in("ops", &workspace.join("ops"));
    let write = move |tx: &mut Tx<'_>| agents::upsert(tx, &nested, AgentSource::Api, Millis(1));
    ground.db.write(write).await.unwrap();
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert!(world.send_and_wait("hello").await.text.contains("hello"), "the outer agent answers");
    let key = World::session_key("me");
    world.engine.run_command(&key, "/agent ops").await.unwrap().unwrap();
    let answer = world.send_and_wait("hello").await.text;
    assert!(answer.contains("is inside that of agent \"main\""), "{answer}");
    let ops = AgentId::parse("ops").unwrap();
    let shown = world.engine.load_overlay(&ops, "SOUL.md").await.map(drop);
    for refused in [shown, world.engine.opening_prompt(&ops).await.map(drop)] {
        assert_eq!(refused.unwrap_err().code(), "unsafe_workspace");
    }
}

/// A folder above the workspace is exchanged with a link: the agent no longer works where it was let.
#[tokio::test(flavor = "multi_thread")]
async fn agent_with_replaced_workspace_runs_only_after_config_reload() {
    let room = tempfile::tempdir().unwrap();
    let (workspace, outside) = (room.path().join("home/workspace"), room.path().join("outside"));
    for folder in [&workspace, &outside.join("workspace")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let world = world_in(&workspace).await;
    assert!(world.send_and_wait("hello").await.text.contains("hello"));
    std::fs::rename(room.path().join("home"), room.path().join("away")).unwrap();
    symlink(&outside, room.path().join("home")).unwrap();
    let answer = world.send_and_wait("hello").await.text;
    assert!(answer.contains("is now another folder"), "{answer}");
    let settings = world.engine.settings();
    world.engine.reload_settings((*settings).clone());
    assert!(world.send_and_wait("hello").await.text.contains("hello"));
}

/// Also a folder that an agent's program keeps locked, which nobody may wait for.
#[tokio::test(flavor = "multi_thread")]
async fn pipe_or_lock_in_agent_folder_does_not_block() {
    let room = tempfile::tempdir().unwrap();
    let workspace = room.path().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    let world = world_in(&workspace).await;
    let spec = AgentSpec::with_id(AgentId::parse("dbx").unwrap());
    world.engine.create_agent(spec.clone()).await.unwrap();
    let file = workspace.join("agents/dbx/agent.toml");
    let soon = Duration::from_secs(10);
    std::fs::remove_file(&file).unwrap();
    create_pipe(&file);
    let exported = tokio::time::timeout(soon, world.engine.export_agents()).await;
    // Lets go of whoever waits, so that the runtime can end.
    let _ = std::fs::OpenOptions::new().read(true).write(true).open(&file);
    exported.expect("the start does not wait for a pipe").unwrap();
    assert!(std::fs::symlink_metadata(&file).unwrap().is_file(), "the file is written in place of the pipe");

    let soul = workspace.join("agents/dbx/SOUL.md");
    create_pipe(&soul);
    let read = tokio::time::timeout(soon, world.engine.load_overlay(&spec.agent_id, "SOUL.md")).await;
    assert!(read.expect("a reader does not wait for a pipe").is_err());
    let held = std::fs::File::open(workspace.join("agents/dbx")).unwrap();
    held.lock().unwrap();
    let text = Some("text".to_owned());
    let written = world.engine.write_overlay(&spec.agent_id, "TOOLS.md", text, |_| true);
    let written = tokio::time::timeout(soon, written).await;
    drop(held);
    assert!(written.expect("a writer does not wait for a lock").unwrap());
}
