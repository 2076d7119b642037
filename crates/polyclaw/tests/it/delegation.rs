//! Delegation to an agent whose tools run in worker processes: the processes are reused, even after one was
//! stopped, and the result can be read.

use std::fs;

use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use serde_json::{Value, json};

use crate::fixture::{Home, until};

const MAIN: &str = "agent:main:main";
/// A unique sleep duration.
const LONG: &str = "61.7319";

/// One worker in total: another call waits for it.
const CONFIG: &str = r#"
[workers]
max = 1
wait_seconds = 5
[agents]
default = "main"
[[agents.list]]
id = "main"
delegation = { allow_agents = ["expert"] }
[[agents.list]]
id = "expert"
name = "Expert"
isolation = "process"
tools = { allow = ["shell"], approvals = { shell = "never" } }
"#;

fn give(n: usize, command: &str, timeout_ms: u64) -> ReplyScript {
    let arguments =
        json!({ "agent_id": "expert", "task": format!("run: {command}"), "timeout_ms": timeout_ms });
    ReplyScript::new().call(&format!("d{n}"), "delegate_to_agent", arguments)
}

fn results(request: &ReceivedRequest) -> Vec<&Value> {
    request.messages().iter().filter(|message| message["role"] == "tool").collect()
}

/// Runs the given command and reports the result.
fn expert(request: &ReceivedRequest) -> ReplyScript {
    let asked = request.last_user_text();
    let command =
        asked.split("run: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or("true").to_owned();
    match results(request).last() {
        None => ReplyScript::new().call("s0", "shell", json!({ "command": command })),
        Some(reply) => ReplyScript::reply(
            reply["content"].as_str().and_then(|text| text.lines().next()).unwrap_or_default(),
        ),
    }
}

fn answer(request: &ReceivedRequest) -> ReplyScript {
    if request.system_prompt().contains("You are Expert") {
        return expert(request);
    }
    match results(request).len() {
        0 => give(0, "echo one", 60_000),
        1 => give(1, "echo two", 60_000),
        2 => give(2, &format!("sleep {LONG}"), 2_000),
        3 => give(3, "echo four", 60_000),
        _ => ReplyScript::reply("all done"),
    }
}

/// The worker that ran a delegate's shell.
fn worker(home: &Home, run: &Value) -> Option<u64> {
    let exported = home.run(&["sessions", "export", run["session_key"].as_str().unwrap()]).stdout;
    let lines = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.into_iter().find_map(|line| line["meta"]["sandbox"]["facts"]["worker"].as_u64())
}

fn sleeps(long: &str) -> bool {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(&format!("sleep\0{long}")))
}

/// D-4: the same process is reused. D-7: after a timeout nothing of the target runs and its worker is free.
#[test]
fn d_04_07_workers_are_reused_and_freed_after_delegate_timeout() {
    let model = ModelServer::start();
    model.answer_with(answer);
    let home = Home::with_model_and(&model, CONFIG);
    let _daemon = home.daemon();
    let ran = home.run(&["agent", "-m", "go"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "all done\n"), "{}", ran.stderr);
    let listed = home.run(&["runs", "list", MAIN, "--json"]).ok();
    let runs: Vec<Value> = listed["runs"].as_array().unwrap().iter().rev().cloned().collect();
    let came: Vec<(&str, &str)> =
        runs.iter().map(|run| (run["status"].as_str().unwrap(), run["result"].as_str().unwrap())).collect();
    assert_eq!((came[0], came[1], came[3]), (("ok", "one"), ("ok", "two"), ("ok", "four")));
    assert_eq!(came[2].0, "timeout");
    let first = worker(&home, &runs[0]);
    assert!(first.is_some() && first == worker(&home, &runs[1]), "the process is reused");
    assert!(worker(&home, &runs[3]).is_some(), "the only worker was free after the timeout");
    until("nothing of the stopped one runs", || !sleeps(LONG));
    let pairs = home.run(&["runs", "pairs", "--json"]).ok();
    let pair = &pairs["delegations"][0];
    assert_eq!((&pair["completed"], &pair["timeout"], &pair["active"]), (&json!(3), &json!(1), &json!(0)));
    assert!(pair["p95_ms"].as_i64().unwrap() >= 2_000, "{pair}");
}

#[test]
fn delegate_runs_are_shown_in_tree_and_list_and_detail() {
    let model = ModelServer::start();
    model.answer_with(answer);
    let home = Home::with_model_and(&model, CONFIG);
    let _daemon = home.daemon();
    assert_eq!(home.run(&["sessions", "tree"]).stdout, "No session has started another.\n");
    home.run(&["agent", "-m", "go"]);
    let drawn = home.run(&["sessions", "tree"]).stdout;
    assert!(drawn.starts_with("main “go” agent:main:main · idle · lane main"), "{drawn}");
    assert_eq!(
        (drawn.matches("\n├─ expert “run: ").count(), drawn.matches("\n└─ ").count()),
        (3, 1),
        "{drawn}"
    );
    let tree = home.run(&["sessions", "tree", MAIN, "--json"]).ok();
    let tree = &tree["trees"][0];
    let traces: Vec<&Value> =
        tree["children"].as_array().unwrap().iter().map(|child| &child["trace_id"]).collect();
    assert!(traces.len() == 4 && traces.iter().all(|trace| **trace == tree["trace_id"]), "{tree}");
    let id = tree["children"][0]["run_id"].as_str().unwrap();
    let shown = home.run(&["runs", "show", id]).stdout;
    assert!(shown.contains("caller_agent_id main") && shown.contains("result one"), "{shown}");
    assert_eq!(home.run(&["runs", "show", "none", "--json"]).error(), (3, "unknown_run".into()));
    assert_eq!(home.run(&["runs", "dismiss", id, "--json"]).error(), (4, "invalid_state".into()));
    let none = home.run(&["runs"]).stdout;
    assert!(none.contains("No run is held") && none.contains("polyclaw runs list <session>"), "{none}");
}

/// How long the only worker is busy.
const HELD: &str = "61.7320";

/// `hold` gives the expert a long task and does not wait; `ask` gives it a short one and reports the result.
fn holder(request: &ReceivedRequest) -> ReplyScript {
    let asked = request.last_user_text();
    let result = request.messages().last().filter(|message| message["role"] == "tool");
    match () {
        () if request.system_prompt().contains("You are Expert") => expert(request),
        () if asked.contains("[Context:") => ReplyScript::reply("heard"),
        () if result.is_some() => {
            ReplyScript::reply(result.and_then(|result| result["content"].as_str()).unwrap_or_default())
        }
        () if asked.contains("hold") => {
            let task = json!({ "agent_id": "expert", "task": format!("run: sleep {HELD}"), "mode": "async" });
            ReplyScript::new().call("h", "delegate_to_agent", task)
        }
        () => give(0, "echo one", 60_000),
    }
}

#[test]
fn exhausted_pool_and_worker_crash_have_their_own_codes() {
    let model = ModelServer::start();
    model.answer_with(holder);
    let home = Home::with_model_and(&model, &CONFIG.replace("wait_seconds = 5", "wait_seconds = 1"));
    let daemon = home.daemon();
    home.run(&["agent", "-m", "hold"]);
    until("the only worker is busy", || sleeps(HELD));
    let asked = home.run(&["agent", "-m", "ask"]).stdout;
    assert!(asked.contains(r#""status":"error""#) && asked.contains(r#""code":"pool_exhausted""#), "{asked}");
    let threads = fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap().flatten();
    let children: String = threads
        .map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default())
        .collect();
    let killed = std::process::Command::new("kill").arg("-9").args(children.split_whitespace()).status();
    assert!(killed.unwrap().success(), "its processes are the worker's: {children}");
    let held = || {
        let listed = home.run(&["runs", "list", MAIN, "--json"]).ok();
        let runs = listed["runs"].as_array().unwrap().clone();
        runs.into_iter().find(|run| run["label"].as_str().is_some_and(|label| label.contains(HELD))).unwrap()
    };
    until("its run has ended", || held()["status"] != "running");
    let run = held();
    assert_eq!((&run["status"], &run["error_code"]), (&json!("error"), &json!("worker_crash")), "{run}");
}
