//! `/mcp` on the wire: the door in front of it, and turns that are waited for.

use std::time::Instant;

use reqwest::Method;
use serde_json::json;

use crate::instance::{Answer, Instance, ONE};

#[tokio::test]
async fn mcp_route_has_the_same_guards_as_the_api() {
    let instance = Instance::start().await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let call = |request: reqwest::RequestBuilder| {
        Answer::of(request.header("accept", "application/json, text/event-stream").json(&body))
    };
    call(instance.bare(Method::POST, "/mcp")).await.refuses(401, "unauthorized");
    let foreign = instance.request(Method::POST, "/mcp").header("host", "evil.example");
    call(foreign).await.refuses(403, "host_not_allowed");
    let foreign = instance.request(Method::POST, "/mcp").header("origin", "https://evil.example");
    call(foreign).await.refuses(403, "origin_not_allowed");
    let listed = call(instance.request(Method::POST, "/mcp")).await;
    assert_eq!(listed.ok()["result"]["tools"].as_array().map(Vec::len), Some(11), "{}", listed.text);
}

#[tokio::test]
async fn turn_request_with_wait_returns_when_turn_ends() {
    let instance = Instance::start().await;
    instance.hold().await;
    let turn = instance.get(&format!("/api/v1/sessions/{ONE}")).await.ok()["running_turn_id"].clone();
    let path = |wait: &str| format!("/api/v1/turns/{}?wait={wait}", turn.as_str().unwrap());
    let early = instance.get(&path("0.1")).await;
    assert!(early.ok()["reply"].is_null() && early.body["state"] == "running", "{}", early.text);
    instance.gate.add_permits(1);
    let began = Instant::now();
    let done = instance.get(&path("30")).await;
    assert_eq!((&done.ok()["reply"]["state"], &done.body["state"]), (&json!("done"), &json!("done")));
    assert!(began.elapsed().as_secs() < 20, "it is told at once");
    instance.get(&path("601")).await.refuses(400, "invalid_parameter");
    instance.get("/api/v1/turns/none?wait=1").await.refuses(404, "unknown_turn");
}
