//! Work that is given to an agent whose tools run in worker processes: the processes are used again, also after one was
//! stopped, and what became of it can be read.

use std::fs;

use polyclaw_testkit::model_server::{ModelServer, Request, Script};
use serde_json::{Value, json};

use crate::fixture::{Home, until};

const MAIN: &str = "agent:main:main";
/// A length no other program sleeps for.
const LONG: &str = "61.7319";

/// One worker in all: a call that found none would wait for it.
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

fn give(n: usize, command: &str, timeout_ms: u64) -> Script {
    let arguments =
        json!({ "agent_id": "expert", "task": format!("run: {command}"), "timeout_ms": timeout_ms });
    Script::new().call(&format!("d{n}"), "delegate_to_agent", arguments)
}

fn answer(request: &Request) -> Script {
    let results: Vec<&Value> =
        request.messages().iter().filter(|message| message["role"] == "tool").collect();
    if request.system().contains("You are Expert") {
        let asked = request.last_user_text();
        let command =
            asked.split("run: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or("true").to_owned();
        return match results.last() {
            None => Script::new().call("s0", "shell", json!({ "command": command })),
            Some(said) => Script::reply(
                said["content"].as_str().and_then(|text| text.lines().next()).unwrap_or_default(),
            ),
        };
    }
    match results.len() {
        0 => give(0, "echo one", 60_000),
        1 => give(1, "echo two", 60_000),
        2 => give(2, &format!("sleep {LONG}"), 2_000),
        3 => give(3, "echo four", 60_000),
        _ => Script::reply("all done"),
    }
}

/// Which worker ran the shell of a delegate.
fn worker(home: &Home, run: &Value) -> Option<u64> {
    let exported = home.run(&["sessions", "export", run["session_key"].as_str().unwrap()]).stdout;
    let lines = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.into_iter().find_map(|line| line["meta"]["sandbox"]["facts"]["worker"].as_u64())
}

fn sleeps() -> bool {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(&format!("sleep\0{LONG}")))
}

/// D-4: the same process serves again. D-7: after a timeout nothing of the target runs and its place is free.
#[test]
fn d_04_07_workers_are_used_again_and_a_stopped_delegate_leaves_its_place_free() {
    let model = ModelServer::start();
    model.answer(answer);
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
    assert!(first.is_some() && first == worker(&home, &runs[1]), "the process is used again");
    assert!(worker(&home, &runs[3]).is_some(), "the only place was free after the timeout");
    until("nothing of the stopped one runs", || !sleeps());
    let pairs = home.run(&["runs", "pairs", "--json"]).ok();
    let pair = &pairs["delegations"][0];
    assert_eq!((&pair["completed"], &pair["timeout"], &pair["active"]), (&json!(3), &json!(1), &json!(0)));
    assert!(pair["p95_ms"].as_i64().unwrap() >= 2_000, "{pair}");
}

#[test]
fn what_was_begun_is_drawn_listed_and_shown() {
    let model = ModelServer::start();
    model.answer(answer);
    let home = Home::with_model_and(&model, CONFIG);
    let _daemon = home.daemon();
    assert_eq!(home.run(&["sessions", "tree"]).stdout, "No conversation has begun another.\n");
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
    assert_eq!(home.run(&["runs", "dismiss", id, "--json"]).error(), (4, "not_now".into()));
    assert_eq!(home.run(&["runs"]).stdout, "Nothing is there.\n");
}
