//! A started operation completes even if the caller disconnects.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::plane::{Plane, is_alive, signal, until, wait};

/// Sends a request and disconnects before the response.
fn call_and_disconnect(plane: &Plane, method: &str, path: &str, body: Value, headers: &[(&str, &str)]) {
    let asked = async {
        let call = plane.calling(method, path, Some(body), headers);
        tokio::time::timeout(Duration::from_secs(1), call).await.is_err()
    };
    assert!(wait(asked), "it was answered immediately");
}

#[test]
fn repeated_idempotency_key_gets_answer_of_abandoned_call() {
    let plane = Plane::new();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    let (path, key) = ("/instances/one/gateway/sessions", [("idempotency-key", "k")]);
    let again = || plane.call("POST", path, Some(json!({})), &key);
    signal("STOP", pid);
    call_and_disconnect(&plane, "POST", path, json!({}), &key);
    assert_eq!(again().refusal(), (409, "request_in_progress"));
    signal("CONT", pid);
    until(&|| format!("the response is stored: {}", again().body), || again().status == 201);
    assert!(again().replayed);
    let sessions = plane.get("/instances/one/gateway/sessions").ok()["sessions"].clone();
    assert_eq!(sessions.as_array().unwrap().len(), 1, "one was created: {sessions}");
}

#[test]
fn refused_config_is_rolled_back_after_caller_left() {
    let plane = Plane::new();
    let made = plane.started("one");
    // The instance has an agent of that name, which a config check cannot know.
    plane.post("/instances/one/gateway/agents", json!({ "agent_id": "made", "name": "Made" })).ok();
    let file = plane.folder(&made).join("config.toml");
    let text = || fs::read_to_string(&file).unwrap();
    let (before, etag) = (text(), plane.get("/instances/one/config").etag.unwrap());
    let pid = made["pid"].as_i64().unwrap();
    signal("STOP", pid);
    let change = json!({ "agents": { "list": [{ "id": "other", "name": "Made" }] } });
    call_and_disconnect(&plane, "PATCH", "/instances/one/config", change, &[("if-match", &etag)]);
    assert_ne!(text(), before, "it is written, but not applied yet");
    signal("CONT", pid);
    until(&|| format!("the old config is restored: {}", text()), || text() == before);
    let rolled_back = || plane.get("/audit").body.to_string().contains("config.rollback");
    until(&|| "it is in the audit log".to_owned(), rolled_back);
}

#[test]
fn abandoned_stop_kills_unresponsive_instance_at_timeout() {
    let plane = Plane::new();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    signal("STOP", pid);
    call_and_disconnect(&plane, "POST", "/instances/one/stop?timeout=3", json!({}), &[]);
    assert!(is_alive(pid));
    plane.until_status("one", "stopped");
    assert!(!is_alive(pid));
}
