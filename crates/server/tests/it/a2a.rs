//! A2A on the wire: what the protocol's own clients do not try.

use polyclaw_testkit::wait_until;
use reqwest::Method;
use serde_json::{Value, json};

use crate::instance::{Answer, Instance};

const MAIN: &str = "/a2a/main";

fn said(id: &str, text: &str) -> Value {
    json!({ "kind": "message", "role": "user", "messageId": id, "parts": [{ "kind": "text", "text": text }] })
}

async fn call(instance: &Instance, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let answer = instance.post(MAIN, body).await;
    assert_eq!((&answer.ok()["jsonrpc"], &answer.body["id"]), (&json!("2.0"), &json!(7)), "{}", answer.text);
    answer.body
}

#[tokio::test]
async fn repeated_a2a_message_returns_same_task() {
    let instance = Instance::start().await;
    let send = |message: Value| call(&instance, "message/send", json!({ "message": message }));
    let first = send(said("m1", "hello")).await["result"].take();
    assert_eq!((&first["kind"], &first["status"]["state"]), (&json!("task"), &json!("completed")), "{first}");
    assert!(!first["artifacts"][0]["parts"][0]["text"].as_str().unwrap().is_empty(), "{first}");
    assert_eq!(send(said("m1", "hello")).await["result"], first, "the same message is the same task");
    let mut next = said("m2", "more");
    next["contextId"] = first["contextId"].clone();
    let next = send(next).await["result"].take();
    assert_eq!(next["contextId"], first["contextId"]);
    assert_ne!(next["id"], first["id"]);
    let turn = instance.get(&format!("/api/v1/turns/{}", first["id"].as_str().unwrap())).await;
    let context = first["contextId"].as_str().unwrap();
    assert_eq!(turn.ok()["session_key"], format!("agent:main:a2a:dm:{context}"));
    let mut late = said("m3", "again");
    late["taskId"] = first["id"].clone();
    assert_eq!(send(late).await["error"]["code"], -32004, "it is over");
}

#[tokio::test]
async fn running_a2a_task_can_be_read_and_cancelled() {
    let instance = Instance::start().await;
    let unblocked = json!({ "message": said("m1", "hold"), "configuration": { "blocking": false } });
    let started = call(&instance, "message/send", unblocked).await["result"].take();
    let which = json!({ "id": started["id"] });
    let state =
        || async { call(&instance, "tasks/get", which.clone()).await["result"]["status"]["state"].take() };
    wait_until("it works", async || state().await == "working").await;
    let ended = call(&instance, "tasks/cancel", which.clone()).await;
    assert_eq!(ended["result"]["status"]["state"], "canceled", "{ended}");
    assert_eq!(call(&instance, "tasks/cancel", which.clone()).await["error"]["code"], -32002);
    assert_eq!(state().await, "canceled");
}

#[tokio::test]
async fn accepted_message_is_deduplicated_after_its_task_ended() {
    let instance = Instance::start().await;
    let send = async |message: Value| {
        let params = json!({ "message": message, "configuration": { "blocking": false } });
        call(&instance, "message/send", params).await
    };
    let task = send(said("m1", "hold")).await["result"]["id"].take();
    let of_task = |id: &str| {
        let mut message = said(id, "more");
        message["taskId"] = task.clone();
        message
    };
    let taken = send(of_task("m2")).await["result"]["id"].take();
    assert!(taken.is_string());
    for id in [&task, &taken] {
        call(&instance, "tasks/cancel", json!({ "id": id })).await;
    }
    assert_eq!(send(of_task("m3")).await["error"]["code"], -32004, "it is over");
    assert_eq!(send(of_task("m2")).await["result"]["id"], taken);
}

#[tokio::test]
async fn only_exposed_agents_are_reachable_and_only_with_token() {
    let instance = Instance::start().await;
    for path in ["/.well-known/agent-card.json", "/a2a/main/.well-known/agent-card.json"] {
        let card = instance.get(path).await;
        assert_eq!(card.ok()["url"], format!("{}/a2a/main", instance.url));
        Answer::of(instance.bare(Method::GET, path)).await.refuses(401, "unauthorized");
    }
    instance.post("/api/v1/agents", json!({ "agent_id": "ops", "name": "Ops" })).await.ok();
    for hidden in ["ops", "nobody", "No%20One"] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {} });
        instance.post(&format!("/a2a/{hidden}"), body).await.refuses(404, "not_exposed");
    }
    // A turn of another conversation is no task.
    let own = instance.say("hello").await;
    let looked = call(&instance, "tasks/get", json!({ "id": own.body["turn_id"] })).await;
    assert_eq!(
        (&looked["error"]["code"], &looked["error"]["data"]["code"]),
        (&json!(-32001), &json!("unknown_turn"))
    );
}

#[tokio::test]
async fn invalid_a2a_requests_get_protocol_error_codes() {
    let instance = Instance::start().await;
    let file =
        json!({ "message": { "messageId": "m", "role": "user", "parts": [{ "kind": "file", "file": {} }] } });
    for (method, params, number) in [
        ("message/sand", json!({}), -32601),
        ("message/send", json!({}), -32602),
        ("message/send", json!({ "message": said("", "hello") }), -32602),
        ("message/stream", json!({ "message": said("m", "  ") }), -32602),
        ("message/send", file, -32005),
        ("tasks/get", json!({ "id": 7 }), -32602),
        ("tasks/cancel", json!({ "id": "none" }), -32001),
    ] {
        let answer = call(&instance, method, params.clone()).await;
        assert_eq!(answer["error"]["code"], number, "{method} {params}: {answer}");
    }
    for (body, number) in [(json!({ "method": "tasks/get" }), -32600), (json!([]), -32600)] {
        assert_eq!(instance.post(MAIN, body).await.ok()["error"]["code"], number);
    }
    let broken = instance.request(Method::POST, MAIN).header("content-type", "application/json").body("{");
    assert_eq!(Answer::of(broken).await.ok()["error"]["code"], -32700);
}

#[tokio::test]
async fn a2a_stream_sends_task_text_and_final_status() {
    let instance = Instance::start().await;
    let body = json!({
        "jsonrpc": "2.0", "id": "s", "method": "message/stream", "params": { "message": said("m1", "hello") },
    });
    let stream = instance.post(MAIN, body).await;
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    let events = stream.text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = events.map(|data| serde_json::from_str(data).unwrap()).collect();
    assert!(events.iter().all(|event| event["id"] == "s"), "{events:?}");
    let (first, last) = (&events[0]["result"], &events[events.len() - 1]["result"]);
    assert_eq!(
        (&first["kind"], &last["kind"], &last["final"]),
        (&json!("task"), &json!("status-update"), &json!(true))
    );
    assert_eq!(last["status"]["state"], "completed");
    let pieces: String = events[1..events.len() - 1]
        .iter()
        .map(|event| event["result"]["artifact"]["parts"][0]["text"].as_str().unwrap())
        .collect();
    let stored = call(&instance, "tasks/get", json!({ "id": first["id"] })).await;
    assert_eq!(stored["result"]["artifacts"][0]["parts"][0]["text"], pieces);
}
