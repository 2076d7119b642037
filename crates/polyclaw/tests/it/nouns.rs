//! The commands of each noun, as people and machines use them.

use std::time::Duration;

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::json;

use crate::fixture::{Home, until};

const MAIN: &str = "agent:main:main";

#[test]
fn agents_are_listed_created_shown_and_deleted() {
    let home = Home::new();
    home.write_config("[[agents.list]]\nid = \"ops\"\nname = \"Operations\"\n");
    let _daemon = home.daemon();
    let listed = home.run(&["agents", "list", "--json"]).ok();
    assert_eq!(
        (&listed["agents"][0]["agent_id"], &listed["agents"][0]["source"]),
        (&json!("ops"), &json!("config"))
    );
    home.run(&["agents", "add", "helper", "--model", "lab/demo", "--prompt", "Help.", "--json"]).ok();
    assert_eq!(home.run(&["agents", "show", "helper", "--json"]).ok()["defaults"]["model"], "lab/demo");
    let table = home.run(&["agents"]).stdout;
    assert!(table.contains("helper") && table.contains("Operations"), "{table}");
    assert_eq!(home.run(&["agents", "add", "helper", "--json"]).code, 4);
    home.run(&["agents", "delete", "helper", "--json"]).ok();
    assert_eq!(home.run(&["agents", "show", "helper", "--json"]).error(), (3, "unknown_agent".into()));
}

#[test]
fn default_agent_without_config_entry_is_edited_by_command() {
    let home = Home::new();
    home.write_config("[agents.defaults]\ntemperature = 0.25\n");
    let show = || home.run(&["agents", "show", "main", "--json"]).ok();
    {
        let _daemon = home.daemon();
        assert_eq!(show()["source"], "default");
        let patch = r#"{"description":"Plans the week","defaults":{"system_prompt":"Be brief."}}"#;
        home.run(&["agents", "set", "main", patch, "--json"]).ok();
        assert_eq!(home.run(&["agents", "delete", "main", "--json"]).error(), (4, "default_agent".into()));
    }
    home.write_config("[agents.defaults]\ntemperature = 0.75\n");
    let daemon = home.daemon();
    let kept = show();
    assert_eq!((&kept["description"], &kept["source"]), (&json!("Plans the week"), &json!("default")));
    assert_eq!(kept["defaults"]["system_prompt"], "Be brief.");
    assert_eq!(kept["defaults"]["temperature"], 0.75, "without an API change it follows the file");
    home.write_config("[[agents.list]]\nid = \"main\"\ndescription = \"Of the file\"\n");
    daemon.signal("HUP");
    until("the file is loaded", || show()["description"] == "Of the file");
    assert_eq!(show()["source"], "config");
    let refused = home.run(&["agents", "set", "main", r#"{"name":"x"}"#, "--json"]);
    assert_eq!(refused.error(), (4, "agent_in_config".into()));
}

#[test]
fn hangup_signal_reloads_the_config() {
    let home = Home::new();
    home.write_config("");
    let daemon = home.daemon();
    home.write_config("[[agents.list]]\nid = \"fresh\"\n");
    daemon.signal("HUP");
    until("the new agent exists", || home.run(&["agents", "show", "fresh"]).code == 0);
    assert_eq!(home.run(&["agents", "show", "main"]).code, 3, "the config no longer contains it");
    home.write_config("nonsense\n");
    daemon.signal("HUP");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(home.run(&["agents", "show", "fresh"]).code, 0, "a bad config changes nothing");
}

#[test]
fn command_without_own_daemon_ignores_foreign_daemon_on_port() {
    let (home, other) = (Home::new(), Home::new());
    home.write_config("");
    let text = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    other.write_config("");
    std::fs::write(other.path().join("config.toml"), text).unwrap();
    let mut serves = home.daemon();
    let refused = other.run(&["status", "--json"]);
    assert_eq!(refused.error(), (5, "unavailable".into()));
    assert!(refused.stdout.contains("no daemon runs on this home"), "{}", refused.stdout);
    serves.kill();
}

#[test]
fn agent_command_accepts_message_as_argument() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    assert!(home.run(&["agent", "hello there"]).stdout.contains("echo: hello there"));
    assert_eq!(home.run(&["agent", "--json"]).code, 2, "a message is required");
}

#[test]
fn sessions_are_listed_shown_exported_reset_and_deleted() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    home.run(&["agent", "-m", "first"]);
    let sessions = home.run(&["sessions", "--json"]).ok();
    assert_eq!(sessions["sessions"][0]["session_key"], MAIN);
    let shown = home.run(&["sessions", "show", MAIN]).stdout;
    assert!(shown.contains("echo: first"), "{shown}");
    assert_eq!(home.transcript(MAIN).len(), 2);
    assert!(home.run(&["sessions", "tree", MAIN]).stdout.contains(&format!(" {MAIN} · idle")));
    home.run(&["sessions", "new", MAIN, "--json"]).ok();
    assert!(home.transcript(MAIN).is_empty());
    home.run(&["sessions", "delete", MAIN, "--json"]).ok();
    assert_eq!(home.run(&["sessions", "show", MAIN, "--json"]).error(), (3, "unknown_session".into()));
    assert_eq!(home.run(&["sessions", "show", "no key", "--json"]).code, 2);
}

#[test]
fn running_turn_is_stopped_by_command() {
    let model = ModelServer::start();
    model.push(ReplyScript::new().hang());
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    let mut asked =
        home.command(&["agent", "-m", "hi", "--json"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    until("the model is asked", || model.request_count() == 1);
    home.run(&["sessions", "stop", MAIN, "--json"]).ok();
    assert_eq!(asked.wait().unwrap().code(), Some(1));
}

#[test]
fn shell_call_from_command_line_waits_for_approval() {
    let model = ModelServer::start();
    model.push(ReplyScript::new().call("c1", "shell", json!({ "command": "echo ran" })));
    model.push(ReplyScript::reply("it ran"));
    let home = Home::with_model_and(&model, "[agents.defaults.sandbox]\nmode = \"off\"\n");
    let _daemon = home.daemon();
    let asked = home
        .command(&["agent", "-m", "run it", "--wait-for-approval"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut id = String::new();
    until("an approval is requested", || {
        let waiting = home.run(&["approvals", "list", "--json"]).ok();
        waiting["approvals"][0]["id"].as_str().unwrap_or_default().clone_into(&mut id);
        !id.is_empty()
    });
    assert!(home.run(&["approvals"]).stdout.contains("echo ran"));
    home.run(&["approvals", "approve", &id, "--json"]).ok();
    assert_eq!(String::from_utf8(asked.wait_with_output().unwrap().stdout).unwrap(), "it ran\n");
    assert_eq!(home.run(&["approvals", "deny", &id, "--json"]).code, 4, "answered once");
    assert_eq!(home.run(&["approvals", "approve", "nobody", "--json"]).code, 3);
}

#[test]
fn models_and_usage_and_events_and_status_commands_work() {
    let model = ModelServer::start();
    model.set_models(["demo"]);
    model.push(ReplyScript::reply("x").usage(11, 4));
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    home.run(&["agent", "-m", "hi"]);
    assert_eq!(home.run(&["models", "--json"]).ok()["default_model"], "lab/demo");
    assert!(home.run(&["models", "status"]).stdout.starts_with("lab/demo"));
    let usage = home.run(&["usage", "--by", "model", "--json"]).ok();
    assert_eq!(
        (&usage["totals"][0]["group"], &usage["totals"][0]["input_tokens"]),
        (&json!("lab/demo"), &json!(11))
    );
    assert_eq!(home.run(&["usage", "--window", "1y", "--json"]).code, 2);
    let status = home.run(&["status", "--json"]).ok();
    assert_eq!((&status["health"]["status"], &status["sessions"]), (&json!("ok"), &json!(1)));
    assert!(home.run(&["events", "--json"]).ok()["events"].is_array());
    assert!(home.run(&["outbox", "--json"]).ok()["outbox"].is_array());
    assert_eq!(home.run(&["outbox", "resend", "none", "--json"]).error(), (3, "unknown_outbox".into()));
}

#[test]
fn doctor_reports_problems_and_fixes_some() {
    use std::os::unix::fs::PermissionsExt;
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    let checks = home.run(&["doctor", "--json"]).ok();
    let verdict = |name: &str| {
        let found = checks["checks"].as_array().unwrap().iter().find(|check| check["name"] == name);
        found.unwrap()["verdict"].as_str().unwrap().to_owned()
    };
    for name in ["disk", "clock", "token", "config", "sqlite", "database", "daemon", "model"] {
        assert_eq!(verdict(name), "ok", "{name}: {checks}");
    }
    let token = home.path().join("token");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ill = home.run(&["doctor"]);
    assert!(ill.code == 1 && ill.stdout.contains("other users can read it"), "{}", ill.stdout);
    let output = home.run(&["doctor", "--json"]);
    assert_eq!(output.error(), (1, "unhealthy".into()));
    let body: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let checks = body["error"]["details"]["checks"].as_array().unwrap().clone();
    let of = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap()["verdict"].clone();
    assert_eq!(
        (of("token"), of("database")),
        ("fail".into(), "ok".into()),
        "the whole list, not only the failures"
    );
    assert_eq!(home.run(&["doctor", "--fix"]).code, 0);
}

#[test]
fn config_show_masks_secrets() {
    let home = Home::new();
    home.write_config("[providers.openai]\napi_key = \"canary-4711\"\n");
    let shown = home.run(&["config", "show"]).stdout + &home.run(&["config", "show", "--json"]).stdout;
    assert!(shown.contains("***") && !shown.contains("canary"), "{shown}");
    assert!(home.run(&["config", "path"]).stdout.trim().ends_with("home/config.toml"));
    assert!(home.run(&["config", "schema"]).stdout.contains("\"Polyclaw config\""));
    assert!(home.run(&["completions", "bash"]).stdout.contains("polyclaw"));
}

#[test]
fn session_tail_ends_with_an_error_when_daemon_dies() {
    use std::io::{BufRead, BufReader};
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let mut daemon = home.daemon();
    assert_eq!(
        home.run(&["sessions", "tail", "agent:main:none", "--json"]).error(),
        (3, "unknown_session".into())
    );
    assert_eq!(home.run(&["sessions", "tail", "rubbish", "--json"]).error(), (2, "invalid_parameter".into()));
    home.run(&["agent", "-m", "hi"]);
    let mut command = home.command(&["sessions", "tail", "agent:main:main", "--json"]);
    command.stdout(std::process::Stdio::piped());
    let mut tail = command.spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("stream.opened"));
    daemon.kill();
    let last = lines.last().unwrap().unwrap();
    assert!(last.contains("connection_lost"), "{last}");
    assert_eq!(tail.wait().unwrap().code(), Some(5));
    assert_eq!(
        home.run(&["sessions", "tail", "agent:main:main", "--json"]).error(),
        (5, "unavailable".into())
    );
}

#[test]
fn tools_explain_prints_a_change_that_grants_the_tool() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    home.run(&["agents", "add", "ops", "--json"]).ok();
    let body = home.run(&["tools", "explain", "shell", "--agent", "ops", "--json"]).ok();
    assert_eq!((&body["allowed"], &body["rule"]), (&json!(false), &json!("risk.not_granted")));
    let line = body["change"].as_str().unwrap();
    // Running the printed line changes the decision.
    let patch = line.strip_prefix("polyclaw agents set ops '").unwrap().strip_suffix('\'').unwrap();
    home.run(&["agents", "set", "ops", patch, "--json"]).ok();
    let body = home.run(&["tools", "explain", "shell", "--agent", "ops", "--json"]).ok();
    assert_eq!((&body["allowed"], &body["asks"]), (&json!(true), &json!(false)), "the shell is sandboxed");
    let file = std::fs::read_to_string(home.path().join("workspace/agents/ops/agent.toml")).unwrap();
    assert!(file.contains("allow = [") && file.contains("\"shell\""), "{file}");
    let shown = home.run(&["tools", "explain", "shell", "--agent", "ops"]).stdout;
    assert!(shown.contains("ops may use shell") && shown.contains("agent.allow"), "{shown}");
    assert!(home.run(&["tools"]).stdout.contains("read_file"));
    assert_eq!(home.run(&["tools", "explain", "nothing", "--json"]).error(), (3, "unknown_tool".into()));
    assert_eq!(home.run(&["agents", "set", "ops", "nonsense", "--json"]).code, 2);
    let bad = home.run(&["agents", "set", "ops", "{\"policy\":{\"tools\":{\"deny\":[\"shel\"]}}}", "--json"]);
    assert_eq!(bad.error().1, "invalid_agent");
    home.run(&["agents", "delete", "ops", "--json"]).ok();
    assert!(!home.path().join("workspace/agents/ops").exists());
}

#[test]
fn route_explain_follows_config_reload() {
    let home = Home::new();
    let config = |agent: &str| {
        format!(
            "[session]\ndm_scope = \"per-channel-peer\"\n\
             [channels.telegram.default]\nbot_token = \"1:t\"\napi_url = \"http://127.0.0.1:9\"\ngroups = [\"-7\"]\n\
             [agents]\ndefault = \"main\"\n[[agents.list]]\nid = \"main\"\n[[agents.list]]\nid = \"ops\"\n\
             [[bindings]]\nagent_id = \"{agent}\"\nmatch = {{ channel = \"telegram\", peer = {{ kind = \"group\", id = \"-7\" }} }}\n"
        )
    };
    home.write_config(&config("ops"));
    let daemon = home.daemon();
    let explain =
        ["route", "explain", "--channel", "telegram", "--kind", "group", "--peer", "-7", "--mentioned"];
    let text = home.run(&explain).stdout;
    assert!(text.contains("decided by binding, best tier peer"), "{text}");
    assert!(text.contains("session    agent:ops:telegram:group:-7"), "{text}");
    home.write_config(&config("main"));
    daemon.signal("HUP");
    until("the new binding applies", || home.run(&explain).stdout.contains("agent:main:telegram:group:-7"));
    assert_eq!(
        home.run(&["route", "explain", "--channel", "telegram", "--json"]).error(),
        (2, "usage".into())
    );
    assert_eq!(home.run(&["pairing", "list"]).stdout, "No pairings.\n");
    assert_eq!(
        home.run(&["pairing", "approve", "AAAA2222", "--json"]).error(),
        (3, "unknown_pairing".into())
    );
    assert_eq!(home.run(&["pairing", "revoke", "telegram", "--json"]).code, 2);
    assert_eq!(home.run(&["sessions", "cleanup", "--dry-run"]).stdout, "No unused sessions.\n");
}

#[test]
fn teams_are_created_filled_shown_and_shut_down() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    assert!(home.run(&["teams"]).stdout.contains("No teams"));
    home.run(&["teams", "create", "site", "--description", "a page", "--json"]).ok();
    home.run(&["teams", "join", "site", "ann", "--json"]).ok();
    assert_eq!(home.run(&["teams", "task", "add", "site", "Draw", "--json"]).ok()["task_id"], 1);
    assert_eq!(
        home.run(&["teams", "task", "add", "site", "Hang", "--after", "1", "--json"]).ok()["task_id"],
        2
    );
    assert_eq!(
        home.run(&["teams", "send", "site", "all", "Begin.", "--json"]).ok()["recipients"],
        json!(["ann", "lead"])
    );
    home.run(&["teams", "join", "site", "bob", "--plan-first", "--json"]).ok();
    assert!(home.run(&["teams", "plan", "site", "bob"]).stdout.contains("has not submitted a plan yet"));
    assert!(home.run(&["teams", "plan", "site", "ann"]).stdout.contains("needs no approval"));
    let early = home.run(&["teams", "plan", "site", "bob", "--approve", "--json"]);
    assert_eq!(early.error().1, "unknown_request");
    let shown = home.run(&["teams", "show", "site"]).stdout;
    assert!(shown.contains("plan required"), "{shown}");
    assert!(shown.contains("ann") && shown.contains("Hang") && shown.contains("1 blocked"), "{shown}");
    assert!(
        home.path().join("teams/site/ledger.db").exists()
            && home.path().join("teams/site/config.json").exists()
    );
    assert_eq!(home.run(&["teams", "show", "none", "--json"]).error(), (3, "unknown_team".into()));
    assert_eq!(home.run(&["teams", "shutdown", "site", "--force", "--json"]).ok()["status"], "shutdown");
    assert!(!home.path().join("teams/site").exists());
}
