//! Workers: calls through the pool, workers that end or misbehave, and what is left of them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclaw_domain::agent::{SandboxMode, ToolIsolation};
use polyclaw_domain::id::TurnId;
use polyclaw_domain::media::MAX_IMAGE_BYTES;
use polyclaw_domain::tool::{ToolCall, ToolOutcome, Toolbox};
use polyclaw_tool::worker::{IsolatedToolbox, WorkerPoolSettings};
use polyclaw_tool::{BuiltinSettings as Tools, BuiltinToolbox};
use serde_json::{Value, json};

use crate::{Bench, confining};

pub struct Shop {
    pub bench: Bench,
    tools: Arc<IsolatedToolbox>,
}

pub fn usual() -> WorkerPoolSettings {
    let seconds = Duration::from_secs;
    WorkerPoolSettings {
        command: vec!["/proc/self/exe".to_owned(), "worker".to_owned()],
        min: 0,
        max: 2,
        idle: seconds(60),
        wait: seconds(20),
        calls: 200,
    }
}

pub fn shop(settings: WorkerPoolSettings, mode: SandboxMode) -> Shop {
    let mut bench = Bench::new();
    bench.scope.isolation = ToolIsolation::Process;
    bench.scope.sandbox.mode = mode;
    let builtin = BuiltinToolbox::new(Tools { sandbox: confining(bench.home.path()), ..Tools::default() });
    Shop { bench, tools: Arc::new(IsolatedToolbox::new(builtin, settings)) }
}

impl Shop {
    pub async fn call(&self, name: &str, arguments: Value) -> ToolOutcome {
        let call = ToolCall { id: "c".to_owned(), name: name.to_owned(), arguments };
        let progress = |text: &str| self.bench.progress.lock().unwrap().push_str(text);
        self.tools.run(&self.bench.scope, &TurnId::new("t"), &call, &progress).await
    }
}

fn children_of(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let listed =
        threads.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let mut found: Vec<u32> = listed
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    let below: Vec<u32> = found.iter().flat_map(|pid| children_of(*pid)).collect();
    found.extend(below);
    found
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Ends a process that this test has started.
fn kill(pid: u32) {
    assert!(children_of(std::process::id()).contains(&pid), "{pid} is not ours");
    assert!(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

#[tokio::test]
async fn image_from_worker_is_complete() {
    let shop = shop(usual(), SandboxMode::Workspace);
    let mut image = b"GIF89a".to_vec();
    image.resize(MAX_IMAGE_BYTES, 7);
    std::fs::write(shop.bench.path("a.gif"), &image).unwrap();
    let outcome = shop.call("image_view", json!({ "path": "a.gif" })).await;
    assert!(!outcome.is_error, "{}", outcome.content);
    let [(name, shown)] = &outcome.images[..] else { panic!("{}", outcome.content) };
    assert!(name == "a.gif" && shown.bytes() == image);
    std::os::unix::fs::symlink("../secret", shop.bench.path("out.gif")).unwrap();
    assert!(shop.call("image_view", json!({ "path": "out.gif" })).await.is_error);
}

#[tokio::test]
async fn confined_worker_serves_many_calls() {
    for mode in [SandboxMode::Workspace, SandboxMode::Strict] {
        let shop = shop(usual(), mode);
        let wrote = shop.call("write_file", json!({ "path": "f", "content": "hello\n" })).await;
        assert!(!wrote.is_error, "{}", wrote.content);
        let worker = wrote.facts.unwrap().worker;
        let read = shop.call("read_file", json!({ "path": "f" })).await;
        assert_eq!(read.content, "hello\n");
        let ran =
            shop.call("shell", json!({ "command": "cat f; echo x > /tmp/x; cat /proc/self/comm" })).await;
        assert_eq!(ran.content, "hello\ncat\n[exit status 0]");
        assert!(shop.bench.progress.lock().unwrap().contains("hello"));
        let facts = ran.facts.unwrap();
        assert_eq!((facts.worker, facts.isolation), (worker, ToolIsolation::Process), "one worker, kept");
        let program = facts.program.unwrap();
        assert!(program.namespaces.iter().any(|name| name.starts_with("pid:")), "{program:?}");
        assert_eq!(program.tried.network, mode == SandboxMode::Workspace);
        let out = shop.call("read_file", json!({ "path": "../secret" })).await;
        assert!(out.is_error && out.facts.unwrap().files.is_some());
    }
}

#[tokio::test]
async fn worker_without_network_fetches_through_host() {
    let shop = shop(usual(), SandboxMode::Strict);
    let outcome = shop.call("http_fetch", json!({ "url": "http://127.0.0.1:1/" })).await;
    assert!(outcome.is_error && outcome.content.contains("not a public address"), "{}", outcome.content);
}

#[tokio::test]
async fn effect_of_crashed_worker_is_unknown_and_not_repeated() {
    let shop = shop(usual(), SandboxMode::Workspace);
    let first = shop.call("list_dir", json!({})).await.facts.unwrap().worker.unwrap();
    let command = json!({ "command": "echo once >> ran; sleep 30" });
    let (outcome, ()) = tokio::join!(shop.call("shell", command), async {
        until("it runs", || shop.bench.path("ran").exists()).await;
        kill(first);
    });
    assert!(
        outcome.is_error && outcome.content.contains("Whether it took effect is unknown"),
        "{}",
        outcome.content
    );
    assert_eq!(outcome.facts.unwrap().crashes, 1);
    assert_eq!(shop.bench.text("ran"), "once\n", "not run again");
    let next = shop.call("read_file", json!({ "path": "ran" })).await;
    assert_eq!(next.content, "once\n");
    assert_ne!(next.facts.unwrap().worker, Some(first));
}

#[tokio::test]
async fn worker_that_ended_while_idle_gets_no_call() {
    let shop = shop(usual(), SandboxMode::Workspace);
    let first = shop.call("list_dir", json!({})).await.facts.unwrap().worker.unwrap();
    kill(first);
    until("it is gone", || !Path::new(&format!("/proc/{first}/exe")).exists()).await;
    // The daemon hears of it when it next looks at what is to be read.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let effect = shop.call("shell", json!({ "command": "echo ran" })).await;
    let facts = effect.facts.unwrap();
    assert_eq!((effect.content.as_str(), facts.crashes), ("ran\n[exit status 0]", 0));
    assert_ne!(facts.worker, Some(first));
}

#[tokio::test]
async fn misbehaving_worker_is_replaced_a_few_times() {
    for wrong in [
        "echo rubbish",
        "exit 3",
        "head -c 9000000 /dev/zero",
        "echo '{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":1}'",
    ] {
        let command = ["/bin/sh", "-c", &format!("{wrong}; cat > /dev/null")].map(str::to_owned).to_vec();
        let shop = shop(WorkerPoolSettings { command, ..usual() }, SandboxMode::Workspace);
        let pure = shop.call("read_file", json!({ "path": "f" })).await;
        assert_eq!(pure.facts.as_ref().unwrap().crashes, 3, "{wrong}: {}", pure.content);
        let effect = shop.call("shell", json!({ "command": "true" })).await;
        assert_eq!(effect.facts.unwrap().crashes, 1, "{wrong}: {}", effect.content);
        assert!(effect.is_error);
    }
}

#[tokio::test]
async fn call_without_free_worker_times_out() {
    let shop =
        shop(WorkerPoolSettings { max: 1, wait: Duration::from_secs(1), ..usual() }, SandboxMode::Workspace);
    let long = shop.call("shell", json!({ "command": "touch began; sleep 4" }));
    let (long, refused) = tokio::join!(long, async {
        until("the first one runs", || shop.bench.path("began").exists()).await;
        shop.call("read_file", json!({ "path": "began" })).await
    });
    assert!(!long.is_error, "{}", long.content);
    assert!(
        refused.is_error && refused.content.contains("no worker process became available"),
        "{}",
        refused.content
    );
}

#[tokio::test]
async fn idle_workers_end_and_dropped_call_ends_its_worker() {
    let shop =
        shop(WorkerPoolSettings { idle: Duration::from_millis(300), ..usual() }, SandboxMode::Workspace);
    let worker = shop.call("list_dir", json!({})).await.facts.unwrap().worker.unwrap();
    until("the idle worker has gone", || !Path::new(&format!("/proc/{worker}")).exists()).await;
    let call = shop.call("shell", json!({ "command": "sleep 60" }));
    assert!(tokio::time::timeout(Duration::from_secs(3), call).await.is_err());
    until("nothing of it is left", || children_of(std::process::id()).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_calls_leak_no_processes_or_descriptors() {
    let shop = Arc::new(shop(WorkerPoolSettings { calls: 100, ..usual() }, SandboxMode::Workspace));
    std::fs::write(shop.bench.path("f"), "x").unwrap();
    shop.call("read_file", json!({ "path": "f" })).await;
    let (before, started_at) = (descriptors(), Instant::now());
    let mut workers = std::collections::BTreeSet::new();
    for round in 0..1000 {
        let outcome = shop.call("read_file", json!({ "path": "f" })).await;
        assert_eq!(outcome.content, "x", "call {round}");
        workers.extend(outcome.facts.unwrap().worker);
    }
    println!("1000 calls in {:?}, {} workers", started_at.elapsed(), workers.len());
    assert!((10..=12).contains(&workers.len()), "each of them served 100 calls: {workers:?}");
    until("only the last worker is there", || children_of(std::process::id()).len() <= 4).await;
    until("no descriptor is left open", || descriptors() <= before + 2).await;
    drop(shop);
    until("no process is left", || children_of(std::process::id()).is_empty()).await;
}

#[tokio::test]
async fn kill_all_command_kills_only_itself() {
    for mode in [SandboxMode::Workspace, SandboxMode::Strict] {
        let shop = shop(usual(), mode);
        let worker = shop.call("list_dir", json!({})).await.facts.unwrap().worker;
        for command in ["sh -c 'kill -9 -1'; echo still", "kill -9 -1", "kill -KILL $PPID; echo still"] {
            let outcome = shop.call("shell", json!({ "command": command })).await;
            let facts = outcome.facts.unwrap();
            assert!(facts.program.is_some(), "{command}: {}", outcome.content);
            assert_eq!((facts.worker, facts.crashes), (worker, 0), "{command}: {}", outcome.content);
        }
    }
}

/// The engine resolves the links that lead to a workspace. One that is there later was put there since.
#[tokio::test]
async fn workspace_that_became_a_symlink_is_not_used() {
    let mut shop = shop(usual(), SandboxMode::Workspace);
    let link = shop.bench.home.path().join("link");
    std::os::unix::fs::symlink(&shop.bench.scope.workspace, &link).unwrap();
    std::fs::write(shop.bench.scope.workspace.join("note"), "here").unwrap();
    shop.bench.scope.workspace = link;
    let calls = [("read_file", json!({ "path": "note" })), ("shell", json!({ "command": "cat note" }))];
    for (tool, arguments) in calls {
        let outcome = shop.call(tool, arguments).await;
        assert!(outcome.is_error && outcome.content.contains("workspace"), "{}", outcome.content);
    }
}
