use polyclaw_testkit::wait_until;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::instance::{Instance, ONE, ONE_KEY};

fn at(rest: &str) -> String {
    format!("/api/v1/sessions/{ONE}{rest}")
}

#[tokio::test]
async fn session_is_created_shown_changed_and_deleted() {
    let instance = Instance::start().await;
    let created = instance.post("/api/v1/sessions", json!({ "title": "Plans" })).await;
    assert_eq!(created.status, StatusCode::CREATED);
    let key = created.body["session_key"].as_str().unwrap().replace(':', "%3A");
    let path = format!("/api/v1/sessions/{key}");
    let shown = instance.get(&path).await;
    assert_eq!((&shown.body["title"], &shown.body["agent_id"]), (&json!("Plans"), &json!("main")));
    assert_eq!((&shown.body["queued"], &shown.body["running_turn_id"]), (&json!(0), &Value::Null));
    let changed = instance.patch(&path, json!({ "model": "other/model" })).await;
    assert_eq!(changed.body["model"], "other/model");
    assert_eq!(instance.patch(&path, json!({ "model": null })).await.body["model"], Value::Null);
    assert_eq!(instance.delete(&path).await.status, StatusCode::NO_CONTENT);
    instance.get(&path).await.refuses(404, "unknown_session");
}

#[tokio::test]
async fn invalid_session_changes_are_refused() {
    let instance = Instance::start().await;
    instance.say("hello").await;
    instance.patch(&at(""), json!({})).await.refuses(400, "invalid_body");
    instance.patch(&at(""), json!({ "model": "nonsense" })).await.refuses(400, "invalid_body");
    instance.patch(&at(""), json!({ "active_agent_id": "nobody" })).await.refuses(404, "unknown_agent");
    instance.patch(&at(""), json!({ "colour": "red" })).await.refuses(400, "invalid_body");
    instance.post("/api/v1/sessions", json!({ "agent": "nobody" })).await.refuses(404, "unknown_agent");
}

#[tokio::test]
async fn sessions_are_listed_newest_first_in_pages() {
    let instance = Instance::start().await;
    let say = async |name: &str| {
        let path = format!("/api/v1/sessions/agent%3Amain%3Aweb%3Adm%3A{name}/messages?wait=5");
        instance.post(&path, json!({ "text": "hi" })).await.ok();
    };
    for name in ["b", "d", "a", "c"] {
        say(name).await;
    }
    let first = instance.get("/api/v1/sessions?agent=main&limit=3").await;
    say("between").await;
    let cursor = first.ok()["next_cursor"].as_str().unwrap();
    let rest = instance.get(&format!("/api/v1/sessions?agent=main&limit=3&cursor={cursor}")).await;
    let names = |page: &Value| -> Vec<String> {
        let keys =
            page["sessions"].as_array().unwrap().iter().map(|one| one["session_key"].as_str().unwrap());
        keys.map(|key| key.rsplit(':').next().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (names(&first.body), names(rest.ok())),
        (vec!["c".into(), "a".into(), "d".into()], vec!["b".into()])
    );
    assert_eq!(rest.body["next_cursor"], Value::Null);
    let counts = instance.get("/api/v1/status").await;
    assert_eq!(counts.ok(), &json!({ "sessions": 5, "running": 0, "waiting": 0, "warnings": [] }));
    instance.get("/api/v1/sessions?limit=0").await.refuses(400, "invalid_parameter");
    instance.get("/api/v1/sessions?colour=red").await.refuses(400, "invalid_parameter");
    instance.get("/api/v1/sessions?status=sleepy").await.refuses(400, "invalid_parameter");
    instance.get("/api/v1/sessions?cursor=agent%3Amain%3Amain").await.refuses(400, "invalid_parameter");
}

#[tokio::test]
async fn transcript_lists_messages_in_pages() {
    let instance = Instance::start().await;
    instance.say("call clock").await;
    let transcript = instance.get(&at("/transcript")).await;
    let messages = transcript.ok()["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(messages[1]["parts"][0]["type"], "tool_call");
    assert_eq!(messages[3]["text"], "It said: clock ran");
    assert!(messages[0]["created_at"].as_str().unwrap().ends_with('Z'));
    let page = instance.get(&at("/transcript?limit=3")).await;
    let after = page.body["next_after"].as_i64().unwrap();
    let rest = instance.get(&at(&format!("/transcript?after={after}"))).await;
    assert_eq!(rest.body["messages"].as_array().unwrap().len(), 1);
    assert_eq!(rest.body["next_after"], Value::Null);
    instance.get("/api/v1/sessions/agent%3Amain%3Anone/transcript").await.refuses(404, "unknown_session");
}

#[tokio::test]
async fn running_turn_is_stopped_and_backlog_is_listed() {
    let instance = Instance::start().await;
    instance.hold().await;
    instance.post(&at("/messages"), json!({ "text": "waits" })).await.ok();
    let backlog = instance.get(&at("/backlog")).await;
    assert_eq!(backlog.ok()["waiting"][0]["text"], "waits");
    instance.delete(&at("")).await.refuses(409, "invalid_state");
    instance.post(&at("/compact"), json!({})).await.refuses(409, "invalid_state");
    let stopped = instance.post(&at("/stop"), json!({})).await;
    assert!(stopped.ok()["turn_id"].is_string());
    assert_eq!(instance.say("after").await.body["reply"]["state"], "done");
    let nothing = instance.post(&at("/stop"), json!({})).await;
    assert_eq!(nothing.ok(), &json!({ "turn_id": null, "interrupted_tasks": 0, "children": [] }));
    instance.get("/api/v1/sessions/agent%3Amain%3Anone/backlog").await.refuses(404, "unknown_session");
    instance
        .post("/api/v1/sessions/agent%3Amain%3Anone/stop", json!({}))
        .await
        .refuses(404, "unknown_session");
}

#[tokio::test]
async fn new_session_starts_under_the_same_key() {
    let instance = Instance::start().await;
    instance.say("old").await;
    let before = instance.get(&at("")).await.body["session_id"].clone();
    let renewed = instance.post(&at("/new"), json!({})).await;
    assert_eq!(renewed.ok()["session_key"], ONE_KEY);
    assert_ne!(renewed.body["session_id"], before);
    assert_eq!(instance.get(&at("/transcript")).await.body["messages"], json!([]));
}

#[tokio::test]
async fn session_commands_return_text() {
    let instance = Instance::start().await;
    instance.say("hello").await;
    let help = instance.post(&at("/commands"), json!({ "text": "/help" })).await;
    assert!(help.ok()["text"].as_str().unwrap().contains("/stop"));
    instance.post(&at("/commands"), json!({ "text": "/dance" })).await.refuses(400, "unknown_command");
    instance.post(&at("/commands"), json!({ "text": "hello" })).await.refuses(400, "unknown_command");
    let not_started = "/api/v1/sessions/agent%3Amain%3Anone/commands";
    let status = instance.post(not_started, json!({ "text": "/status" })).await;
    assert!(status.ok()["text"].as_str().unwrap().contains("idle"), "{}", status.body);
    let nobody = "/api/v1/sessions/agent%3Anobody%3Anone/commands";
    assert_eq!(instance.post(nobody, json!({ "text": "/status" })).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn history_is_compacted_on_request() {
    let instance = Instance::start().await;
    instance.say("one").await;
    instance.say("two").await;
    let queued = instance.post(&at("/compact"), json!({})).await;
    assert_eq!(queued.status, StatusCode::ACCEPTED);
    let turn = queued.body["turn_id"].as_str().unwrap();
    let path = format!("/api/v1/turns/{turn}");
    wait_until("the turn ends", async || instance.get(&path).await.ok()["state"] == "done").await;
    let events = instance.get("/api/v1/events?kind=session.compacted").await;
    assert_eq!(events.ok()["events"].as_array().unwrap().len(), 1);
}
