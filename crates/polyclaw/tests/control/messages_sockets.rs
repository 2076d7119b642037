//! Live events of messages and instances.

use std::time::Instant;

use serde_json::{Value, json};

use crate::messages::{allow, pair, pending, task, word};
use crate::plane::Plane;
use crate::sockets::{A_SECOND, Socket};

#[test]
fn message_socket_streams_events_without_payloads() {
    let plane = pair();
    let rules = plane.get("/routing-rules").ok()["rules"].clone();
    assert_eq!((&rules[0]["from_name"], &rules[0]["to_name"]), (&json!("a"), &json!("b")), "{rules}");
    let first = task(&plane, json!({ "payload": { "text": "whispered" } })).ok()["id"].clone();
    let mut socket = Socket::open(&plane, "/ws/messages");
    let snapshot = socket.next();
    let recent = snapshot["recent_events"].as_array().unwrap();
    assert_eq!((&snapshot["type"], recent.len()), (&json!("snapshot"), 2));
    assert_eq!((&recent[0]["kind"], &recent[0]["message_id"]), (&json!("created"), &first));
    word(&plane, &pending(&plane, "b")[0], "ack").ok();
    let began = Instant::now();
    let mut seen: Vec<Value> = vec![snapshot.clone()];
    for kind in ["delivery_attempted", "delivered", "acknowledged"] {
        let event = socket.until("message_event");
        assert_eq!((&event["kind"], &event["message_id"]), (&json!(kind), &first));
        assert_eq!((&event["from_name"], &event["to_name"]), (&json!("a"), &json!("b")));
        seen.push(event);
    }
    assert!(began.elapsed() < A_SECOND, "the event arrived after {:?}", began.elapsed());
    assert!(!json!(seen).to_string().contains("whispered"));
    socket.say(r#"{"type":"ping"}"#);
    socket.until("pong");
    socket.say("nonsense");
    assert_eq!(socket.close_code(), 1008);
}

#[test]
fn message_socket_filters_by_instance_or_correlation() {
    let plane = pair();
    plane.create("c");
    allow(&plane, "c", "b", "task.*");
    let mut of_a = Socket::open(&plane, "/ws/messages?instance=a");
    let mut together = Socket::open(&plane, "/ws/messages?correlation_id=x");
    for socket in [&mut of_a, &mut together] {
        assert_eq!(socket.next()["recent_events"], json!([]));
    }
    task(&plane, json!({ "from": "c" })).ok();
    let own = task(&plane, json!({})).ok()["id"].clone();
    let related = task(&plane, json!({ "from": "c", "correlation_id": "x" })).ok()["id"].clone();
    assert_eq!(of_a.until("message_event")["message_id"], own);
    assert_eq!(together.until("message_event")["message_id"], related);
    let mut unknown = Socket::open(&plane, "/ws/messages?instance=nobody");
    assert_eq!(unknown.next()["code"], "unknown_instance");
    assert_eq!(unknown.close_code(), 4404);
}

#[test]
fn lagging_message_socket_gets_a_new_snapshot() {
    let plane = pair();
    let mut slow = Socket::clogged(&plane, "/ws/messages");
    // Far more than the buffer of one reader, while it reads nothing.
    let sent: Vec<Value> = (0..300).map(|_| task(&plane, json!({})).ok()["id"].clone()).collect();
    let last = sent.last().unwrap();
    let (mut snapshots, mut one_by_one) = (0, 0);
    loop {
        let frame = slow.next();
        let events = match frame["type"].as_str() {
            Some("pong") => continue,
            Some("snapshot") => {
                snapshots += 1;
                frame["recent_events"].as_array().unwrap().clone()
            }
            _ => {
                one_by_one += 1;
                vec![frame]
            }
        };
        if events.iter().any(|event| event["message_id"] == *last && event["kind"] == "queued") {
            break;
        }
    }
    assert!(snapshots > 1, "one at the start, and one after it fell behind");
    assert!(one_by_one < 2 * sent.len(), "it got every event separately: it never fell behind");
}

#[test]
fn event_socket_names_the_instance_of_each_event() {
    let plane = Plane::new();
    plane.started("one");
    let mut socket = Socket::open(&plane, "/ws/events?kind=message.*");
    assert_eq!(socket.next()["type"], "snapshot");
    let path = "/instances/one/gateway/sessions/agent%3Anobody%3Aweb%3Adm%3Ax/messages";
    assert_eq!(plane.post(path, json!({ "text": "hello" })).status, 404);
    let event = socket.until("event");
    assert_eq!((&event["kind"], &event["instance"]["name"]), (&json!("message.refused"), &json!("one")));
    let mut unknown = Socket::open(&plane, "/ws/events?instance=nobody");
    assert_eq!(unknown.next()["code"], "unknown_instance");
}
