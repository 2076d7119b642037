//! An instance as an MCP server, called by a third-party client.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use polyclaw_testkit::model_server::ModelServer;
use serde_json::{Value, json};

use crate::fixture::Home;
use crate::mcp::{everything, node};

/// The output of the reference client for a server: a URL with a token, or a program with arguments.
fn client(home: &Home, place: &str, second: &str, calls: &Value) -> Command {
    everything();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/client.mjs");
    let mut command = Command::new(node());
    command.arg(script).args([place, second]).arg(calls.to_string()).env("POLYCLAW_HOME", home.path());
    command
}

fn told(ran: &std::process::Output) -> Value {
    let text = String::from_utf8_lossy(&ran.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&ran.stderr)))
}

fn serve() -> (&'static str, String) {
    (env!("CARGO_BIN_EXE_polyclaw"), json!(["mcp", "serve"]).to_string())
}

fn text(body: &Value, n: usize) -> &str {
    body["results"][n]["text"].as_str().unwrap()
}

#[test]
fn mcp_server_answers_a_third_party_client() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    let (program, arguments) = serve();
    let calls = |session: &str| {
        json!([
            ["list_agents", {}],
            ["ask_agent", { "message": "hello", "session": session }],
            ["send_message", { "message": "again", "session": session, "idempotency_key": "k" }],
            ["send_message", { "message": "again", "session": session, "idempotency_key": "k" }],
            ["list_sessions", { "limit": 10 }],
            ["read_history", { "session": session }],
            ["read_history", { "session": "agent:main:none" }],
            ["ask_agent", { "mesage": "typo" }],
            ["wait_for_turn", { "turn_id": "none" }],
            ["delete_everything", {}],
        ])
    };
    let (url, token) = (format!("http://127.0.0.1:{}/mcp", home.port), home.token());
    for (place, second, session) in
        [(program, arguments.as_str(), "agent:main:stdio"), (url.as_str(), token.as_str(), "agent:main:http")]
    {
        let body = told(&client(&home, place, second, &calls(session)).output().unwrap());
        assert_eq!(body["server"]["name"], "polyclaw");
        let tools: Vec<&str> =
            body["tools"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(tools[..3], ["ask_agent", "send_message", "wait_for_turn"]);
        assert_eq!(tools.len(), 11, "{tools:?}");
        let results = body["results"].as_array().unwrap();
        let failed: Vec<bool> = results.iter().map(|one| one["isError"] == true).collect();
        assert_eq!(failed, [false, false, false, false, false, false, true, true, true, true], "{body}");
        assert!(text(&body, 0).contains("\"agent_id\": \"main\""));
        assert_eq!(text(&body, 1), "echo: hello");
        let receipt = |n| serde_json::from_str::<Value>(text(&body, n)).unwrap();
        assert_eq!(receipt(2)["turn_id"], receipt(3)["turn_id"], "the same message");
        assert_eq!((&receipt(2)["duplicate"], &receipt(3)["duplicate"]), (&json!(false), &json!(true)));
        assert!(text(&body, 4).contains(session), "{}", text(&body, 4));
        assert!(text(&body, 5).contains("echo: hello"), "{}", text(&body, 5));
        assert!(text(&body, 6).contains("[unknown_session]") && text(&body, 7).contains("mesage"), "{body}");
        assert!(text(&body, 8).contains("[unknown_turn]"), "{body}");
        assert!(text(&body, 9).contains("unknown tool"), "{body}");
        let turn = receipt(2)["turn_id"].clone();
        let wait = json!([["wait_for_turn", { "turn_id": turn }]]);
        let waited = self::told(&client(&home, place, second, &wait).output().unwrap());
        assert_eq!(text(&waited, 0), "echo: again");
    }
    let refused = client(&home, &url, "wrong", &json!([])).output().unwrap();
    assert!(!refused.status.success(), "{refused:?}");
}

#[test]
fn mcp_client_creates_and_claims_and_completes_team_tasks() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    home.run(&["agent", "-m", "hello"]);
    home.run(&["teams", "create", "crew", "--description", "tests", "--json"]).ok();
    let calls = json!([
        ["list_teams", {}],
        ["create_task", { "team": "crew", "subject": "paint the door" }],
        ["create_task", { "team": "crew", "subject": "hang the door", "depends_on": [1] }],
        ["claim_task", { "team": "crew", "task_id": 2 }],
        ["claim_task", { "team": "crew", "task_id": 1 }],
        ["complete_task", { "team": "crew", "task_id": 1, "summary": "green" }],
        ["list_tasks", { "team": "crew" }],
        ["list_tasks", { "team": "crew", "all": true, "status": "completed" }],
        ["claim_task", { "team": "nobody", "task_id": 1 }],
    ]);
    let (url, token) = (format!("http://127.0.0.1:{}/mcp", home.port), home.token());
    let body = told(&client(&home, &url, &token, &calls).output().unwrap());
    let read = |n: usize| serde_json::from_str::<Value>(text(&body, n)).unwrap_or_else(|_| panic!("{body}"));
    assert_eq!(read(0)[0]["name"], "crew");
    assert_eq!((&read(1)["task_id"], &read(2)["task_id"]), (&json!(1), &json!(2)));
    assert_eq!(body["results"][3]["isError"], true, "its dependency is not completed: {body}");
    assert_eq!((&read(4)["status"], &read(5)["unblocked"]), (&json!("claimed"), &json!([2])));
    let numbers =
        |n| read(n).as_array().unwrap().iter().map(|task| task["task_id"].clone()).collect::<Vec<_>>();
    assert_eq!((numbers(6), numbers(7)), (vec![json!(2)], vec![json!(1)]));
    assert!(text(&body, 8).contains("[unknown_team]"), "{body}");
}

#[test]
fn mcp_serve_may_start_before_the_daemon() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let calls = json!([["list_agents", {}], ["sign", {}], ["ask_agent", { "message": "hello" }]]);
    let (program, arguments) = serve();
    let mut command = client(&home, program, &arguments, &calls);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = piped.spawn().unwrap();
    let mut signs = std::io::BufReader::new(running.stderr.take().unwrap()).lines();
    assert!(
        signs.any(|line| line.unwrap() == "waiting"),
        "a missing daemon is a tool error and does not end the server"
    );
    let _daemon = home.daemon();
    running.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let body = told(&running.wait_with_output().unwrap());
    assert!(text(&body, 0).contains("[unavailable]"), "{body}");
    assert_eq!(text(&body, 1), "echo: hello");
}
