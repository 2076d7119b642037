//! A model that tries to escape both sandbox modes, in both kinds of isolation. The effects are
//! checked from outside, and every attempt leaves a record of the active sandbox.

mod attempts;
mod ground;

use std::collections::HashMap;
use std::process::{Command, Stdio};

use crate::fixture::until;
use attempts::{Kind, SHELL, others};
use ground::{CANARY, Ground, marked_processes};
use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::{Value, json};

#[test]
fn workspace_sandbox_stops_all_escape_attempts() {
    tried("in_process", "workspace");
}

#[test]
fn strict_sandbox_stops_all_escape_attempts() {
    tried("in_process", "strict");
}

#[test]
fn workspace_sandbox_in_worker_stops_all_escape_attempts() {
    tried("process", "workspace");
}

#[test]
fn strict_sandbox_in_worker_stops_all_escape_attempts() {
    tried("process", "strict");
}

fn tried(isolation: &str, mode: &str) {
    let model = ModelServer::start();
    let ground = Ground::new(&model, isolation, mode);
    assert_namespaces_in_force(&model, &ground);
    let token = ground.token();
    let calls = calls(&ground);
    let mut script = ReplyScript::new();
    for (name, tool, arguments) in &calls {
        script = script.call(name, tool, arguments.clone());
    }
    model.push(script);
    model.push(ReplyScript::reply("I tried"));
    let ran = ground.home.run(&["agent", "-m", "try", "--timeout", "900"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let records = records(&ground);
    assert!(calls.len() >= 60);
    for (name, tool, _) in &calls {
        let record = records.get(name.as_str()).unwrap_or_else(|| panic!("no record of {name:?}"));
        let text = record["text"].as_str().unwrap();
        let is_open = mode == "workspace" && kind(name) == Some(Kind::Network);
        assert!(is_open || !text.contains("ESCAPED"), "{name:?} got out: {text}");
        assert!(!text.contains(CANARY) && !text.contains(&token), "{name:?} read a secret");
        assert!(text.len() < 300_000, "{name:?} flooded");
        check_facts(name, (tool, text), &record["meta"]["sandbox"]["facts"], (isolation, mode));
    }
    ground.assert_untouched(mode == "workspace");
}

/// Verifies the sandbox before any attempt that could harm the machine.
fn assert_namespaces_in_force(model: &ModelServer, ground: &Ground) {
    model.push(ReplyScript::new().call("look", "shell", json!({ "command": "true" })));
    model.push(ReplyScript::reply("I looked"));
    assert_eq!(ground.home.run(&["agent", "-m", "look"]).code, 0);
    let look = &records(ground)["look"];
    let facts = &look["meta"]["sandbox"]["facts"]["program"];
    let own: Vec<&str> =
        facts["namespaces"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for kind in ["user:", "pid:", "mnt:"] {
        assert!(
            own.iter().any(|name| name.starts_with(kind)),
            "no {kind} of its own, nothing is tried: {look}"
        );
    }
}

/// Every attempt as a call, its name as the call's id.
fn calls(ground: &Ground) -> Vec<(String, String, Value)> {
    let shell = SHELL.iter().map(|attempt| (attempt.name, "shell", json!({ "command": attempt.command })));
    let fill = |value: Value| serde_json::from_str(&ground.fill(&value.to_string())).unwrap();
    shell.chain(others()).map(|(name, tool, value)| (name.to_owned(), tool.to_owned(), fill(value))).collect()
}

fn kind(name: &str) -> Option<Kind> {
    SHELL.iter().find(|attempt| attempt.name == name).map(|attempt| attempt.kind)
}

/// Results by the id of their call.
fn records(ground: &Ground) -> HashMap<String, Value> {
    let exported = ground.home.run(&["sessions", "export", "agent:lab:main"]).stdout;
    let messages = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let result = |message: Value| {
        let part = message["parts"].as_array()?.iter().find(|part| part["type"] == "tool_result")?;
        Some((part["call_id"].as_str()?.to_owned(), message))
    };
    messages.filter_map(result).collect()
}

fn check_facts(name: &str, (tool, text): (&str, &str), facts: &Value, (isolation, mode): (&str, &str)) {
    assert_eq!((&facts["mode"], &facts["isolation"]), (&json!(mode), &json!(isolation)), "{name:?}: {facts}");
    assert_eq!(facts["worker"].is_u64(), isolation == "process", "{name:?}: {facts}");
    let program = &facts["program"];
    // The limit of the worker may be passed before that of its program, whose facts are lost with it.
    let is_killed =
        ["memory use", "more than", "timed out"].iter().any(|why| text.contains(&format!("[killed: {why}")));
    let has_ended_worker = isolation == "process" && program.is_null() && is_killed;
    match tool {
        "shell" if has_ended_worker => {}
        "shell" if !name.starts_with("start ") => {
            assert!(program["landlock"]["abi"].as_u64() >= Some(3), "{name:?} was not run: {text}: {facts}");
            assert_eq!(
                (&program["no_new_privs"], &program["seccomp"]),
                (&json!(true), &json!(2)),
                "{name:?}"
            );
            assert_eq!(program["tried"]["network"], json!(mode == "workspace"), "{name:?}");
            assert_eq!(program["tried"]["outside"], json!(false), "{name:?}");
            assert_eq!(program["limits"]["file_mb"], json!(64), "{name:?}");
        }
        "http_fetch" | "shell" => {}
        _ => assert!(
            facts["files"]["resolved"].as_str().is_some_and(|how| how.contains("beneath")),
            "{name:?}"
        ),
    }
}

/// The same attempts without a sandbox: they succeed, so an ineffective sandbox would be noticed.
#[test]
fn escape_attempts_succeed_without_a_sandbox() {
    let model = ModelServer::start();
    let ground = Ground::new(&model, "in_process", "workspace");
    let real: Vec<_> =
        SHELL.iter().filter(|attempt| matches!(attempt.kind, Kind::Real | Kind::Network)).collect();
    let failed: Vec<&str> =
        real.iter().filter(|attempt| !succeeds(&ground, attempt.command)).map(|a| a.name).collect();
    assert!(
        failed.len() * 5 <= real.len(),
        "{} of {} attempts prove nothing: {failed:?}",
        failed.len(),
        real.len()
    );
}

fn succeeds(ground: &Ground, command: &str) -> bool {
    let run = Command::new("/bin/sh")
        .args(["-c", &ground.fill(command)])
        .current_dir(ground.workspace())
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LAB_SECRET", CANARY)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&run.stdout).contains("ESCAPED")
}

/// A setup in which a command sleeps in the middle of a turn.
fn asleep(model: &ModelServer, isolation: &str) -> (Ground, std::process::Child) {
    let ground = Ground::new(model, isolation, "workspace");
    let command = ground.fill("setsid sleep 500.{mark} & sleep 501.{mark}");
    model.push(ReplyScript::new().call("nap", "shell", json!({ "command": command })));
    let asked =
        ground.home.command(&["agent", "-m", "sleep"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    until("both sleep", || marked_processes(&ground.mark).len() == 2);
    (ground, asked.unwrap())
}

#[test]
fn killed_daemon_leaves_no_programs_or_workers() {
    for isolation in ["in_process", "process"] {
        let model = ModelServer::start();
        let (mut ground, mut asked) = asleep(&model, isolation);
        ground.daemon.kill();
        until("nothing is left", || marked_processes(&ground.mark).is_empty());
        asked.wait().unwrap();
    }
}

#[test]
fn killed_worker_fails_only_its_own_call() {
    let model = ModelServer::start();
    let (ground, mut asked) = asleep(&model, "process");
    model.push(ReplyScript::reply("it was cut off"));
    model.push(ReplyScript::reply("I am well"));
    let threads = std::fs::read_dir(format!("/proc/{}/task", ground.daemon.pid())).unwrap().flatten();
    let children: String = threads
        .map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default())
        .collect();
    let workers: Vec<&str> = children.split_whitespace().collect();
    assert_eq!(workers.len(), 1, "the daemon has one child, the worker's supervisor: {children}");
    assert!(Command::new("kill").args(["-9", workers[0]]).status().unwrap().success());
    assert!(asked.wait().unwrap().success(), "the turn continues");
    until("nothing of it is left", || marked_processes(&ground.mark).is_empty());
    let record = &records(&ground)["nap"];
    assert!(record["text"].as_str().unwrap().contains("Whether it took effect is unknown"), "{record}");
    assert_eq!(record["meta"]["sandbox"]["facts"]["crashes"], 1, "{record}");
    let events = ground.home.run(&["events", "--json"]).stdout;
    assert!(events.contains("worker.crashed") && events.contains("worker_crash"), "{events}");
    let other = ground.home.run(&["agent", "--agent", "other", "-m", "how are you?"]);
    assert_eq!(other.stdout, "I am well\n", "{}", other.stderr);
}
