//! Imports homes of OpenClaw gateways as instances: completely or not at all, and once.

use std::fs;
use std::path::{Path, PathBuf};

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use polyclaw_testkit::platform::telegram::TelegramEmulator;
use serde_json::{Value, json};

use crate::plane::{Plane, free_port, put, until};

const CANARY: &str = "canary-5f0e2d";
/// Large enough to be killed halfway.
const FILES: usize = 1500;
/// A kill that comes too late proves nothing and is retried.
const TRIES: usize = 10;

/// The first generation: a list of agents, transcripts next to it, schedules in a file.
fn first_generation_home(plane: &Plane) -> PathBuf {
    let home = plane.dir.path().join(".openclaw");
    put(
        &home,
        "openclaw.json",
        &format!(
            r#"{{
  // Who answers.
  "agents": {{
    "defaults": {{ "model": {{ "primary": "anthropic/claude-x", "fallbacks": ["openai/gpt-x"] }} }},
    "list": [
      {{ "id": "main", "default": true, "name": "Main" }},
      {{ "id": "ops", "workspace": "./ops-files", "tools": {{ "allow": ["read", "exec"] }} }},
    ],
  }},
  "bindings": [ {{ "agentId": "ops", "match": {{ "channel": "telegram", "accountId": "ops" }} }} ],
  "broadcast": {{ "strategy": "sequential", "-100": ["main", "ops"] }},
  "session": {{ "dmScope": "per-channel-peer", "identityLinks": {{ "ann": ["telegram:1", "discord:2"] }} }},
  "channels": {{ "telegram": {{ "allowFrom": [1], "accounts": {{
    "main": {{ "botToken": "{CANARY}-main" }}, "ops": {{ "botToken": "{CANARY}-ops", "dmPolicy": "allowlist" }} }} }} }},
  "gateway": {{ "port": 18789, "auth": {{ "token": "{CANARY}-gateway" }} }},
}}"#
        ),
    );
    put(&home, "workspace/SOUL.md", "be kind");
    put(&home, "ops-files/AGENTS.md", "be careful");
    put(&home, "ops-files/deep/er/notes.txt", "n");
    put(
        &home,
        "agents/main/agent/auth-profiles.json",
        &format!(
            r#"{{ "profiles": {{ "anthropic:default": {{ "type": "api_key", "provider": "anthropic", "key": "{CANARY}-key" }} }} }}"#
        ),
    );
    put(
        &home,
        "agents/main/sessions/sessions.json",
        r#"{ "agent:main:main": { "sessionId": "s1", "updatedAt": 1700000000000 }, "agent:main:subagent:1": { "sessionId": "s2" }, "agent:main:telegram:direct:9": { "sessionId": "../../../openclaw" } }"#,
    );
    put(
        &home,
        "agents/main/sessions/s1.jsonl",
        concat!(
            r#"{"type":"session","id":"s1"}"#,
            "\n",
            r#"{"type":"message","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"what is the word?"}}"#,
            "\n",
            r#"{"type":"message","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"assistant","content":[{"type":"text","text":"the word is plum"}]}}"#,
            "\n",
            "{ cut short",
        ),
    );
    put(
        &home,
        "cron/jobs.json",
        r#"{ "version": 1, "jobs": [ { "id": "a", "name": "news", "agentId": "ops", "schedule": { "kind": "cron", "expr": "0 8 * * *" }, "payload": { "kind": "agentTurn", "message": "news?" } } ] }"#,
    );
    home
}

fn import(plane: &Plane, path: &Path, more: Value) -> crate::plane::Answer {
    let mut body = json!({ "path": path });
    more.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
    plane.post("/import/openclaw", body)
}

fn instances(plane: &Plane) -> usize {
    plane.get("/instances?include_archived=true").ok()["instances"].as_array().unwrap().len()
}

fn folders(plane: &Plane) -> usize {
    fs::read_dir(plane.home().join("cp/instances")).unwrap().count()
}

#[test]
fn first_generation_home_is_imported_and_runs() {
    let plane = Plane::new();
    let home = first_generation_home(&plane);
    let made = import(&plane, &home, json!({ "with_secrets": true, "port": free_port() })).ok();
    let report = &made["report"];
    assert_eq!(report["agents"], json!(["main", "ops"]));
    assert_eq!(report["channels"], json!(["telegram:main", "telegram:ops"]));
    let counts = ["bindings", "schedules", "workspaces", "sessions", "messages"]
        .map(|key| report[key].as_u64().unwrap());
    assert_eq!(counts, [1, 1, 2, 1, 2]);
    assert!(!made.to_string().contains(CANARY), "{made}");
    let folder = plane.folder(&made["instance"]);
    for (file, text) in [("workspace/main/SOUL.md", "be kind"), ("workspace/ops/deep/er/notes.txt", "n")] {
        assert_eq!(fs::read_to_string(folder.join(file)).unwrap(), text, "{file}");
    }
    let text = fs::read_to_string(folder.join("config.toml")).unwrap();
    assert!(!text.contains(CANARY) && text.contains("secret:"), "{text}");
    assert!(!folder.join(".creating").exists());
    let config = plane.get("/instances/openclaw/config").ok()["config"].clone();
    assert_eq!(config["broadcast"]["-100"], json!(["main", "ops"]));
    assert_eq!(config["session"]["identity_links"]["ann"], json!(["telegram:1", "discord:2"]));
    assert_eq!(config["agents"]["defaults"]["fallbacks"], json!(["openai/gpt-x"]));
    // The bots of the test do not exist; the daemon itself does.
    let patch = json!({ "channels": null });
    let etag = plane.get("/instances/openclaw/config").etag.unwrap();
    plane
        .call(
            "PATCH",
            "/instances/openclaw/config",
            Some(patch),
            &[("if-match", &etag), ("x-allow-secret-write", "true")],
        )
        .ok();
    assert_eq!(plane.start("openclaw")["status"], "running");
    let reply = plane.get("/instances/openclaw/gateway/sessions/agent%3Amain%3Amain/transcript").ok();
    assert!(reply.to_string().contains("the word is plum"), "{reply}");
    let runs = plane.get("/import/runs").ok();
    assert_eq!(
        (&runs["runs"][0]["state"], &runs["runs"][0]["instance_id"]),
        (&json!("done"), &made["instance"]["id"])
    );
}

/// The second generation: agents by name, and no list.
#[test]
fn second_generation_home_is_imported_and_runs() {
    let plane = Plane::new();
    let home = plane.dir.path().join("newer");
    let config = json!({
        "agents": { "defaults": { "model": "openai/gpt-x" }, "entries": {
            "main": { "default": true, "name": "Main" }, "ops": { "workspace": "./ops-files" } } },
        "models": { "providers": { "openai": { "apiKey": format!("{CANARY}-key") } } },
    });
    put(&home, "openclaw.json", &config.to_string());
    put(&home, "ops-files/AGENTS.md", "be careful");
    let made = import(&plane, &home, json!({ "with_secrets": true, "port": free_port() })).ok();
    assert_eq!(made["report"]["agents"], json!(["main", "ops"]), "{made}");
    assert!(!made.to_string().contains(CANARY), "{made}");
    assert_eq!(plane.start("newer")["status"], "running");
    let agents = plane.get("/instances/newer/gateway/agents").ok()["agents"].to_string();
    assert!(agents.contains("\"main\"") && agents.contains("\"ops\""), "{agents}");
    let file = plane.folder(&made["instance"]).join("workspace/ops/AGENTS.md");
    assert_eq!(fs::read_to_string(file).unwrap(), "be careful");
}

/// Two bots of one platform. Approved senders of one are unknown to the other.
#[test]
fn imported_accounts_keep_their_own_token_senders_and_agent() {
    const BOTS: [(&str, &str, i64); 2] =
        [("main", "1:canary-5f0e2d-main", 11), ("ops", "2:canary-5f0e2d-ops", 22)];
    let (plane, model, telegram) = (Plane::new(), ModelServer::start(), TelegramEmulator::start());
    model.answer_with(|_| ReplyScript::reply("here"));
    let mut accounts = json!({});
    for (name, token, person) in BOTS {
        telegram.add_bot(token, person, name);
        accounts[name] = json!({ "botToken": token, "allowFrom": [person] });
    }
    let config = json!({
        "agents": { "list": [{ "id": "main", "default": true }, { "id": "ops" }] },
        "bindings": [{ "agentId": "ops", "match": { "channel": "telegram", "accountId": "ops" } }],
        "channels": { "telegram": {
            "apiRoot": telegram.api_url(), "dmPolicy": "allowlist", "accounts": accounts } },
    });
    let home = plane.dir.path().join("bots");
    put(&home, "openclaw.json", &config.to_string());
    import(&plane, &home, json!({ "with_secrets": true, "port": free_port() })).ok();
    let provider = json!({ "kind": "openai_compatible", "base_url": model.url(), "models": ["m"] });
    let patch = json!({ "providers": { "lab": provider }, "agents": { "defaults": { "model": "lab/m" } } });
    plane.call("PATCH", "/instances/bots/config", Some(patch), &[("if-match", "*")]).ok();
    plane.start("bots");
    // Each gets a message from an unknown sender first. A later answer shows that it was received and not answered.
    for (_, token, person) in BOTS {
        telegram.send_dm(token, 33 - person, "let me in");
        telegram.send_dm(token, person, "who is there?");
    }
    until(&|| format!("both answer: {:?}", telegram.visible_messages()), || {
        telegram.visible_messages().len() >= 2
    });
    let mut shown: Vec<_> = telegram.visible_messages().into_iter().map(|one| (one.bot, one.chat)).collect();
    shown.sort();
    assert_eq!(shown, BOTS.map(|(_, token, person)| (token.to_owned(), person.to_string())));
    let tasks = plane.get("/instances/bots/tasks").ok()["tasks"].clone();
    let mut agents: Vec<&str> =
        tasks.as_array().unwrap().iter().map(|task| task["agent_id"].as_str().unwrap()).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["main", "ops"], "{tasks}");
}

#[test]
fn default_agent_gets_files_of_shared_workspace() {
    let plane = Plane::new();
    let (home, shared) = (plane.dir.path().join("shared"), plane.dir.path().join("ws"));
    let config = json!({ "agents": { "defaults": { "workspace": shared }, "list": [{ "id": "main" }, { "id": "ops" }] } });
    put(&home, "openclaw.json", &config.to_string());
    put(&shared, "AGENTS.md", "be kind");
    put(&shared, "ops/AGENTS.md", "be careful");
    let refused = import(&plane, &home, json!({ "dry_run": true }));
    assert_eq!(
        refused.refusal(),
        (400, "import_path_not_allowed"),
        "a folder outside the home is copied only on request"
    );
    let made = import(&plane, &home, json!({ "allow_outside": true })).ok();
    assert_eq!(made["report"]["ignored"], json!([]), "{made}");
    let named = made["report"]["folders"][0].as_str().unwrap();
    assert!(named.contains(shared.to_str().unwrap()) && named.contains("workspace/"), "{named}");
    let workspace = plane.folder(&made["instance"]).join("workspace");
    for (file, text) in [("main/AGENTS.md", "be kind"), ("ops/AGENTS.md", "be careful")] {
        assert_eq!(fs::read_to_string(workspace.join(file)).unwrap(), text, "{file}");
    }
    assert!(!workspace.join("main/ops").exists(), "each agent has its own files");
}

/// A name, a config, and the expected report or error code.
type Shape = (&'static str, &'static str, Result<&'static [&'static str], &'static str>);

/// Each shape of a config with the expected report or error code.
#[test]
fn every_config_shape_is_imported_whole_or_refused() {
    let plane = Plane::new();
    let shapes: [Shape; 9] = [
        (
            "new",
            r#"{"agents":{"ownership":"explicit","entries":{"a":{"model":"openai/x"},"b":{}}},"bindings":[{"agentId":"b","match":{"channel":"slack","teamId":"T1"}}]}"#,
            Ok(&["agents.ownership"]),
        ),
        (
            "oldest",
            r#"{"agent":{"model":"anthropic/y","workspace":"~/nowhere"},"telegram":{"botToken":"${UNSET_TOKEN}"}}"#,
            Ok(&["agents.main.workspace", "telegram.botToken"]),
        ),
        (
            "json5",
            "// hello\n{ agents: { list: [ { id: 'x', /* none */ skills: [], }, ], }, messages: { queue: { mode: 'steer' } }, }",
            Ok(&["messages.queue.mode"]),
        ),
        (
            "secrets",
            r#"{"channels":{"discord":{"token":"canary-5f0e2d-d"},"slack":{"botToken":"canary-5f0e2d-s"}}}"#,
            Ok(&["channels.discord.token", "channels.slack.botToken"]),
        ),
        (
            "colliding",
            r#"{"agents":{"list":[{"id":"A"},{"id":"a"},{"id":"a"}]}}"#,
            Ok(&["agents.list[1]", "agents.list[2].id"]),
        ),
        ("empty", "{}", Ok(&[])),
        ("broken", "{ \"agents\": { \"list\": [ { \"id\": ", Err("import_unreadable")),
        ("list", "[1, 2]", Err("import_unreadable")),
        ("impossible", r#"{"session":{"mainKey":"no spaces allowed here"}}"#, Err("bad_config")),
    ];
    for (name, text, expected) in shapes {
        let (instances_before, folders_before) = (instances(&plane), folders(&plane));
        let home = plane.dir.path().join(name);
        put(&home, "openclaw.json", text);
        let answer = import(&plane, &home, json!({}));
        match expected {
            Ok(noted) => {
                let made = answer.ok();
                let report = made["report"].to_string();
                noted.iter().for_each(|path| {
                    assert!(report.contains(&format!("\"{path}\"")), "{name}: {path}: {report}");
                });
                assert!(!report.contains(CANARY), "{report}");
                assert_eq!(
                    (instances(&plane), folders(&plane)),
                    (instances_before + 1, folders_before + 1),
                    "{name}"
                );
                let config = plane.get(&format!("/instances/{name}/details")).ok();
                assert!(config["config_error"].is_null(), "{name}: {config}");
            }
            Err(code) => {
                assert_eq!(answer.refusal(), (400, code), "{name}");
                assert_eq!(
                    (instances(&plane), folders(&plane)),
                    (instances_before, folders_before),
                    "{name}"
                );
            }
        }
    }
    assert_eq!(import(&plane, Path::new("/nowhere/at/all"), json!({})).refusal(), (404, "import_not_found"));
    assert_eq!(import(&plane, Path::new("relative"), json!({})).refusal(), (400, "invalid_parameter"));
}

#[test]
fn dry_run_import_reports_the_same_and_changes_nothing() {
    let plane = Plane::new();
    let home = first_generation_home(&plane);
    let dry = import(&plane, &home, json!({ "dry_run": true })).ok();
    assert_eq!((instances(&plane), folders(&plane)), (0, 0));
    assert!(dry["run"].is_null() && dry["instance"].is_null());
    let real = import(&plane, &home, json!({})).ok();
    assert_eq!(dry["report"], real["report"]);
}

#[test]
fn repeated_import_or_taken_name_changes_nothing() {
    let plane = Plane::new();
    let home = first_generation_home(&plane);
    let first = import(&plane, &home, json!({})).ok();
    let second = import(&plane, &home, json!({})).ok();
    assert_eq!((&second["already"], &second["run"]), (&json!(true), &first["run"]));
    put(&home, "openclaw.json", r#"{ "agents": { "list": [{ "id": "other" }] } }"#);
    assert_eq!(
        import(&plane, &home, json!({})).refusal(),
        (409, "name_taken"),
        "another config, the same name"
    );
    assert_eq!((instances(&plane), folders(&plane)), (1, 1));
    assert_eq!(import(&plane, &home, json!({ "name": "second" })).ok()["instance"]["name"], "second");
    assert_eq!((instances(&plane), folders(&plane)), (2, 2));
}

#[test]
fn command_line_imports_with_and_without_control_plane() {
    let mut plane = Plane::idle();
    let home = first_generation_home(&plane);
    let path = home.display().to_string();
    let (exit, made) = plane.run(&["migrate", "from-openclaw", &path]);
    assert_eq!((exit, &made["ok"]["report"]["agents"]), (0, &json!(["main", "ops"])), "{made}");
    plane.serve();
    let (exit, again) = plane.run(&["migrate", "from-openclaw", &path]);
    assert_eq!((exit, &again["ok"]["already"]), (0, &json!(true)), "{again}");
    let output = plane.command(&["migrate", "from-openclaw", &path, "--dry-run"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("gateway.port: an instance gets") && !text.contains(CANARY), "{text}");
    let (exit, refused) = plane.run(&["migrate", "from-openclaw", "/nowhere"]);
    assert_eq!((exit, &refused["error"]["code"]), (3, &json!("import_not_found")));
}

/// Killed at several moments: afterwards either everything exists, or nothing but the record of the import.
#[test]
fn killed_import_is_complete_or_rolled_back() {
    let mut plane = Plane::new();
    let home = first_generation_home(&plane);
    for number in 0..FILES {
        put(&home, &format!("ops-files/many/{number}.txt"), "x");
    }
    let (mut undone, mut tries) = (0, 0);
    let mut moments = vec![FILES / 2, FILES / 8, 1];
    while let Some(&copied) = moments.last() {
        tries += 1;
        assert!(tries <= TRIES, "no kill came in the middle of an import");
        std::thread::scope(|scope| {
            scope.spawn(|| import(&plane, &home, json!({})));
            until(&|| format!("{copied} files are copied"), || {
                let made = fs::read_dir(plane.home().join("cp/instances")).unwrap().flatten().next();
                let many = made.map(|entry| entry.path().join("workspace/ops/many"));
                let whole = plane.get("/instances").body["instances"][0].is_object();
                whole
                    || many
                        .and_then(|many| fs::read_dir(many).ok())
                        .is_some_and(|files| files.count() >= copied)
            });
            crate::plane::signal("KILL", i64::from(plane.pid()));
        });
        plane.kill();
        plane.serve();
        let found = plane.get("/instances").ok()["instances"][0].clone();
        if found.is_object() {
            assert_eq!(fs::read_dir(plane.folder(&found).join("workspace/ops/many")).unwrap().count(), FILES);
            plane.post("/instances/openclaw/archive", json!({})).ok();
            assert_eq!(plane.delete("/instances/openclaw").status, 204);
            continue;
        }
        undone += 1;
        moments.pop();
        assert_eq!(folders(&plane), 0, "the unfinished import is removed");
        let runs = plane.get("/import/runs").ok();
        let states: Vec<&str> =
            runs["runs"].as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
        assert_eq!(states.iter().filter(|state| **state == "rolled_back").count(), undone, "{states:?}");
        assert!(!states.contains(&"running"), "{states:?}");
    }
    let made = import(&plane, &home, json!({})).ok();
    assert_eq!(
        fs::read_dir(plane.folder(&made["instance"]).join("workspace/ops/many")).unwrap().count(),
        FILES
    );
}

/// Groups of another gateway, with the files next to its config.
fn grouped_home(plane: &Plane) -> PathBuf {
    let home = plane.dir.path().join(".openclaw-groups");
    let config = json!({
        "agents": { "defaults": { "subagents": { "thinking": "low" } }, "list": [{ "id": "main" }] },
        "channels": { "telegram": {
            "botToken": "${TG_MAIN}", "groupPolicy": "allowlist", "groupAllowFrom": ["123456789"],
            "groups": { "*": { "requireMention": true } },
            "accounts": { "work": { "botToken": "${TG_WORK_THAT_NOBODY_SET}" } },
        } },
        "bindings": [
            { "agentId": "main", "match": { "channel": "telegram", "accountId": "work" } },
            { "agentId": "main", "match": { "channel": "telegram", "accountId": "default" } },
        ],
        "tools": { "web": { "search": { "provider": "brave", "apiKey": format!("{CANARY}-brave") } } },
    });
    put(&home, "openclaw.json", &config.to_string());
    put(&home, ".env", &format!("# keys\nexport TG_MAIN=\"{CANARY}-main\"\n"));
    put(&home, "credentials/telegram-allowFrom.json", r#"{ "version": 1, "allowFrom": ["777"] }"#);
    put(&home, "workspace/notes.md", "n");
    std::os::unix::fs::symlink(home.join("workspace/notes.md"), home.join("workspace/own-link")).unwrap();
    std::os::unix::fs::symlink(home.join("openclaw.json"), home.join("workspace/home-link")).unwrap();
    put(&home, "agents/main/sessions/sessions.json", r#"{ "agent:main:main": { "sessionId": "s1" } }"#);
    let pasted = r#"{"message":{"role":"user","content":"my key is sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEf"}}"#;
    put(&home, "agents/main/sessions/s1.jsonl", &format!("{pasted}\n{{ cut short\n"));
    let delivery = json!({ "jobs": [{ "id": "brief", "schedule": { "kind": "cron", "expr": "0 7 * * *" },
        "payload": { "kind": "agentTurn", "message": "brief?", "deliver": true, "channel": "telegram", "to": "777" } }] });
    put(&home, "cron/jobs.json", &delivery.to_string());
    home
}

#[test]
fn import_is_never_looser_than_source_and_redacts_keys() {
    let plane = Plane::new();
    let home = grouped_home(&plane);
    let order = json!({ "with_secrets": true, "port": free_port() });
    let mut look = order.clone();
    look["dry_run"] = json!(true);
    let looked = import(&plane, &home, look).ok();
    let made = import(&plane, &home, order).ok();
    assert_eq!(looked["report"], made["report"], "a dry run reports what the real import does");
    let report = &made["report"];
    assert_eq!((&report["bindings"], &report["channels"]), (&json!(1), &json!(["telegram:default"])));
    let ignored = report["ignored"].to_string();
    for part in ["bindings[0]", "s1.jsonl", "home-link"] {
        assert!(ignored.contains(part), "{part}: {ignored}");
    }
    let folder = plane.folder(&made["instance"]);
    let config = fs::read_to_string(folder.join("config.toml")).unwrap();
    for part in [
        "group_allow_from = [\"123456789\"]",
        "\"777\"",
        "deliver_to",
        "thinking = \"low\"",
        "kind = \"brave\"",
    ] {
        assert!(config.contains(part), "{part}: {config}");
    }
    assert!(!config.contains(CANARY), "{config}");
    let workspace = fs::read_dir(folder.join("workspace")).unwrap().next().unwrap().unwrap().path();
    let workspace = if workspace.join("notes.md").exists() { workspace } else { folder.join("workspace") };
    assert_eq!(fs::read_link(workspace.join("own-link")).unwrap(), Path::new("notes.md"));
    assert!(fs::symlink_metadata(workspace.join("home-link")).is_err(), "no link points into the old home");
    let database = fs::read(folder.join("memory/sessions.db")).unwrap();
    assert!(!String::from_utf8_lossy(&database).contains("sk-proj-AbCdEf"), "a pasted key is redacted");
    let name = made["instance"]["name"].as_str().unwrap();
    plane.post(&format!("/instances/{name}/start"), json!({})).ok();
    plane.until_status(name, "running");
    let admission = |sender: &str| {
        let asked = json!({ "channel": "telegram", "peer": { "kind": "group", "id": "-100777" }, "sender": sender,
            "mentioned": true, "text": "x" });
        plane.post(&format!("/instances/{name}/gateway/route/explain"), asked).ok()["admission"].to_string()
    };
    assert!(admission("123456789").contains("admitted"), "{}", admission("123456789"));
    for stranger in ["99999", "777"] {
        let text = admission(stranger);
        assert!(!text.contains("admitted") && text.contains("sender_not_listed"), "{stranger}: {text}");
    }
}
#[test]
fn import_of_deeply_nested_config_is_refused() {
    let plane = Plane::new();
    for (name, depth) in [("deep", 3_000), ("deeper", 200_000)] {
        let home = plane.dir.path().join(name);
        put(&home, "openclaw.json", &format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)));
        assert_eq!(import(&plane, &home, json!({ "dry_run": true })).refusal(), (400, "import_unreadable"));
    }
    plane.get("/instances").ok();
}
