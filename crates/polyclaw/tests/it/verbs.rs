//! Commands that change an instance: cron jobs, bindings, identities, and its log.

use polyclaw_testkit::model_server::ModelServer;
use serde_json::{Value, json};

use crate::fixture::{Home, ran, until};

#[test]
fn cron_job_is_added_edited_run_and_removed_across_restart() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let mut daemon = home.daemon();
    let add = [
        "cron",
        "add",
        "tick",
        "--schedule",
        "every 12h",
        "--message",
        "look",
        "--catch-up",
        "once",
        "--json",
    ];
    assert_eq!(home.run(&add).ok()["source"], "api");
    assert_eq!(home.run(&add).error(), (4, "cron_job_exists".into()));
    assert_eq!(
        home.run(&["cron", "add", "no", "--schedule", "soon", "--message", "x", "--json"]).error(),
        (2, "invalid_cron_job".into())
    );
    daemon.kill();
    let _daemon = home.daemon();
    assert_eq!(home.run(&["cron", "edit", "tick", "--disable", "--json"]).ok()["enabled"], false);
    assert_eq!(home.run(&["cron", "edit", "tick"]).code, 2, "no setting is given");
    let listed = home.run(&["cron"]).stdout;
    assert!(listed.contains("tick") && listed.contains("disabled"), "{listed}");
    assert_eq!(home.run(&["cron", "run", "tick", "--json"]).ok()["session_key"], "cron:tick");
    until("the agent responds", || home.transcript("cron:tick").len() == 2);
    assert!(home.run(&["cron", "show", "tick"]).stdout.contains("catch up   once"));
    home.run(&["cron", "remove", "tick", "--json"]).ok();
    assert_eq!(home.run(&["cron", "show", "tick", "--json"]).error(), (3, "unknown_cron_job".into()));
}

#[test]
fn bind_and_unbind_edit_the_config_and_keep_comments() {
    let home = Home::new();
    home.write_config(
        "[session]\ndm_scope = \"per-channel-peer\"\n# Who there is.\n[[agents.list]]\nid = \"main\"\ndefault = true\n[[agents.list]]\nid = \"ops\" # looks after servers\n\
         [channels.telegram.main]\nbot_token = \"1:a\"\napi_url = \"http://127.0.0.1:9\"\n",
    );
    let _daemon = home.daemon();
    let bind =
        ["agents", "bind", "ops", "--channel", "telegram", "--kind", "group", "--peer", "-7", "--json"];
    assert_eq!(home.run(&bind).ok()["outcome"], "reloaded");
    assert_eq!(home.run(&bind).error(), (4, "binding_exists".into()));
    let listed = home.run(&["agents", "list", "--bindings"]).stdout;
    assert!(listed.contains("telegram, group -7"), "{listed}");
    let explain = ["route", "explain", "--channel", "telegram", "--kind", "group", "--peer", "-7", "--json"];
    assert_eq!(home.run(&explain).ok()["agent_id"], "ops", "it works immediately");
    let bad = home.run(&["agents", "bind", "ops", "--channel", "telegram", "--account", "none", "--json"]);
    assert_eq!(bad.error().1, "bad_config");
    home.run(&["agents", "set-identity", "ops", "--emoji", "🛠", "--json"]).ok();
    assert_eq!(home.run(&["agents", "show", "ops", "--json"]).ok()["identity"]["emoji"], "🛠");
    let unbind = ["agents", "unbind", "ops", "--all", "--json"];
    home.run(&unbind).ok();
    assert_eq!(home.run(&unbind).error(), (3, "unknown_binding".into()));
    let text = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    assert!(text.contains("# Who there is.") && text.contains("# looks after servers"), "{text}");
    assert!(!text.contains("bindings"), "{text}");
}

#[test]
fn duplicate_peer_binding_is_refused_and_unbind_edits_current_file() {
    let home = Home::new();
    home.write_config(
        "[agents]\nlist = [{ id = \"main\", default = true }, { id = \"ops\" }]\n\
         [[bindings]]\nagent_id = \"main\"\nmatch = { channel = \"telegram\", peer = { kind = \"dm\", id = \"1\" } }\n",
    );
    let _daemon = home.daemon();
    let verb = |verb, peer, kind: &[&str]| {
        let agent = if peer == "1" { "main" } else { "ops" };
        let notice = ["agents", verb, agent, "--channel", "telegram", "--peer", peer, "--json"];
        home.run(&[&notice, kind].concat())
    };
    assert_eq!(verb("bind", "1", &[]).error(), (4, "binding_exists".into()), "`dm` says the same");
    verb("bind", "2", &[]).ok();
    assert_eq!(verb("bind", "2", &["--kind", "dm"]).error(), (4, "binding_exists".into()));
    // Edited by hand, without a reload.
    let path = home.path().join("config.toml");
    let added = "[[bindings]]\nagent_id = \"main\"\nmatch = { channel = \"telegram\", peer = { kind = \"group\", id = \"3\" } }\n";
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("[[bindings]]", &format!("{added}[[bindings]]"), 1)).unwrap();
    verb("unbind", "2", &[]).ok();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"1\"") && text.contains("\"3\"") && !text.contains("\"2\""), "{text}");
    assert_eq!(verb("unbind", "2", &[]).error(), (3, "unknown_binding".into()));
}

#[test]
fn locked_config_is_not_changed() {
    let home = Home::new();
    home.write_config("");
    let lock = polyclaw_control::InstancePaths::from_folder(home.path()).try_lock().unwrap();
    assert!(lock.is_some());
    let bind = ["agents", "bind", "main", "--channel", "telegram", "--json"];
    assert_eq!(home.run(&bind).error(), (5, "instance_busy".into()));
    drop(lock);
    assert_eq!(home.run(&bind).ok()["outcome"], "saved");
}

#[test]
fn config_change_refused_by_daemon_is_rolled_back() {
    let home = Home::new();
    home.write_config("");
    let _daemon = home.daemon();
    // Only the process that changes the config has the variable.
    home.write_config("[providers.lab]\nkind = \"openai\"\napi_key = \"env:LAB_KEY\"\nmodels = [\"demo\"]\n");
    let path = home.path().join("config.toml");
    let before = std::fs::read_to_string(&path).unwrap();
    let mut command = home.command(&["agents", "bind", "main", "--channel", "telegram", "--json"]);
    command.env("LAB_KEY", "sk-1");
    let refused = ran(command);
    let text = &refused.stdout;
    assert!(refused.code != 0 && !text.contains("nothing was written"), "the daemon rejects it: {text}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn empty_url_variable_is_ignored() {
    let home = Home::new();
    home.write_config("");
    let mut command = home.command(&["agents", "bind", "main", "--channel", "telegram", "--json"]);
    command.env("POLYCLAW_URL", "");
    assert_eq!(ran(command).ok()["outcome"], "saved");
}

#[test]
fn agent_with_cron_jobs_is_deleted_only_with_force() {
    let home = Home::new();
    home.write_config("");
    let _daemon = home.daemon();
    home.run(&["agents", "add", "ops", "--json"]).ok();
    home.run(&["agents", "set-identity", "ops", "--name", "Olga", "--json"]).ok();
    assert!(home.run(&["agents", "list", "--tree"]).stdout.contains("ops"));
    let job = ["cron", "add", "tick", "--schedule", "every 1h", "--agent", "ops", "--message", "x", "--json"];
    home.run(&job).ok();
    assert_eq!(home.run(&["agents", "delete", "ops", "--json"]).error(), (4, "agent_in_use".into()));
    home.run(&["agents", "delete", "ops", "--force", "--json"]).ok();
    assert_eq!(home.run(&["cron", "--json"]).ok()["cron"], json!([]));
}

#[test]
fn sessions_are_filtered_by_agent_and_status_deep_probes_providers() {
    let model = ModelServer::start();
    model.set_models(["demo"]);
    let home = Home::with_model(&model);
    let _daemon = home.daemon();
    home.run(&["agent", "-m", "first"]);
    assert_eq!(
        home.run(&["sessions", "--agent", "main", "--json"]).ok()["sessions"].as_array().unwrap().len(),
        1
    );
    for nobody in [
        &["sessions", "--agent", "nobody", "--json"][..],
        &["agent", "--agent", "nobody", "-m", "x", "--json"],
    ] {
        assert_eq!(home.run(nobody).error(), (3, "unknown_agent".into()));
    }
    home.run(&["agents", "add", "ops", "--name", "Operations", "--json"]).ok();
    let second = home.run(&["agent", "--agent", "Operations", "-m", "second"]);
    assert_eq!(second.code, 0, "{}", second.stderr);
    let by_name = home.run(&["sessions", "--agent", "Operations", "--json"]).ok();
    assert_eq!(by_name["sessions"][0]["session_key"], "agent:ops:main");
    assert_eq!(home.run(&["sessions", "--agent", "main", "tree"]).code, 2);
    let deep = home.run(&["status", "--deep"]).stdout;
    assert!(deep.contains("provider lab: ready, 1 model(s)"), "{deep}");
    assert_eq!(home.run(&["status", "--all"]).code, 5, "there is no control plane");
    let output = home.run(&["agent", "-m", "hi", "--deliver", "--json"]);
    assert_eq!(output.error().1, "invalid_body", "no channel message has arrived there");
}

#[test]
fn logs_command_filters_by_level() {
    let home = Home::new();
    home.write_config("");
    assert_eq!(home.run(&["logs", "--json"]).error(), (3, "no_log".into()));
    let lines = "2026-11-17T03:00:00Z  INFO ready\n2026-11-17T03:00:01Z  WARN careful\n2026-11-17T03:00:02Z  INFO again\n";
    std::fs::write(home.path().join("daemon.log"), lines).unwrap();
    assert_eq!(home.run(&["logs", "-n", "1"]).stdout, "2026-11-17T03:00:02Z  INFO again\n");
    assert_eq!(home.run(&["logs", "--level", "warn"]).stdout, "2026-11-17T03:00:01Z  WARN careful\n");
    assert_eq!(home.run(&["logs", "--json"]).ok()["lines"].as_array().unwrap().len(), 3);
}

#[test]
fn doctor_accepts_secret_that_only_the_daemon_has() {
    let home = Home::new();
    home.write_config(
        "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodels = [\"m\"]\n\
         api_key = \"env:LAB_TEST_KEY\"\n",
    );
    // No model is reachable, so doctor fails either way: only its config check matters here.
    let config = || {
        let ran: Value = serde_json::from_str(&home.run(&["doctor", "--json"]).stdout).unwrap();
        let listed =
            [&ran["ok"]["checks"], &ran["error"]["details"]["checks"]].into_iter().find_map(Value::as_array);
        listed.unwrap().iter().find(|check| check["name"] == "config").unwrap()["verdict"].clone()
    };
    assert_eq!(config(), "fail", "no daemon runs, and a start with this environment would fail");
    let mut daemon = home.daemon_with(&[("LAB_TEST_KEY", "k-1")]);
    assert_eq!(config(), "ok");
    home.run(&["agents", "bind", "main", "--channel", "cli", "--json"]).ok();
    daemon.signal("TERM");
    assert!(daemon.ended().success());
    home.run(&["agents", "unbind", "main", "--all", "--json"]).ok();
}
