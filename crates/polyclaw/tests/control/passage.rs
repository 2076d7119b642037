//! Proxied changes of an instance are audited and made once.

use std::fs;

use serde_json::{Value, json};

use crate::messages::{pair, task};
use crate::plane::Plane;
use crate::sockets::Socket;

/// Newest last.
fn entries(plane: &Plane) -> Vec<Value> {
    let mut entries = plane.get("/audit?limit=1000").ok()["entries"].as_array().unwrap().clone();
    entries.reverse();
    entries
}

/// The actions after the earlier ones.
fn since(plane: &Plane, count: usize) -> Vec<String> {
    let text_of = |entry: &Value| entry["action"].as_str().unwrap().to_owned();
    entries(plane)[count..].iter().map(text_of).collect()
}

#[test]
fn proxied_change_is_audited_with_hashes_before_and_after() {
    let plane = Plane::new();
    let made = plane.started("one");
    let token = plane.post("/tokens", json!({ "name": "x", "scope": "admin" })).ok();
    let bearer = format!("Bearer {}", token["secret"].as_str().unwrap());
    let call = |method: &str, path: &str, body: Value| {
        let path = format!("/instances/one/gateway/{path}");
        plane.call(method, &path, Some(body), &[("authorization", &bearer)])
    };
    let start = entries(&plane).len();
    for path in ["agents", "sessions", "approvals", "v1/models"] {
        plane.get(&format!("/instances/one/gateway/{path}")).ok();
    }
    let asked = json!({ "channel": "telegram", "peer": { "id": "1" }, "text": "hi" });
    call("POST", "route/explain", asked).ok();
    call("POST", "sessions/cleanup", json!({ "dry_run": true })).ok();
    assert!(since(&plane, start).is_empty(), "reads are not recorded: {:?}", since(&plane, start));
    call("POST", "agents", json!({ "agent_id": "ops", "name": "Ops" })).ok();
    call("PATCH", "agents/ops", json!({ "name": "Operations" })).ok();
    call("DELETE", "agents/ops", json!({})).ok();
    let frames = entries(&plane)[start..].to_vec();
    let actions: Vec<&str> = frames.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["gateway.ask", "gateway.done"].repeat(3));
    let who = format!("token:{}", token["id"].as_str().unwrap());
    assert!(frames.iter().all(|entry| entry["who"] == who && entry["target"] == made["id"]), "{frames:?}");
    let hashes = |n: usize| (frames[n]["before"].as_str(), frames[n]["after"].as_str());
    let (changed, removed) = (hashes(3), hashes(5));
    assert!(changed.0.is_some() && changed.1.is_some() && changed.0 != changed.1, "{changed:?}");
    assert_eq!((removed.0, removed.1), (changed.1, None), "the deleted resource is the changed one");
    let detail = frames[3]["detail"].as_str().unwrap();
    assert_eq!(detail, "one: PATCH /api/v1/agents/ops → 200");
    let refused = entries(&plane).len();
    assert_eq!(call("DELETE", "agents/nobody", json!({})).status, 404);
    assert!(entries(&plane)[refused + 1]["detail"].as_str().unwrap().ends_with("→ 404"));
    assert_eq!(plane.run(&["audit", "verify"]).0, 0);
}

#[test]
fn proxied_chat_message_is_one_audit_entry_without_text() {
    let plane = Plane::new();
    plane.started("one");
    let start = entries(&plane).len();
    let path = "/instances/one/gateway/sessions/agent%3Amain%3Aweb%3Adm%3Ame/messages";
    plane.post(path, json!({ "text": "whispered" })).ok();
    plane.post("/logins", json!({})).ok();
    assert_eq!(since(&plane, start), ["gateway.message", "login.make"]);
    assert!(!json!(entries(&plane)).to_string().contains("whispered"));
}

#[test]
fn proxied_socket_is_audited_once_at_its_first_change() {
    let plane = Plane::new();
    plane.started("one");
    let start = entries(&plane).len();
    let mut socket = Socket::open(&plane, "/api/instances/one/gateway/ws");
    let mut ask = |method: &str, params: Value| {
        socket.say(&json!({ "type": "req", "id": 1, "method": method, "params": params }).to_string());
        socket.until("res")
    };
    assert_eq!(ask("watch", json!({}))["ok"], true);
    assert!(since(&plane, start).is_empty(), "reads are not recorded: {:?}", since(&plane, start));
    for _ in 0..2 {
        assert_eq!(ask("stop", json!({ "session_key": "agent:main:main" }))["type"], "res");
        assert_eq!(since(&plane, start), ["gateway.socket"]);
    }
    assert_eq!(entries(&plane)[start]["detail"], "one: /api/v1/ws");
}

#[test]
fn instance_message_is_audited_once_and_refused_one_not() {
    let plane = pair();
    let start = entries(&plane).len();
    let sent = task(&plane, json!({ "idempotency_key": "k" })).ok();
    task(&plane, json!({ "idempotency_key": "k" })).ok();
    assert_eq!(task(&plane, json!({ "type": "note" })).status, 403);
    let frames = entries(&plane)[start..].to_vec();
    assert_eq!((frames.len(), &frames[0]["action"]), (1, &json!("message.send")), "{frames:?}");
    assert_eq!((&frames[0]["target"], &frames[0]["detail"]), (&sent["id"], &json!("a → b: task.handoff")));
}

#[test]
fn idempotency_key_covers_tokens_logins_and_gateway_calls() {
    let plane = Plane::new();
    plane.started("one");
    let keyed = |method: &str, path: &str, body: Value, key: &str| {
        plane.call(method, path, Some(body), &[("idempotency-key", key)])
    };
    let new = || json!({ "name": "x", "scope": "read" });
    let (first, again) = (keyed("POST", "/tokens", new(), "t"), keyed("POST", "/tokens", new(), "t"));
    assert_eq!((first.status, again.status, again.replayed), (201, 201, true));
    assert_eq!((&first.body["id"], &again.body["secret"]), (&again.body["id"], &Value::Null), "shown once");
    let secret = first.body["secret"].as_str().unwrap().to_owned();
    assert_eq!(plane.get("/tokens").ok()["tokens"].as_array().unwrap().len(), 1);
    for file in ["registry.db", "registry.db-wal"] {
        let bytes = fs::read(plane.home().join("cp").join(file)).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{file}");
    }
    let path = format!("/tokens/{}", first.body["id"].as_str().unwrap());
    assert_eq!(keyed("DELETE", &path, json!({}), "d").status, 204);
    let again = keyed("DELETE", &path, json!({}), "d");
    assert_eq!((again.status, again.replayed), (204, true), "the first response, not 404");
    let (first, again) =
        (keyed("POST", "/logins", json!({}), "l").ok(), keyed("POST", "/logins", json!({}), "l").ok());
    assert_eq!(first["code"], again["code"]);
    let agents = "/instances/one/gateway/agents";
    let agent = || json!({ "agent_id": "ops", "name": "Ops" });
    let (first, again) = (keyed("POST", agents, agent(), "g"), keyed("POST", agents, agent(), "g"));
    assert_eq!((first.status, again.status, again.replayed), (201, 201, true), "{}", again.body);
    assert_eq!(plane.post(agents, agent()).status, 409, "without a key it is another call");
    let other = json!({ "agent_id": "two", "name": "Two" });
    assert_eq!(keyed("POST", agents, other, "g").refusal(), (422, "idempotency_key_used"));
}

#[test]
fn tokens_and_imports_are_paginated() {
    let plane = Plane::new();
    for name in ["a", "b", "c"] {
        plane.post("/tokens", json!({ "name": name, "scope": "read" })).ok();
        let home = plane.dir.path().join(name);
        crate::plane::put(&home, "openclaw.json", "{}");
        plane.post("/import/openclaw", json!({ "path": home })).ok();
    }
    for (path, list, field) in [("/tokens", "tokens", "name"), ("/import/runs", "runs", "source")] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = plane.get(&format!("{path}?limit=2{cursor}")).ok();
            let rows = page[list].as_array().unwrap();
            assert!(rows.len() <= 2);
            seen.extend(rows.iter().map(|row| row[field].as_str().unwrap().to_owned()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let ends: Vec<char> =
            seen.iter().map(|name| name.replace("/openclaw.json", "").pop().unwrap()).collect();
        assert_eq!(ends, ['c', 'b', 'a'], "{path}: each once, newest first");
        assert_eq!(plane.get(&format!("{path}?cursor=x")).refusal(), (400, "invalid_parameter"));
    }
}
