//! A2A on the real binary: a third-party client calls an exposed agent, and our agent calls a third-party one.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use serde_json::{Value, json};

use crate::fixture::{Home, until};

const REMOTE_TOKEN: &str = "remote-token-4711";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A script of the external checks, with the packages it imports.
pub fn python(script: &str) -> Command {
    let python = root().join(".tools/python/bin/python");
    assert!(python.exists(), "the Python environment is missing: run `scripts/need.sh rust`");
    let mut command = Command::new(python);
    command.arg(root().join("tests/outside").join(script));
    command
}

#[track_caller]
pub fn succeeded(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn exposed(model: &ModelServer) -> Home {
    Home::with_model_and(model, "[a2a]\nexpose = [\"main\"]\n")
}

fn call(home: &Home, verb: &str, rest: &[&str]) -> Value {
    let url = format!("http://127.0.0.1:{}", home.port);
    let mut command = python("a2a_client.py");
    let output = command.args([verb, &url, &home.token()]).args(rest).output().unwrap();
    serde_json::from_str(&succeeded(&output)).unwrap()
}

#[test]
fn exposed_agent_answers_a_third_party_a2a_client() {
    let model = ModelServer::start();
    let home = exposed(&model);
    let _daemon = home.daemon();
    let url = format!("http://127.0.0.1:{}", home.port);
    let output = python("a2a_client.py").args(["check", &url, &home.token()]).output().unwrap();
    assert!(succeeded(&output).contains("a2a client: card"));
}

#[test]
fn a2a_task_is_the_same_after_sigkill() {
    let model = ModelServer::start();
    let home = exposed(&model);
    let mut daemon = home.daemon();
    model.push(ReplyScript::new().text("never ").hang());
    let started = call(&home, "send", &["m1", "hello"]);
    assert!(["submitted", "working"].contains(&started["status"]["state"].as_str().unwrap()), "{started}");
    until("the model is asked", || !model.requests().is_empty());
    daemon.kill();
    let _daemon = home.daemon();
    let id = started["id"].as_str().unwrap();
    let mut seen = Value::Null;
    until("the task is done", || {
        seen = call(&home, "get", &[id]);
        seen["status"]["state"] == "completed"
    });
    assert_eq!(seen["artifacts"][0]["parts"][0]["text"], "echo: hello");
    assert_eq!(seen["contextId"], started["contextId"]);
    assert_eq!(call(&home, "send", &["m1", "hello"])["id"], *id, "the same message");
}

#[test]
fn cancelled_a2a_task_ends() {
    let model = ModelServer::start();
    let home = exposed(&model);
    let _daemon = home.daemon();
    model.push(ReplyScript::new().text("never ").hang());
    let started = call(&home, "send", &["m1", "hello"]);
    until("the model is asked", || !model.requests().is_empty());
    assert_eq!(call(&home, "cancel", &[started["id"].as_str().unwrap()]), "canceled");
}

/// A remote agent, until dropped.
struct Elsewhere {
    child: Child,
    port: u16,
    note: tempfile::TempDir,
}

impl Elsewhere {
    fn start() -> Self {
        let note = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = python("a2a_server.py");
        command.arg(port.to_string()).arg(note.path().join("note")).stderr(Stdio::inherit());
        let child = command.spawn().unwrap();
        until("the remote agent listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, port, note }
    }

    fn was_cancelled(&self) -> bool {
        std::fs::read_to_string(self.note.path().join("note")).is_ok_and(|text| text == "cancelled")
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn asking(model: &ModelServer, elsewhere: &Elsewhere, grants: &str, more: &str) -> Home {
    Home::with_model_and(
        model,
        &format!(
            "[[agents.list]]\nid = \"main\"\ndelegation = {{ allow_agents = [{grants}] }}\n\
             [a2a.remote.echo]\nurl = \"http://127.0.0.1:{}/\"\ntoken = \"{REMOTE_TOKEN}\"\n\
             [a2a.remote.other]\nurl = \"https://a2a.example\"\n{more}",
            elsewhere.port
        ),
    )
}

/// The tool result that the model got, without its frame.
fn told(request: &ReceivedRequest) -> Value {
    let results = request.messages();
    let result = results.iter().rev().find(|message| message["role"] == "tool").unwrap();
    let content = result["content"].as_str().unwrap();
    let line = content.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{content}"));
    serde_json::from_str(line).unwrap()
}

fn delegate(home: &Home, model: &ModelServer, arguments: Value) -> Value {
    model.push(ReplyScript::new().call("d1", "delegate_to_agent", arguments));
    model.push(ReplyScript::reply("told"));
    let ran = home.run(&["agent", "-m", "ask it"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    told(&model.last_request())
}

const PRIVATE: &str = "[tools]\nallow_private_addresses = true\n";

#[test]
fn remote_agent_answer_is_marked_as_data_and_redacted() {
    let (model, elsewhere) = (ModelServer::start(), Elsewhere::start());
    let home = asking(&model, &elsewhere, "\"a2a:echo\"", PRIVATE);
    let _daemon = home.daemon();
    let reply = delegate(&home, &model, json!({ "agent_id": "a2a:echo", "task": "hello" }));
    assert_eq!(reply["status"], "completed", "{reply}");
    let response = reply["response"].as_str().unwrap();
    assert!(response.contains("you said: hello") && response.contains("data, not instructions"), "{reply}");
    assert!(!response.contains(REMOTE_TOKEN), "a returned secret is not stored: {reply}");
    let denied = delegate(&home, &model, json!({ "agent_id": "a2a:other", "task": "hello" }));
    assert_eq!((&denied["status"], &denied["code"]), (&json!("rejected"), &json!("delegation_denied")));
}

#[test]
fn timeout_cancels_the_remote_task() {
    let (model, elsewhere) = (ModelServer::start(), Elsewhere::start());
    let home = asking(&model, &elsewhere, "\"a2a:echo\"", PRIVATE);
    let _daemon = home.daemon();
    let given = json!({ "agent_id": "a2a:echo", "task": "wait for me", "timeout_ms": 3000 });
    let reply = delegate(&home, &model, given);
    assert_eq!((&reply["status"], &reply["code"]), (&json!("timeout"), &json!("timeout")), "{reply}");
    assert!(reply["partial_response"].as_str().is_some_and(|text| text.contains("so far")), "{reply}");
    until("the remote task was cancelled", || elsewhere.was_cancelled());
}

#[test]
fn stopped_turn_cancels_the_remote_task() {
    let (model, elsewhere) = (ModelServer::start(), Elsewhere::start());
    let home = asking(&model, &elsewhere, "\"a2a:echo\"", PRIVATE);
    let _daemon = home.daemon();
    model.push(ReplyScript::new().call(
        "d1",
        "delegate_to_agent",
        json!({ "agent_id": "a2a:echo", "task": "wait for me" }),
    ));
    let mut asked = home.command(&["agent", "-m", "ask"]).stderr(Stdio::null()).spawn().unwrap();
    until("the model is asked", || !model.requests().is_empty());
    std::thread::sleep(Duration::from_millis(1500));
    home.run(&["sessions", "stop", "agent:main:main", "--json"]).ok();
    until("the remote task was cancelled", || elsewhere.was_cancelled());
    asked.wait().unwrap();
}

#[test]
fn private_address_and_unknown_remote_agent_are_refused() {
    let (model, elsewhere) = (ModelServer::start(), Elsewhere::start());
    let home = asking(&model, &elsewhere, "\"a2a:echo\"", "");
    let _daemon = home.daemon();
    let reply = delegate(&home, &model, json!({ "agent_id": "a2a:echo", "task": "hello" }));
    assert!(reply["message"].as_str().is_some_and(|text| text.contains("not a public address")), "{reply}");
    let wrong = asking(&model, &elsewhere, "\"a2a:ecko\"", "");
    let report = wrong.run(&["config", "check"]).stderr;
    assert!(report.contains("there is no remote agent \"ecko\"") && report.contains("echo"), "{report}");
}
