//! Visibility of messages between instances.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::messages::{allow, pair, pending, state, task, word};
use crate::plane::{Plane, until};
use crate::sockets::Socket;

fn ids(answer: &Value) -> Vec<Value> {
    answer["messages"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect()
}

#[test]
fn gate_1_messages_of_an_instance_are_paginated_by_direction() {
    let plane = pair();
    allow(&plane, "b", "a", "task.*");
    let sent: Vec<Value> = (0..5).map(|_| task(&plane, json!({})).ok()["id"].clone()).collect();
    let back = task(&plane, json!({ "from": "b", "to": "a" })).ok()["id"].clone();
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = plane.get(&format!("/instances/b/messages?direction=in&limit=2{cursor}")).ok();
        assert!(page["messages"].as_array().unwrap().iter().all(|one| one.get("payload").is_none()));
        seen.extend(ids(&page));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, sent.iter().rev().cloned().collect::<Vec<_>>(), "newest first, each once");
    assert_eq!(ids(&plane.get("/instances/b/messages?direction=out").ok()), vec![back.clone()]);
    assert_eq!(ids(&plane.get("/instances/a/messages?direction=in").ok()), [back]);
    assert_eq!(plane.get("/instances/a/messages").refusal(), (400, "invalid_parameter"));
    assert_eq!(plane.get("/instances/nobody/messages?direction=in").refusal(), (404, "unknown_instance"));
}

#[test]
fn gate_2_correlated_messages_are_ordered_and_filters_work() {
    let plane = pair();
    allow(&plane, "b", "a", "task.*");
    let mut chain = Vec::new();
    for (from, to, kind) in [("a", "b", "task.handoff"), ("b", "a", "task.status"), ("b", "a", "task.result")]
    {
        let more = json!({ "from": from, "to": to, "type": kind, "correlation_id": "c" });
        chain.push(task(&plane, more).ok()["id"].clone());
    }
    // A message without a correlation ID starts its own correlation.
    let first = task(&plane, json!({})).ok()["id"].clone();
    let alone = plane.get(&format!("/messages?correlation_id={}", first.as_str().unwrap())).ok();
    assert_eq!(ids(&alone), [first]);
    assert_eq!(ids(&plane.get("/messages?correlation_id=c").ok()), chain);
    for (filter, count) in [
        ("from=b", 2),
        ("to=b&type=task.handoff", 2),
        ("hop_count=1", 2),
        ("state=queued", 4),
        ("state=dead_letter", 0),
        ("after=2001-01-01T00:00:00Z", 4),
        ("before=2001-01-01T00:00:00Z", 0),
    ] {
        assert_eq!(ids(&plane.get(&format!("/messages?{filter}")).ok()).len(), count, "{filter}");
    }
    assert_eq!(plane.get("/messages?state=lost").refusal(), (400, "invalid_parameter"));
}

/// A dead letter.
fn dead(plane: &Plane) -> Value {
    let rule = json!({ "from": "a", "to": "b", "type": "task.handoff", "max_retries": 1 });
    plane.post("/routing-rules", rule).ok();
    let id = task(plane, json!({})).ok()["id"].clone();
    word(plane, &pending(plane, "b")[0], "fail").ok();
    id
}

#[test]
fn gate_3_dead_letters_are_listed_and_replayed() {
    let plane = pair();
    let id = dead(&plane);
    assert_eq!(ids(&plane.get("/messages/dead_letter").ok()), vec![id.clone()]);
    let path = format!("/messages/{}/replay", id.as_str().unwrap());
    assert_eq!(plane.post(&path, json!({})).ok()["state"], "queued");
    assert_eq!(plane.post(&path, json!({})).refusal(), (409, "not_dead_letter"));
    assert_eq!(plane.post("/messages/nothing/replay", json!({})).refusal(), (404, "unknown_message"));
    assert!(ids(&plane.get("/messages/dead_letter").ok()).is_empty());
    let again = pending(&plane, "b");
    assert_eq!((&again[0]["id"], &again[0]["attempts"]), (&id, &json!(1)));
    assert_eq!(word(&plane, &again[0], "ack").status, 200);
    let audit = plane.get("/audit").ok();
    assert_eq!(
        (&audit["entries"][0]["action"], &audit["entries"][0]["target"]),
        (&json!("message.replay"), &id)
    );
}

#[test]
fn gate_4_every_event_of_a_message_is_recorded() {
    let plane = pair();
    let id = dead(&plane);
    plane.post(&format!("/messages/{}/replay", id.as_str().unwrap()), json!({})).ok();
    word(&plane, &pending(&plane, "b")[0], "ack").ok();
    let found = plane.get(&format!("/messages/{}", id.as_str().unwrap())).ok();
    let kinds: Vec<&str> =
        found["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
    let expected = [
        "created",
        "queued",
        "delivery_attempted",
        "delivered",
        "failed",
        "dead_lettered",
        "replayed",
        "queued",
        "delivery_attempted",
        "delivered",
        "acknowledged",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(found["state"], "acknowledged");
}

#[test]
fn gate_5_no_secret_appears_in_answers_frames_files_or_logs() {
    let mut plane = pair();
    let canary = "canary-secret-value-4711-abc";
    let payload = json!({ "password": canary, "deep": { "access_token": [canary] } });
    let mut notice = Socket::open(&plane, "/ws/messages");
    notice.next();
    let id = task(&plane, json!({ "payload": payload })).ok()["id"].clone();
    let received = pending(&plane, "b");
    let path = format!("/messages/{}/fail", id.as_str().unwrap());
    let refused = json!({ "lease": received[0]["lease"], "error": format!("Bearer {}", plane.token()) });
    plane.post(&path, refused).ok();
    let token = plane.token();
    let frames = frames_to_failure(&mut notice, &id);
    let restarted = Socket::open(&plane, "/ws/messages").next().to_string();
    assert!(
        frames.contains("failed") && restarted.contains("failed"),
        "the events contain the failure: {frames}"
    );
    for frame in [frames, restarted] {
        assert!(!frame.contains(canary) && !frame.contains(&token), "{frame}");
    }
    for path in [format!("/messages/{}", id.as_str().unwrap()), "/messages".into(), "/audit".into()] {
        let reply = plane.get(&path).body.to_string();
        assert!(!reply.contains(canary) && !reply.contains(&token), "{path}: {reply}");
    }
    plane.kill();
    let kept = fs::read_dir(plane.home().join("cp")).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept.filter(|file| file.file_name().unwrap().to_str().unwrap().starts_with("registry.db"));
    let mut stored = false;
    for file in kept.chain([plane.dir.path().join("server.log")]) {
        let bytes = fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        stored |= text.contains(id.as_str().unwrap());
        assert!(!text.contains(canary) && !text.contains(&token), "{}", file.display());
    }
    assert!(stored, "the searched files contain the message itself");
}

/// All frames until a message has failed.
fn frames_to_failure(socket: &mut Socket, id: &Value) -> String {
    let mut all = Vec::new();
    loop {
        let event = socket.until("message_event");
        let is_last = event["message_id"] == *id && event["kind"] == "failed";
        all.push(event);
        if is_last {
            return json!(all).to_string();
        }
    }
}

#[test]
fn gate_6_message_events_cannot_be_changed_or_deleted() {
    let mut plane = pair();
    task(&plane, json!({})).ok();
    plane.kill();
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    for sql in ["UPDATE message_events SET kind = 'queued'", "DELETE FROM message_events"] {
        let refused = registry.execute(sql, []).unwrap_err().to_string();
        assert!(refused.contains("only added to"), "{refused}");
    }
    let kept: i64 = registry.query_row("SELECT COUNT(*) FROM message_events", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 2);
}

#[test]
fn deleting_an_instance_keeps_messages_and_removes_rules() {
    let plane = pair();
    let id = task(&plane, json!({})).ok()["id"].clone();
    plane.post("/instances/b/archive", json!({})).ok();
    assert_eq!(task(&plane, json!({})).refusal(), (409, "instance_archived"));
    assert_eq!(plane.delete("/instances/b").status, 204);
    assert!(plane.get("/routing-rules").ok()["rules"].as_array().unwrap().is_empty());
    assert_eq!(state(&plane, &id), "queued");
    let found = plane.get(&format!("/messages/{}", id.as_str().unwrap())).ok();
    assert_eq!((&found["from_name"], &found["to_name"]), (&json!("a"), &Value::Null));
    plane.create("b");
    assert!(pending(&plane, "b").is_empty(), "a namesake does not get the messages of the other");
    assert_eq!(task(&plane, json!({})).refusal(), (403, "route_denied"));
}

#[test]
fn new_instance_does_not_inherit_messages_of_archived_namesake() {
    let plane = pair();
    let first = plane.get("/instances/b").ok()["id"].clone();
    let id = task(&plane, json!({})).ok()["id"].clone();
    plane.post("/instances/b/archive", json!({})).ok();
    plane.create("b");
    assert!(pending(&plane, "b").is_empty() && ids(&plane.get("/messages?to=b").ok()).is_empty());
    assert_eq!(task(&plane, json!({})).refusal(), (403, "route_denied"));
    plane.post("/instances/b/archive", json!({})).ok();
    plane.post(&format!("/instances/{}/unarchive", first.as_str().unwrap()), json!({})).ok();
    let received = pending(&plane, "b");
    assert_eq!((received.len(), &received[0]["id"]), (1, &id), "they waited for their recipient");
    assert_eq!(task(&plane, json!({})).status, 201);
}

#[test]
fn message_routes_enforce_scopes_and_instance_tokens() {
    let plane = pair();
    let pid = plane.start("a")["pid"].as_i64().unwrap();
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let own = environment.split('\0').find_map(|entry| entry.strip_prefix("POLYCLAW_CP_TOKEN=")).unwrap();
    let with = |token: &str, method: &str, path: &str, body: Option<Value>| {
        plane.call(method, path, body, &[("authorization", &format!("Bearer {token}"))])
    };
    let message = |from: Option<&str>| json!({ "from": from, "to": "b", "type": "task.x", "payload": {} });
    let sent = with(own, "POST", "/messages", Some(message(None))).ok();
    let stored = plane.get(&format!("/messages/{}", sent["id"].as_str().unwrap())).ok();
    assert_eq!(stored["from_name"], "a", "the token determines the sender");
    assert_eq!(with(own, "POST", "/messages", Some(message(Some("b")))).refusal(), (403, "sender_mismatch"));
    assert_eq!(with(own, "GET", "/instances/b/messages/pending", None).refusal(), (403, "sender_mismatch"));
    let held = pending(&plane, "b");
    let path = format!("/messages/{}/ack", sent["id"].as_str().unwrap());
    let stolen = with(own, "POST", &path, Some(json!({ "lease": held[0]["lease"] })));
    assert_eq!(stolen.refusal(), (404, "unknown_message"), "messages of others are hidden");
    let replay = format!("/messages/{}/replay", sent["id"].as_str().unwrap());
    for (method, path, body) in [
        ("GET", "/messages", None),
        ("GET", "/routing-rules", None),
        ("POST", "/routing-rules", Some(json!({ "from": "a", "to": "b", "type": "x" }))),
        ("POST", replay.as_str(), Some(json!({}))),
    ] {
        assert_eq!(with(own, method, path, body).refusal(), (403, "wrong_scope"), "{method} {path}");
    }
    let scoped = |scope: &str| {
        let made = plane.post("/tokens", json!({ "name": scope, "scope": scope })).ok();
        made["secret"].as_str().unwrap().to_owned()
    };
    let (read, operate) = (scoped("read"), scoped("operate"));
    assert_eq!(with(&read, "GET", "/messages", None).status, 200);
    assert_eq!(with(&read, "POST", "/messages", Some(message(Some("a")))).refusal(), (403, "wrong_scope"));
    assert_eq!(with(&operate, "POST", "/messages", Some(message(Some("a")))).status, 201);
    assert_eq!(with(&operate, "POST", "/messages", Some(message(None))).refusal(), (400, "bad_message"));
    let rule = json!({ "from": "b", "to": "a", "type": "x" });
    assert_eq!(with(&operate, "POST", "/routing-rules", Some(rule)).refusal(), (403, "wrong_scope"));
}

#[test]
fn auto_start_rule_starts_a_stopped_recipient() {
    let plane = pair();
    task(&plane, json!({})).ok();
    let rule = json!({ "from": "a", "to": "b", "type": "wake.up", "auto_start": true });
    plane.post("/routing-rules", rule).ok();
    // The broker checks every second which instances to start.
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(plane.status("b"), "stopped", "a waiting message does not start it");
    task(&plane, json!({ "type": "wake.up" })).ok();
    until(&|| format!("b runs: {}", plane.get("/instances/b").body), || plane.status("b") == "running");
}

/// More messages cause more checks, but not earlier starts.
#[test]
fn failing_auto_start_is_retried_with_backoff() {
    let plane = pair();
    // The daemon cannot open its database.
    let database = plane.folder(&plane.get("/instances/b").ok()).join("memory/sessions.db");
    fs::create_dir_all(&database).unwrap();
    let rule = json!({ "from": "a", "to": "b", "type": "wake.up", "auto_start": true });
    plane.post("/routing-rules", rule).ok();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(7) {
        task(&plane, json!({ "type": "wake.up" })).ok();
        std::thread::sleep(Duration::from_millis(50));
    }
    let log = fs::read_to_string(plane.dir.path().join("server.log")).unwrap();
    let starts = log.matches("starting instance for a waiting message").count();
    assert!((2..=4).contains(&starts), "immediately, then after 1, 2 and 4 seconds: {starts}");
    fs::remove_dir(&database).unwrap();
    plane.until_status("b", "running");
}
