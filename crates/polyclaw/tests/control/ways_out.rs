//! Unusual states are reported correctly, and each has a way out.

use std::process::Stdio;

use polyclaw_testkit::model_server::{ModelServer, ReplyGate, ReplyScript};
use serde_json::{Value, json};

use crate::plane::{Plane, free_port, is_alive, signal, until};
use crate::sockets::Socket;

fn patch(plane: &Plane, path: &str, body: Value) -> crate::plane::Answer {
    plane.call("PATCH", path, Some(body), &[])
}

#[test]
fn unarchive_assigns_another_port_when_old_one_is_taken() {
    let plane = Plane::new();
    let port = plane.create("one")["port"].clone();
    plane.post("/instances/one/archive", json!({})).ok();
    plane.post("/instances", json!({ "name": "two", "port": port })).ok();
    let back = plane.post("/instances/one/unarchive", json!({})).ok();
    assert_ne!(back["port"], port);
    let config = plane.get("/instances/one/config").ok();
    assert_eq!(config["config"]["gateway"]["port"], back["port"], "its config knows");
    plane.post("/instances/one/archive", json!({})).ok();
    let refused = plane.post("/instances/one/unarchive", json!({ "port": port }));
    assert_eq!(refused.refusal(), (409, "instance_port_taken"));
    let wanted = free_port();
    assert_eq!(plane.post("/instances/one/unarchive", json!({ "port": wanted })).ok()["port"], wanted);
    assert_eq!(plane.start("one")["status"], "running");
}

#[test]
fn changed_port_of_stopped_instance_is_registered() {
    let plane = Plane::new();
    plane.create("one");
    let (etag, port) = (plane.get("/instances/one/config").etag.unwrap(), free_port());
    let change = json!({ "gateway": { "port": port } });
    let saved = plane.call("PATCH", "/instances/one/config", Some(change), &[("if-match", &etag)]).ok();
    assert_eq!(saved["outcome"], "saved");
    assert_eq!(plane.get("/instances/one").ok()["port"], port);
    let taken = plane.post("/instances", json!({ "name": "two", "port": port }));
    assert_eq!(taken.refusal(), (409, "instance_port_taken"));
}

#[test]
fn instance_with_missing_files_can_be_archived_and_deleted() {
    let plane = Plane::new();
    let one = plane.create("one");
    let two = plane.create("two");
    std::fs::remove_file(plane.folder(&two).join("config.toml")).unwrap();
    assert_eq!(plane.post("/instances/two/start", json!({})).refusal(), (404, "no_config"));
    let made = std::process::Command::new("mkfifo").arg(plane.folder(&two).join("config.toml")).status();
    assert!(made.unwrap().success());
    for answer in [plane.post("/instances/two/start", json!({})), plane.get("/instances/two/config")] {
        assert_eq!(answer.refusal(), (409, "unreadable_config"));
    }
    std::fs::remove_dir_all(plane.folder(&one)).unwrap();
    assert_eq!(plane.post("/instances/one/start", json!({})).refusal(), (409, "folder_missing"));
    assert_eq!(plane.post("/instances/one/archive", json!({})).ok()["status"], "archived");
    assert_eq!(plane.delete("/instances/one").status, 204);
    assert!(!plane.folder(&one).exists());
}

#[test]
fn ambiguous_instance_names_are_refused() {
    let plane = Plane::new();
    let one = plane.create("one");
    let made = |name: &str| plane.post("/instances", json!({ "name": name, "port": free_port() }));
    assert_eq!(made("One").refusal(), (409, "name_taken"));
    assert_eq!(made(one["id"].as_str().unwrap()).refusal(), (400, "bad_name"));
    let port = plane.post("/instances", json!({ "name": "two", "port": 65536 }));
    let text = port.body["error"]["message"].as_str().unwrap().to_owned();
    assert!(port.status == 400 && text.contains("65535"), "{text}");
}

#[test]
fn routing_rules_are_updated_and_message_filters_accept_wildcards() {
    let plane = Plane::new();
    plane.create("one");
    plane.create("two");
    let wildcard = plane.post("/routing-rules", json!({ "from": "*", "to": "two", "type": "task.*" }));
    assert_eq!(wildcard.refusal(), (400, "bad_rule"));
    assert!(wildcard.body["error"]["message"].as_str().unwrap().contains("wildcards"), "{}", wildcard.body);
    let rule = plane.post("/routing-rules", json!({ "from": "one", "to": "two", "type": "task.*" })).ok();
    let at = format!("/routing-rules/{}", rule["id"].as_str().unwrap());
    assert_eq!(plane.get(&at).ok(), rule);
    let changed = patch(&plane, &at, json!({ "ttl_secs": 60, "max_retries": 2 })).ok();
    assert_eq!((&changed["ttl_secs"], &changed["max_retries"]), (&json!(60), &json!(2)));
    assert_eq!((&changed["type"], &changed["auto_start"]), (&json!("task.*"), &json!(false)));
    assert_eq!(patch(&plane, &at, json!({ "ttl_secs": 0 })).refusal(), (400, "bad_rule"));
    assert_eq!(patch(&plane, "/routing-rules/none", json!({})).refusal(), (404, "unknown_rule"));
    for kind in ["task.handoff", "task.status"] {
        let sent = json!({ "from": "one", "to": "two", "type": kind, "payload": {} });
        assert_eq!(plane.post("/messages", sent).status, 201);
    }
    let count =
        |query: &str| plane.get(&format!("/messages?{query}")).ok()["messages"].as_array().unwrap().len();
    let queries =
        ["type=task.*", "type=task.status", "type=tas*", "status=queued", "state=queued", "status=failed"];
    assert_eq!(queries.map(count), [2, 1, 2, 2, 2, 0]);
}

#[test]
fn secrets_in_stored_messages_and_logs_are_redacted_when_read() {
    let plane = Plane::new();
    let one = plane.create("one");
    plane.create("two");
    plane.post("/routing-rules", json!({ "from": "one", "to": "two", "type": "note.*" })).ok();
    let sent = json!({ "from": "one", "to": "two", "type": "note.x", "payload": { "a": "b" } });
    let id = plane.post("/messages", sent).ok()["id"].as_str().unwrap().to_owned();
    let key = format!("ghp_{}", "a1b2c3d4e5".repeat(4));
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    registry.execute("UPDATE messages SET payload = ?1", [json!({ "a": key }).to_string()]).unwrap();
    let log = plane.folder(&one).join("logs/daemon.log");
    crate::plane::put(log.parent().unwrap(), "daemon.log", &format!("first\nkey {key}\nlast\n"));
    for path in
        [format!("/messages/{id}"), "/instances/one/logs".into(), "/instances/one/logs/download".into()]
    {
        let shown = plane.get(&path).ok().to_string();
        assert!(!shown.contains(&key) && shown.contains("[redacted secret]"), "{path}: {shown}");
    }
}

#[test]
fn restart_is_not_reported_as_a_crash() {
    let plane = Plane::new();
    plane.started("one");
    let mut socket = Socket::open(&plane, "/ws/instances");
    for _ in 0..3 {
        plane.post("/instances/one/restart", json!({})).ok();
    }
    plane.post("/instances/one/stop", json!({})).ok();
    loop {
        let text = socket.until("status_changed")["instance"]["status"].as_str().unwrap().to_owned();
        assert_ne!(text, "crashed");
        if text == "stopped" {
            break;
        }
    }
}

#[test]
fn restart_survives_a_control_plane_kill() {
    let mut plane = Plane::new();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    // It cannot end while it is stopped, and the control plane dies while it waits.
    signal("STOP", pid);
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    let is_asked_for =
        || -> bool { registry.query_row("SELECT restarting FROM instances", [], |row| row.get(0)).unwrap() };
    std::thread::scope(|scope| {
        let (url, token) = (plane.url(), plane.token());
        scope.spawn(move || {
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            let asked =
                client.post(format!("{url}/api/instances/one/restart?timeout=300")).bearer_auth(token);
            let _ = crate::plane::wait(asked.send());
        });
        until(&|| "the restart is recorded".to_owned(), is_asked_for);
        plane.kill();
    });
    signal("CONT", pid);
    until(&|| "the old process ends".to_owned(), || !is_alive(pid));
    plane.serve();
    let now = || plane.get("/instances/one").body;
    until(&|| format!("it runs again: {}", now()), || now()["status"] == "running");
    assert_ne!(now()["pid"].as_i64(), Some(pid));
    until(&|| "the restart is over".to_owned(), || !is_asked_for());
    assert_eq!(now()["desired_state"], "running");
}

#[test]
fn resumed_restart_lets_the_running_turn_finish() {
    let (model, gate) = (ModelServer::start(), ReplyGate::new());
    model.push(ReplyScript::new().gate(&gate).text("the whole answer"));
    let mut plane = Plane::new();
    let made = plane.create("one");
    let path = plane.folder(&made).join("config.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let url = model.url();
    let provider =
        format!("[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{url}\"\nmodels = [\"demo\"]\n");
    std::fs::write(&path, format!("{text}\n{provider}")).unwrap();
    let pid = plane.start("one")["pid"].as_i64().unwrap();
    let session = "/instances/one/gateway/sessions/agent%3Amain%3Aweb%3Adm%3Ame";
    plane.post(&format!("{session}/messages"), json!({ "text": "hello" })).ok();
    until(&|| "the model is asked".to_owned(), || model.request_count() == 1);
    let (url, token) = (plane.url(), plane.token());
    let asking = std::thread::spawn(move || {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let asked = client.post(format!("{url}/api/instances/one/restart?timeout=60")).bearer_auth(token);
        let _ = crate::plane::wait(asked.send());
    });
    let health = || plane.get("/health").body.to_string();
    until(&|| format!("it drains: {}", health()), || health().contains("draining"));
    plane.kill();
    asking.join().unwrap();
    plane.serve();
    let log = || std::fs::read_to_string(plane.dir.path().join("server.log")).unwrap();
    until(&log, || log().contains("finishing a restart that another server began"));
    // Long enough for a second signal, and shorter than the daemon's drain timeout.
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert!(is_alive(pid), "the drain was cut short");
    gate.open();
    until(&|| "the old process ends".to_owned(), || !is_alive(pid));
    plane.until_status("one", "running");
    let text_of = || plane.get(&format!("{session}/transcript")).body.to_string();
    until(&text_of, || text_of().contains("the whole answer"));
    assert_eq!(model.request_count(), 1, "the turn ended in the process that started it");
}

#[test]
fn hung_instance_is_reported_and_restarted() {
    let mut plane = Plane::idle();
    plane.environment = vec![("POLYCLAW_CP_HUNG_AFTER", "8".to_owned())];
    plane.serve();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    plane.create("two");
    patch(&plane, "/instances/two", json!({ "restart": "never" })).ok();
    let left = plane.start("two")["pid"].as_i64().unwrap();
    signal("STOP", pid);
    signal("STOP", left);
    plane.until_status("two", "unresponsive");
    assert_eq!(plane.get("/health").ok()["status"], "degraded");
    let now = || plane.get("/instances/one").body;
    until(&|| format!("another runs: {}", now()), || {
        now()["status"] == "running" && now()["pid"].as_i64() != Some(pid)
    });
    assert!(!is_alive(pid) && is_alive(left), "the policy `never` is respected");
    let audit = plane.get("/audit").ok().to_string();
    assert!(audit.contains("instance.hung"), "{audit}");
    signal("CONT", left);
    plane.until_status("two", "running");
}

#[test]
fn crash_of_adopted_instance_is_restarted() {
    let plane = Plane::new();
    // The exit status of an earlier child says nothing about the next process.
    let folder = plane.folder(&plane.started("one"));
    plane.post("/instances/one/stop", json!({})).ok();
    let mut command = plane.command(&["daemon"]);
    command.env("POLYCLAW_HOME", &folder).stdout(Stdio::null()).stderr(Stdio::null());
    let mut daemon = command.spawn().unwrap();
    let now = || plane.get("/instances/one").body;
    until(&|| format!("it is adopted: {}", now()), || now()["desired_state"] == "running");
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    until(&|| format!("another runs: {}", now()), || {
        now()["status"] == "running" && now()["pid"].as_i64() != Some(i64::from(daemon.id()))
    });
}
