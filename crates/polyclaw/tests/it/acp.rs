//! `polyclaw acp` with an editor's half of the protocol that nobody here wrote.

use polyclaw_testkit::model_server::{ModelServer, Request, Script};
use serde_json::json;

use crate::a2a::{python, succeeded};
use crate::fixture::Home;

const ASKS: &str = "[agents.defaults.sandbox]\nmode = \"off\"\n";

fn editor(home: &Home, verb: &str) -> String {
    let mut command = python("acp_client.py");
    let command = command.args([env!("CARGO_BIN_EXE_polyclaw"), verb]).env("POLYCLAW_HOME", home.path());
    succeeded(&command.output().unwrap())
}

#[test]
fn an_editor_talks_to_an_agent_and_finds_the_conversation_again() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    assert!(editor(&home, "plain").contains("acp client: initialize"));
}

/// Runs a command where it is told to, and then says so.
fn obey(request: &Request) -> Script {
    let asked = request.last_user_text();
    let is_answered = request.messages().last().is_some_and(|message| message["role"] == "tool");
    match () {
        () if asked.contains("wait") => Script::new().text("thinking ").hang(),
        () if is_answered => Script::reply("it ran, or not"),
        () => Script::new().call("c1", "shell", json!({ "command": "echo ran" })),
    }
}

#[test]
fn the_person_at_the_editor_decides_about_tools_and_stops_turns() {
    let model = ModelServer::start();
    model.answer(obey);
    let home = Home::with_model_and(&model, ASKS);
    let _daemon = home.daemon();
    assert!(editor(&home, "tools").contains("permission given and refused, cancel"));
}
