//! `polyclaw acp` with a third-party implementation of the editor's side.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use serde_json::{Value, json};

use crate::a2a::{python, succeeded};
use crate::fixture::{Home, until};

const ASKS: &str = "[agents.defaults.sandbox]\nmode = \"off\"\n";

fn editor(home: &Home, verb: &str) -> String {
    let mut command = python("acp_client.py");
    let command = command.args([env!("CARGO_BIN_EXE_polyclaw"), verb]).env("POLYCLAW_HOME", home.path());
    succeeded(&command.output().unwrap())
}

#[test]
fn acp_editor_prompts_an_agent_and_reloads_the_session() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    assert!(editor(&home, "plain").contains("acp client: initialize"));
}

/// Runs a command, then reports it.
fn obey(request: &ReceivedRequest) -> ReplyScript {
    let asked = request.last_user_text();
    let is_answered = request.messages().last().is_some_and(|message| message["role"] == "tool");
    match () {
        () if asked.contains("wait") => ReplyScript::new().text("thinking ").hang(),
        () if is_answered => ReplyScript::reply("it ran, or not"),
        () => ReplyScript::new().call("c1", "shell", json!({ "command": "echo ran" })),
    }
}

#[test]
fn acp_editor_decides_tool_approvals_and_cancels_turns() {
    let model = ModelServer::start();
    model.answer_with(obey);
    let home = Home::with_model_and(&model, ASKS);
    let _daemon = home.daemon();
    assert!(editor(&home, "tools").contains("permission given and refused, cancel"));
}

/// An editor that sends each line when the test says so.
struct Lines {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Lines {
    fn of(home: &Home) -> Self {
        let mut command = home.command(&["acp"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    fn call(&mut self, id: u64, method: &str, params: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "it ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Reads the agent's text until it contains this.
    fn hear(&mut self, words: &str) -> String {
        let mut text = String::new();
        while !text.contains(words) {
            text += spoken(&self.line()).unwrap_or_default();
        }
        text
    }

    /// The response to a call, and the agent's text before it.
    fn answer(&mut self, id: Value) -> (Value, String) {
        let mut text = String::new();
        loop {
            let line = self.line();
            if let Some(words) = spoken(&line) {
                text += words;
            } else if line["id"] == id && line.get("method").is_none() {
                return (line, text);
            }
        }
    }

    fn session(&mut self) -> String {
        self.call(1, "session/new", json!({ "cwd": "/tmp", "mcpServers": [] }));
        self.answer(json!(1)).0["result"]["sessionId"].as_str().unwrap().to_owned()
    }
}

/// The agent's text in a line.
fn spoken(line: &Value) -> Option<&str> {
    let update = &line["params"]["update"];
    update["content"]["text"].as_str().filter(|_| update["sessionUpdate"] == "agent_message_chunk")
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

#[test]
fn acp_editor_gets_the_answer_from_a_restarted_daemon() {
    let model = ModelServer::start();
    let text: String = (0..120).map(|n| format!("word {n}, ")).chain(["the end.".to_owned()]).collect();
    let half = &text[..text.find("word 60,").unwrap()];
    model.push(ReplyScript::new().chunks(half, 60, Duration::ZERO).hang());
    // Slow enough that the editor reconnects halfway.
    model.push(ReplyScript::new().chunks(&text, 120, Duration::from_millis(40)));
    let home = Home::with_model(&model);
    let mut daemon = home.daemon();
    let mut editor = Lines::of(&home);
    let session = editor.session();
    editor.call(2, "session/prompt", prompt(&session, "tell me"));
    let before = editor.hear("word 5,");
    daemon.kill();
    let _daemon = home.daemon();
    let (answer, after) = editor.answer(json!(2));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(before + &after, text, "each word once");
    assert_eq!(home.transcript(&session).len(), 2, "it was called once");
}

#[test]
fn changed_answer_after_a_crash_is_emitted_once() {
    let model = ModelServer::start();
    model.push(ReplyScript::new().text("half ").hang());
    model.push(ReplyScript::new().chunks("all of it, in the end", 5, Duration::from_millis(500)));
    let home = Home::with_model(&model);
    let mut daemon = home.daemon();
    let mut editor = Lines::of(&home);
    let session = editor.session();
    editor.call(2, "session/prompt", prompt(&session, "tell me"));
    until("the model is asked", || model.request_count() == 1);
    daemon.kill();
    let _daemon = home.daemon();
    let (answer, text) = editor.answer(json!(2));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let heard = text.strip_suffix("all of it, in the end").expect(&text).trim_end();
    assert!("half".starts_with(heard), "{text}");
}

#[test]
fn cancel_right_after_prompt_stops_the_turn() {
    let model = ModelServer::start();
    model.answer_with(|_| ReplyScript::new().text("thinking ").hang());
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    let mut editor = Lines::of(&home);
    let session = editor.session();
    for id in 2..7 {
        editor.call(id, "session/prompt", prompt(&session, "think"));
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
        editor.say(&cancel.to_string());
        let (answer, _) = editor.answer(json!(id));
        assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    }
}

#[test]
fn too_large_acp_line_is_an_error_and_session_continues() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    let mut editor = Lines::of(&home);
    editor.say(&"x".repeat(33 * 1024 * 1024));
    assert_eq!(editor.answer(Value::Null).0["error"]["code"], -32600);
    editor.session();
}
