//! Platforms that call, strangers that wait, and who would answer.

use std::sync::Arc;

use polyclaw_domain::channel::{InboundSink, IngestOutcome};
use polyclaw_domain::config;
use polyclaw_engine::EngineSettings;
use polyclaw_engine::inbound::InboundRules;
use polyclaw_testkit::inbound_dm;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::instance::{Answer, Instance};

const CONFIG: &str = r#"
    [session]
    dm_scope = "per-channel-peer"
    [[bindings]]
    agent_id = "main"
    match = { channel = "telegram", peer = { kind = "group", id = "-7" } }
    [channels.telegram.default]
    bot_token = "123:token"
    groups = ["-8"]
"#;

async fn instance() -> Instance {
    let instance = Instance::start().await;
    let config = config::load(CONFIG, "config.toml", &|_| Err("no lookup".to_owned())).unwrap();
    let settings: EngineSettings = (*instance.engine.settings()).clone();
    instance.engine.reload_settings(EngineSettings {
        inbound: Arc::new(InboundRules::from_config(&config)),
        ..settings
    });
    instance
}

#[tokio::test]
async fn platform_callback_needs_no_token_and_returns_adapter_response() {
    let instance = Instance::start().await;
    let call = |method, path: &str| instance.bare(method, path).header("X-Signature", "s");
    let get = Answer::of(call(Method::GET, "/channels/webhook/build?challenge=a%20b")).await;
    assert_eq!((get.status, get.text.as_str()), (StatusCode::CREATED, "build GET challenge=a%20b s 0"));
    let post = Answer::of(call(Method::POST, "/channels/webhook/build").body("12345")).await;
    assert_eq!((post.status, post.text.as_str()), (StatusCode::CREATED, "build POST  s 5"));
    Answer::of(call(Method::POST, "/channels/none/build")).await.refuses(404, "unknown_channel");
    let large = call(Method::POST, "/channels/webhook/build").body(vec![0; 3 * 1024 * 1024]);
    Answer::of(large).await.refuses(413, "body_too_large");
}

#[tokio::test]
async fn unknown_sender_is_listed_approved_and_revoked() {
    let instance = instance().await;
    assert_eq!(instance.engine.ingest_message(inbound_dm("eve", "hello")).await, IngestOutcome::Done);
    let listed = instance.get("/api/v1/pairing").await;
    let waiting = &listed.ok()["pairings"][0];
    assert_eq!((&waiting["sender"], &waiting["state"]), (&json!("eve"), &json!("pending")));
    let code = waiting["code"].as_str().unwrap().to_lowercase();
    instance.post("/api/v1/pairing", json!({ "code": "none" })).await.refuses(404, "unknown_pairing");
    let approved = instance.post("/api/v1/pairing", json!({ "code": code })).await;
    assert_eq!((&approved.ok()["state"], &approved.body["code"]), (&json!("approved"), &json!(null)));
    let events = instance.get("/api/v1/events?kind=pairing.approved").await;
    assert_eq!(events.ok()["events"][0]["data"]["sender"], "eve");
    let who = "/api/v1/pairing?channel=telegram&account=default&sender=eve";
    assert_eq!(instance.delete(who).await.status, StatusCode::NO_CONTENT);
    instance.delete(who).await.refuses(404, "unknown_pairing");
}

#[tokio::test]
async fn route_explain_shows_route_without_side_effects() {
    let instance = instance().await;
    let explain = |body: Value| instance.post("/api/v1/route/explain", body);
    let dm = json!({ "id": "1" });
    let group = json!({ "kind": "group", "id": "-7" });
    let answer =
        explain(json!({ "channel": "telegram", "peer": group, "sender": "1", "text": "hello" })).await;
    assert_eq!(answer.ok()["layer"], "binding");
    assert_eq!(answer.body["tier"], "peer");
    assert_eq!(answer.body["admission"], "group_not_listed");
    assert_eq!(answer.body["agent_id"], "main");
    assert_eq!(answer.body["session_key"], "agent:main:telegram:group:-7");
    assert_eq!(answer.body["model"], "test/scripted");
    assert_eq!(answer.body["answers"][0]["session_key"], answer.body["session_key"]);
    assert_eq!(answer.body["answers"][0]["tools"], answer.body["tools"]);
    assert_eq!(answer.body["candidates"][0]["selected"], true);
    let other = explain(json!({ "channel": "telegram", "peer": dm, "topic": "5" })).await;
    assert_eq!((&other.ok()["layer"], &other.body["tier"]), (&json!("default"), &json!("default")));
    assert_eq!(other.body["candidates"][0]["rejected_because"], "it is for another conversation");
    assert_eq!(other.body["session_key"], "agent:main:telegram:dm:1:topic:5");
    let group = json!({ "kind": "group", "id": "-8" });
    for (mentioned, admission) in [(false, "not_mentioned"), (true, "admitted")] {
        let asked = json!({ "channel": "telegram", "peer": group, "sender": "1", "mentioned": mentioned });
        assert_eq!(explain(asked).await.ok()["admission"], admission);
    }
    let unknown = explain(json!({ "channel": "telegram", "account_id": "none", "peer": dm })).await;
    assert_eq!(
        (&unknown.ok()["admission"], &unknown.body["layer"]),
        (&json!("unknown_account"), &Value::Null)
    );
    assert_eq!((&unknown.body["answers"], &unknown.body["agent_id"]), (&json!([]), &Value::Null));
    let hook =
        explain(json!({ "channel": "webhook", "account_id": "build", "peer": { "id": "Repo" } })).await;
    assert_eq!((&hook.ok()["admission"], &hook.body["layer"]), (&json!("admitted"), &json!("hook")));
    assert_eq!(hook.body["session_key"], "agent:main:webhook:build:dm:%52epo");
    for wrong in [json!({ "channel": "telegram" }), json!({ "channel": "telegram", "peer": { "id": "" } })] {
        explain(wrong).await.refuses(400, "invalid_body");
    }
    let sessions = instance.get("/api/v1/sessions").await;
    assert_eq!(sessions.ok()["sessions"], json!([]));
}

#[tokio::test]
async fn channel_accounts_are_listed_with_state() {
    let instance = instance().await;
    let listed = instance.get("/api/v1/channels").await;
    let account = json!({ "channel": "telegram", "account": "default", "state": "restart_needed", "reason": null, "node": null });
    assert_eq!(listed.ok()["channels"], json!([account]), "the config was read again, and nobody opened it");
}

#[tokio::test]
async fn session_cleanup_dry_run_removes_nothing() {
    let instance = Instance::start().await;
    instance.say("hello").await;
    let dry = instance.post("/api/v1/sessions/cleanup", json!({ "dry_run": true })).await;
    assert_eq!((&dry.ok()["unused"], &dry.body["removed"]), (&json!([]), &json!(0)), "it was used just now");
}
