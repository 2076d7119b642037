//! Messages between instances, as instances and operators use them. The instances do not run here: the test fetches
//! their messages.

use std::time::Duration;

use serde_json::{Value, json};

use crate::plane::{Answer, Plane, free_port, until};

/// A control plane with two instances, `a` and `b`, and a rule that lets `a` write tasks to `b`.
pub fn pair() -> Plane {
    let plane = Plane::new();
    for name in ["a", "b"] {
        plane.create(name);
    }
    allow(&plane, "a", "b", "task.*");
    plane
}

#[track_caller]
pub fn allow(plane: &Plane, from: &str, to: &str, kind: &str) -> Value {
    plane.post("/routing-rules", json!({ "from": from, "to": to, "type": kind })).ok()
}

pub fn task(plane: &Plane, more: Value) -> Answer {
    let mut body = json!({ "from": "a", "to": "b", "type": "task.handoff", "payload": { "task": "look" } });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    plane.post("/messages", body)
}

pub fn pending(plane: &Plane, of: &str) -> Vec<Value> {
    let answer = plane.get(&format!("/instances/{of}/messages/pending?limit=100")).ok();
    answer["messages"].as_array().unwrap().clone()
}

pub fn word(plane: &Plane, message: &Value, verb: &str) -> Answer {
    let path = format!("/messages/{}/{verb}", message["id"].as_str().unwrap());
    plane.post(&path, json!({ "lease": message["lease"] }))
}

pub fn state(plane: &Plane, id: &Value) -> String {
    let found = plane.get(&format!("/messages/{}", id.as_str().unwrap())).ok();
    found["state"].as_str().unwrap().to_owned()
}

#[test]
fn gate_1_message_is_sent_received_and_acknowledged_once() {
    let plane = pair();
    let sent = task(&plane, json!({}));
    assert_eq!(
        (sent.status, &sent.body["state"], &sent.body["deduplicated"]),
        (201, &json!("queued"), &json!(false))
    );
    let answers = plane.get("/instances/b/messages/pending?only_answers=true").ok();
    assert_eq!(answers["messages"], json!([]), "a task is not an answer");
    let received = pending(&plane, "b");
    assert_eq!((received.len(), &received[0]["id"]), (1, &sent.body["id"]));
    assert_eq!(received[0]["payload"], json!({ "task": "look" }));
    assert_eq!((&received[0]["from_name"], &received[0]["hop_count"]), (&json!("a"), &json!(0)));
    assert!(pending(&plane, "b").is_empty(), "no other caller gets it");
    let lease = received[0]["lease"].as_str().unwrap();
    let again = plane.get(&format!("/instances/b/messages/pending?lease={lease}")).ok();
    assert_eq!(again["messages"][0]["attempts"], 1, "a repeated poll gets the same messages");
    let path = format!("/messages/{}/ack", received[0]["id"].as_str().unwrap());
    assert_eq!(plane.post(&path, json!({ "lease": "another" })).refusal(), (409, "lease_lost"));
    assert_eq!(word(&plane, &received[0], "renew").status, 200);
    assert_eq!(word(&plane, &received[0], "ack").ok()["state"], "acknowledged");
    assert_eq!(word(&plane, &received[0], "ack").status, 200, "a repeated acknowledgement succeeds");
    assert_eq!(word(&plane, &received[0], "fail").refusal(), (409, "lease_lost"));
    let events = plane.get(&format!("/messages/{}", received[0]["id"].as_str().unwrap())).ok();
    let acknowledged =
        events["events"].as_array().unwrap().iter().filter(|event| event["kind"] == "acknowledged");
    assert_eq!(acknowledged.count(), 1);
}

#[test]
fn gate_2_repeated_idempotency_key_returns_the_same_message() {
    let plane = pair();
    let first = task(&plane, json!({ "idempotency_key": "k" }));
    let again = task(&plane, json!({ "idempotency_key": "k", "payload": { "other": 1 } }));
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!((&again.body["id"], &again.body["deduplicated"]), (&first.body["id"], &json!(true)));
    assert_eq!(pending(&plane, "b").len(), 1);
}

#[test]
fn gate_3_message_over_the_hop_limit_is_refused() {
    let plane = pair();
    allow(&plane, "b", "a", "task.*");
    assert_eq!(task(&plane, json!({ "hop_count": 7 })).status, 201);
    assert_eq!(task(&plane, json!({ "hop_count": 8 })).refusal(), (422, "too_many_hops"));
    // Two instances that answer each other and always claim the first hop.
    let mut hops = Vec::new();
    for n in 0..9 {
        let (from, to) = if n % 2 == 0 { ("a", "b") } else { ("b", "a") };
        let answer = task(&plane, json!({ "from": from, "to": to, "correlation_id": "c", "hop_count": 0 }));
        hops.push(if answer.status == 201 { answer.body["hop_count"].as_i64().unwrap() } else { -1 });
    }
    assert_eq!(hops, [0, 1, 2, 3, 4, 5, 6, 7, -1]);
}

#[test]
fn gate_4_message_without_routing_rule_is_refused_and_not_stored() {
    let plane = pair();
    for refused in [json!({ "type": "note" }), json!({ "type": "task" }), json!({ "from": "b", "to": "a" })] {
        let answer = task(&plane, refused);
        assert_eq!(answer.refusal(), (403, "route_denied"));
        assert!(answer.body["error"]["message"].as_str().unwrap().contains("routing rule"));
    }
    assert_eq!(task(&plane, json!({ "to": "nobody" })).refusal(), (404, "unknown_instance"));
    assert_eq!(task(&plane, json!({ "type": "a b" })).refusal(), (400, "bad_message"));
    assert!(plane.get("/messages").ok()["messages"].as_array().unwrap().is_empty());
    let wrong = |body: Value| plane.post("/routing-rules", body);
    let rule = |from: &str, to: &str, kind: &str| json!({ "from": from, "to": to, "type": kind });
    assert_eq!(wrong(rule("a", "b", "task.*")).refusal(), (409, "rule_exists"));
    assert_eq!(wrong(rule("a", "nobody", "x")).refusal(), (404, "unknown_instance"));
    for bad in [rule("a", "a", "x"), rule("a", "b", "*"), rule("a", "b", "")] {
        assert_eq!(wrong(bad).refusal(), (400, "bad_rule"));
    }
    let rules = plane.get("/routing-rules").ok();
    let id = rules["rules"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(plane.delete(&format!("/routing-rules/{id}")).status, 204);
    assert_eq!(plane.delete(&format!("/routing-rules/{id}")).refusal(), (404, "unknown_rule"));
    assert_eq!(task(&plane, json!({})).refusal(), (403, "route_denied"));
    let actions = plane.get("/audit").ok();
    let actions: Vec<_> =
        actions["entries"].as_array().unwrap().iter().map(|one| one["action"].clone()).collect();
    assert_eq!(actions[..2], [json!("rule.delete"), json!("rule.create")]);
}

#[test]
fn gate_5_message_out_of_retries_or_expired_is_a_dead_letter() {
    let plane = pair();
    let rule = json!({ "from": "a", "to": "b", "type": "task.handoff", "max_retries": 2 });
    plane.post("/routing-rules", rule).ok();
    let id = task(&plane, json!({})).ok()["id"].clone();
    let first = pending(&plane, "b");
    assert_eq!(word(&plane, &first[0], "fail").ok()["state"], "failed");
    assert!(pending(&plane, "b").is_empty(), "it is retried later");
    let mut again = Vec::new();
    until(&|| "it is delivered again".to_owned(), || {
        again =
            plane.get("/instances/b/messages/pending?wait=5").ok()["messages"].as_array().unwrap().clone();
        !again.is_empty()
    });
    assert_eq!(word(&plane, &again[0], "fail").ok()["state"], "dead_letter");
    assert_eq!(state(&plane, &id), "dead_letter");
    let expiring = json!({ "from": "a", "to": "b", "type": "task.status", "ttl_secs": 1 });
    plane.post("/routing-rules", expiring).ok();
    let late = task(&plane, json!({ "type": "task.status" })).ok()["id"].clone();
    until(&|| "its time to live is over".to_owned(), || state(&plane, &late) == "dead_letter");
}

#[test]
fn gate_6_too_large_payload_is_refused() {
    let plane = pair();
    let text = |bytes: usize| json!({ "payload": { "t": "x".repeat(bytes - "{\"t\":\"\"}".len()) } });
    assert_eq!(task(&plane, text(64 * 1024)).status, 201);
    let refused = task(&plane, text(64 * 1024 + 1));
    assert_eq!(refused.refusal(), (413, "payload_too_large"));
    assert!(refused.body["error"]["message"].as_str().unwrap().contains("65537 bytes"));
    assert_eq!(task(&plane, text(2_000_000)).refusal(), (413, "body_too_large"));
}

#[test]
fn gate_7_secrets_are_redacted_before_storing() {
    let plane = pair();
    let canary = "sk-proj-abcdefghij0123456789";
    let payload = json!({
        "safe_field": "stays", "api_key": "short", "nested": [{ "Password": { "deep": "x" } }],
        "text": format!("my key is {canary}, keep it"), "note": plane.token(),
    });
    let sent = task(&plane, json!({ "payload": payload })).ok();
    assert_eq!(sent["redacted"], true, "the sender is told");
    assert_eq!(task(&plane, json!({})).ok()["redacted"], false);
    assert_eq!(task(&plane, json!({ "correlation_id": canary })).refusal(), (400, "bad_message"));
    assert_eq!(task(&plane, json!({ "idempotency_key": canary })).refusal(), (400, "bad_message"));
    assert_eq!(task(&plane, json!({ "type": format!("task.{canary}") })).refusal(), (400, "bad_message"));
    let mark = "[redacted secret]";
    let received = pending(&plane, "b").into_iter().find(|one| one["id"] == sent["id"]).unwrap();
    let expected = json!({
        "safe_field": "stays", "api_key": mark, "nested": [{ "Password": mark }],
        "text": format!("my key is {mark}, keep it"), "note": mark,
    });
    assert_eq!(received["payload"], expected);
}

#[test]
fn secrets_of_the_sender_are_redacted_in_its_messages() {
    let plane = pair();
    let made = plane.post("/tokens", json!({ "name": "reader", "scope": "read" })).ok();
    let given_out = made["secret"].as_str().unwrap();
    let folder = plane.folder(&plane.get("/instances/a").ok());
    let own = "daemon-token-of-a-4711";
    std::fs::write(folder.join("token"), own).unwrap();
    let send = |text: &str| {
        let sent = task(&plane, json!({ "payload": { "text": text } })).ok();
        let received = pending(&plane, "b").into_iter().find(|one| one["id"] == sent["id"]).unwrap();
        received["payload"]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(send("it is canary-of-a-4711"), "it is canary-of-a-4711", "a word like any other");
    let config = folder.join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let provider = "\n[providers.lab]\nkind = \"openai\"\napi_key = \"canary-of-a-4711\"\n";
    std::fs::write(&config, text + provider).unwrap();
    let mark = "[redacted secret]";
    let reply = format!("{own}, {given_out} and canary-of-a-4711");
    assert_eq!(send(&reply), format!("{mark}, {mark} and {mark}"));
    assert_eq!(send(&"0f".repeat(32)), "0f".repeat(32), "a hash is no token");
    for secret in [own, given_out, "canary-of-a-4711"] {
        for word in ["correlation_id", "trace_id"] {
            assert_eq!(task(&plane, json!({ word: secret })).refusal(), (400, "bad_message"), "{word}");
        }
    }
}

/// The poll of a killed process may still wait on a connection that is not closed yet.
#[test]
fn message_polled_by_dead_process_goes_to_next_epoch() {
    let plane = pair();
    let ask = |life: &str, wait: u8| {
        let path = format!("/instances/b/messages/pending?process_epoch={life}&wait={wait}");
        plane.get(&path).ok()["messages"].as_array().unwrap().clone()
    };
    std::thread::scope(|scope| {
        let dead = scope.spawn(|| ask("first", 4));
        std::thread::sleep(Duration::from_millis(500));
        assert!(ask("second", 0).is_empty());
        let sent = task(&plane, json!({})).ok();
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(ask("second", 0)[0]["id"], sent["id"]);
        assert!(dead.join().unwrap().is_empty());
    });
}

#[test]
fn long_poll_returns_new_message_or_empty_at_timeout() {
    let plane = pair();
    let empty = plane.get("/instances/b/messages/pending?wait=1").ok();
    assert_eq!(empty, json!({ "messages": [] }));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| plane.get("/instances/b/messages/pending?wait=60").ok());
        let sent = task(&plane, json!({})).ok();
        assert_eq!(waiting.join().unwrap()["messages"][0]["id"], sent["id"]);
    });
    for wrong in ["wait=61", "limit=0", "limit=101", "process_epoch=", "lease="] {
        let refused = plane.get(&format!("/instances/b/messages/pending?{wrong}"));
        assert_eq!(refused.refusal(), (400, "invalid_parameter"), "{wrong}");
    }
    assert_eq!(plane.get("/instances/nobody/messages/pending").refusal(), (404, "unknown_instance"));
}

#[test]
fn command_line_manages_routing_rules_and_messages() {
    let plane = Plane::new();
    for name in ["a", "b"] {
        plane.run(&["instances", "create", name, "--port", &free_port().to_string()]);
    }
    let (code, rule) = plane.run(&["messages", "rules", "allow", "a", "b", "task.*", "--max-retries", "1"]);
    assert_eq!((code, &rule["ok"]["type"], &rule["ok"]["max_retries"]), (0, &json!("task.*"), &json!(1)));
    let (code, sent) = plane.run(&["messages", "send", "a", "b", "task.handoff", r#"{"task":"x"}"#]);
    assert_eq!((code, &sent["ok"]["state"]), (0, &json!("queued")));
    let id = sent["ok"]["id"].as_str().unwrap();
    assert_eq!(plane.run(&["messages", "show", id]).1["ok"]["payload"], json!({ "task": "x" }));
    let (code, refused) = plane.run(&["messages", "replay", id]);
    assert_eq!((code, refused["error"]["code"].as_str()), (4, Some("not_dead_letter")));
    word(&plane, &pending(&plane, "b")[0], "fail");
    assert_eq!(plane.run(&["messages", "dead-letter"]).1["ok"]["messages"][0]["id"], id);
    assert_eq!(plane.run(&["messages", "replay", id]).1["ok"]["state"], "queued");
    let listed = plane.run(&["messages", "list", "--to", "b", "--state", "queued"]).1;
    assert_eq!(listed["ok"]["messages"].as_array().unwrap().len(), 1);
    let rule = rule["ok"]["id"].as_str().unwrap();
    assert_eq!(plane.run(&["messages", "rules", "list"]).1["ok"]["rules"][0]["id"], rule);
    assert_eq!(plane.run(&["messages", "rules", "remove", rule]).0, 0);
    assert_eq!(plane.run(&["messages", "send", "a", "b", "task.handoff", "{}"]).0, 1);
    assert_eq!(plane.run(&["messages", "send", "a", "b", "task.handoff", "{"]).0, 2);
}
