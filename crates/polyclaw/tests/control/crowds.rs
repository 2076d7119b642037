//! Concurrent calls for the same thing: one succeeds, and the others get the reason why they failed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::messages::{pair, pending, task};
use crate::plane::{Answer, Plane, free_port, wait};

const CROWD: usize = 20;

/// Makes this many concurrent calls over open connections.
fn at_once(plane: &Plane, method: &str, path: &str, body: impl Fn(usize) -> Option<Value>) -> Vec<Answer> {
    let together = Barrier::new(CROWD);
    let calls = (0..CROWD).map(|n| {
        let (body, together) = (body(n), &together);
        async move {
            plane.calling("GET", "/version", None, &[]).await.ok();
            together.wait().await;
            plane.calling(method, path, body, &[]).await
        }
    });
    wait(futures_util::future::join_all(calls))
}

/// Asserts that one call succeeded, and that all others failed for this reason.
#[track_caller]
fn assert_one_was_created(answers: &[Answer], refusal: &str) {
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    assert_eq!(made.len(), 1);
    refused.iter().for_each(|answer| assert_eq!(answer.refusal(), (409, refusal)));
}

#[test]
fn concurrent_creates_succeed_once_and_name_the_conflict() {
    let plane = Plane::new();
    assert_one_was_created(
        &at_once(&plane, "POST", "/instances", |_| Some(json!({ "name": "a" }))),
        "name_taken",
    );
    let port = free_port();
    let named = |n| Some(json!({ "name": format!("b{n}"), "port": port }));
    assert_one_was_created(&at_once(&plane, "POST", "/instances", named), "instance_port_taken");
    let listed = plane.get("/instances").ok()["instances"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let folders = std::fs::read_dir(plane.home().join("cp/instances")).unwrap().count();
    assert_eq!(folders, 2, "rejected calls left no folder");
    let rule = json!({ "from": listed[0]["id"], "to": listed[1]["id"], "type": "task.*" });
    assert_one_was_created(&at_once(&plane, "POST", "/routing-rules", |_| Some(rule.clone())), "rule_exists");
}

#[test]
fn concurrent_sends_with_one_idempotency_key_create_one_message() {
    let plane = pair();
    let message =
        json!({ "from": "a", "to": "b", "type": "task.handoff", "payload": {}, "idempotency_key": "k" });
    let answers = at_once(&plane, "POST", "/messages", |_| Some(message.clone()));
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 201)));
    let ids: BTreeSet<&str> = answers.iter().map(|answer| answer.body["id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), pending(&plane, "b").len()), (1, 1), "{ids:?}");
}

#[test]
fn concurrent_fetches_never_return_the_same_message() {
    const SENT: usize = 60;
    let plane = pair();
    (0..SENT).for_each(|_| drop(task(&plane, json!({})).ok()));
    // More callers than messages.
    let answers = at_once(&plane, "GET", "/instances/b/messages/pending?limit=5", |_| None);
    let handed: Vec<Value> =
        answers.into_iter().flat_map(|answer| answer.ok()["messages"].as_array().unwrap().clone()).collect();
    let ids: BTreeSet<&str> = handed.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!((handed.len(), ids.len()), (SENT, SENT));
    assert!(handed.iter().all(|one| one["attempts"] == 1), "{handed:?}");
}
