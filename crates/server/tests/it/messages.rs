use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::ingress::IngressMessage;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::instance::{Instance, ONE, ONE_KEY};

#[tokio::test]
async fn message_is_accepted_and_answered() {
    let instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/messages");
    let accepted = instance.post(&path, json!({ "text": "hello" })).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED);
    assert_eq!(accepted.body["session_key"], ONE_KEY);
    assert_eq!(accepted.body["duplicate"], false);
    assert!(accepted.body.get("reply").is_none());
    let answered = instance.say("again").await;
    let reply = &answered.body["reply"];
    assert_eq!((&reply["text"], &reply["state"]), (&json!("You said: again"), &json!("done")));
    assert_eq!(reply["model"], "test/scripted");
    assert_eq!(reply["usage"], json!({ "input_tokens": 7, "output_tokens": 3, "cached_tokens": null }));
}

#[tokio::test]
async fn repeated_idempotency_key_is_reported_as_duplicate() {
    let instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/messages?wait=5");
    let body = json!({ "text": "once", "idempotency_key": "k" });
    let first = instance.post(&path, body.clone()).await;
    let second = instance.post(&path, body).await;
    assert_eq!(second.body["duplicate"], true);
    assert_eq!(first.body["message_id"], second.body["message_id"]);
    assert_eq!(first.body["reply"], second.body["reply"]);
}

#[tokio::test]
async fn short_wait_returns_accepted_while_turn_runs() {
    let instance = Instance::start().await;
    instance.hold().await;
    let path = format!("/api/v1/sessions/{ONE}/messages?wait=0.05");
    let waiting = instance.post(&path, json!({ "text": "me too" })).await;
    assert_eq!((waiting.status, &waiting.body["waiting"]), (StatusCode::ACCEPTED, &json!(true)));
    instance.gate.add_permits(1);
    instance.say("later").await;
}

#[tokio::test]
async fn failed_turn_is_reported_in_reply() {
    let instance = Instance::start().await;
    let reply = instance.say("fail").await.body["reply"].clone();
    assert_eq!((&reply["state"], &reply["error_code"]), (&json!("failed"), &json!("provider_failed")));
    assert!(reply["text"].as_str().unwrap().contains("too busy"));
}

#[tokio::test]
async fn invalid_messages_are_refused() {
    let instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/messages");
    let cases = [
        (json!({ "text": " " }), 400, "empty_message"),
        (json!({ "text": "x".repeat(1_000_001) }), 413, "message_too_long"),
        (json!({ "text": "x", "channel": "telegram" }), 400, "invalid_parameter"),
        (json!({ "text": "x", "agent": "nobody" }), 404, "unknown_agent"),
        (json!({ "text": "x", "agent": "Not An Id" }), 400, "invalid_body"),
        (json!({ "txt": "x" }), 400, "invalid_body"),
        (json!({}), 400, "invalid_body"),
    ];
    for (body, status, code) in cases {
        instance.post(&path, body).await.refuses(status, code);
    }
    for wait in ["601", "-1", "x", "NaN"] {
        let answer = instance.post(&format!("{path}?wait={wait}"), json!({ "text": "x" })).await;
        answer.refuses(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn full_backlog_is_refused_with_retry_after() {
    let instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/messages");
    instance.hold().await;
    for _ in 0..60 {
        let answer = instance.post(&path, json!({ "text": "more" })).await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            answer.refuses(429, "backlog_full");
            assert_eq!(answer.headers["retry-after"], "1");
            instance.gate.add_permits(1);
            return;
        }
    }
    panic!("the backlog never filled");
}

#[tokio::test]
async fn draining_instance_refuses_new_messages() {
    let instance = Instance::start().await;
    instance.engine.start_draining();
    let answer = instance.post(&format!("/api/v1/sessions/{ONE}/messages"), json!({ "text": "x" })).await;
    answer.refuses(503, "shutting_down");
    assert_eq!(answer.headers["retry-after"], "1");
    instance.get("/ready").await.refuses(503, "not_ready");
}

#[tokio::test]
async fn text_attachment_reaches_model_and_transcript() {
    let instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/messages?wait=5");
    let attachments = json!([
        { "name": "plan.md", "media_type": "text/markdown", "text": "Step one: dig." },
        { "name": "map", "media_type": "text/html", "url": "https://maps.example/1" },
    ]);
    let answer = instance.post(&path, json!({ "text": "prompt this", "attachments": attachments })).await;
    let shown = answer.ok()["reply"]["text"].as_str().unwrap();
    assert!(
        shown.contains("attachment plan.md (text/markdown)") && shown.contains("Step one: dig."),
        "{shown}"
    );
    assert!(shown.contains("https://maps.example/1"), "{shown}");
    let transcript = instance.get(&format!("/api/v1/sessions/{ONE}/transcript")).await;
    let part = &transcript.ok()["messages"][0]["parts"][0];
    assert_eq!((&part["type"], &part["text"]), (&json!("attachment"), &json!("Step one: dig.")));
}

fn gif() -> Value {
    json!({ "name": "a.gif", "media_type": "image/png", "data": "R0lGODlh" })
}

#[tokio::test]
async fn unsupported_attachments_are_refused_with_hint() {
    let instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/messages");
    let one = |rest: Value| {
        let mut attachment = json!({ "name": "a", "media_type": "text/plain" });
        attachment.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!([attachment])
    };
    let many: Vec<Value> =
        (0..21).map(|_| json!({ "name": "a", "media_type": "text/plain", "text": "x" })).collect();
    let cases = [
        (
            one(json!({ "media_type": "image/png", "url": "https://a.example/cat.png" })),
            400,
            "attachment_not_supported",
        ),
        (one(json!({ "media_type": "audio/mpeg", "data": "R0lGODlh" })), 400, "attachment_not_supported"),
        (one(json!({ "media_type": "image/png", "data": "aGVsbG8=" })), 400, "attachment_not_supported"),
        (one(json!({ "media_type": "image/png", "data": "A".repeat(7 << 20) })), 413, "attachment_too_large"),
        (json!(vec![gif(); 11]), 413, "attachment_too_large"),
        (one(json!({ "media_type": "image/png", "data": "!" })), 400, "invalid_parameter"),
        (
            one(json!({ "media_type": "image/png", "data": "R0lGODlh", "text": "x" })),
            400,
            "invalid_parameter",
        ),
        (one(json!({ "text": "x".repeat(500_001) })), 413, "attachment_too_large"),
        (json!(many), 413, "attachment_too_large"),
        (one(json!({ "url": "data:text/plain,hi" })), 400, "invalid_parameter"),
        (one(json!({ "url": "https://a.example/ b" })), 400, "invalid_parameter"),
        (one(json!({ "url": "https://a.example", "text": "x" })), 400, "invalid_parameter"),
        (one(json!({})), 400, "invalid_parameter"),
        (one(json!({ "name": "", "text": "x" })), 400, "invalid_parameter"),
    ];
    for (attachments, status, code) in cases {
        let refused = instance.post(&path, json!({ "text": "see", "attachments": attachments })).await;
        refused.refuses(status, code);
        assert!(code == "invalid_parameter" || refused.body["error"]["hint"].is_string(), "{}", refused.text);
    }
    let image = json!([{ "type": "image_url", "image_url": { "url": "https://a.example/cat.png" } }]);
    let question = json!({ "model": "polyclaw/main", "messages": [{ "role": "user", "content": image }] });
    let refused = instance.post("/v1/chat/completions", question).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.body["error"]["code"]),
        (400, &json!("remote_image_not_allowed"))
    );
}

#[tokio::test]
async fn truncated_reply_has_length_finish_reason() {
    let instance = Instance::start().await;
    assert_eq!(instance.say("cut").await.body["reply"]["finish_reason"], "length");
    assert_eq!(instance.say("whole").await.body["reply"]["finish_reason"], Value::Null);
    let transcript = instance.get(&format!("/api/v1/sessions/{ONE}/transcript")).await;
    assert_eq!(transcript.ok()["messages"][1]["meta"], json!({ "finish_reason": "length" }));
    assert_eq!(transcript.body["messages"][3]["meta"], Value::Null);
    let question = |stream: bool| json!({ "model": "main", "stream": stream, "messages": [{ "role": "user", "content": "cut" }] });
    let whole = instance.post("/v1/chat/completions", question(false)).await;
    assert_eq!(whole.ok()["choices"][0]["finish_reason"], "length");
    let streamed = instance.post("/v1/chat/completions", question(true)).await;
    assert!(streamed.text.contains(r#""finish_reason":"length""#), "{}", streamed.text);
    let response = instance.post("/v1/responses", json!({ "model": "main", "input": "cut" })).await;
    assert_eq!(response.ok()["status"], "incomplete");
    assert_eq!(response.body["incomplete_details"]["reason"], "max_output_tokens");
    let streamed =
        instance.post("/v1/responses", json!({ "model": "main", "input": "cut", "stream": true })).await;
    assert!(streamed.text.contains("event: response.incomplete"), "{}", streamed.text);
}

#[tokio::test]
async fn deliver_flag_also_sends_reply_to_chat() {
    let instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/messages?wait=10");
    let body = json!({ "text": "again", "deliver": true });
    instance.post(&path, body.clone()).await.refuses(400, "invalid_body");
    let address =
        ChatAddress { channel: "webhook".into(), account: "build".into(), peer: "repo".into(), thread: None };
    let key = SessionKey::parse(ONE_KEY).unwrap();
    let inbound = IngressMessage::from_person(key, AgentId::main(), address.clone(), "first");
    instance.engine.accept_message(inbound).await.unwrap();
    instance.say("from here").await;
    let answered = instance.post(&path, body).await;
    assert_eq!(answered.ok()["reply"]["text"], "You said: again");
    let outbox = instance.get("/api/v1/outbox").await;
    let sent = outbox.ok()["outbox"].as_array().unwrap();
    let texts: Vec<_> = sent.iter().map(|one| (&one["text"], &one["address"]["peer"])).collect();
    let peer = json!("repo");
    assert_eq!(
        texts,
        [(&json!("You said: first"), &peer), (&json!("You said: again"), &peer)],
        "not the one between"
    );
}

#[tokio::test]
async fn agent_prefix_selects_agent_over_http_and_openai() {
    let instance = Instance::start().await;
    instance.post("/api/v1/agents", json!({ "agent_id": "ops", "name": "Ops" })).await;
    let answered = instance.say("/ops hello").await;
    assert_eq!(answered.body["reply"]["text"], "You said: hello");
    assert_eq!(answered.body["session_key"], ONE_KEY);
    let turn = instance.get(&format!("/api/v1/turns/{}", answered.body["turn_id"].as_str().unwrap())).await;
    assert_eq!(turn.ok()["agent_id"], "ops");
    let path = format!("/api/v1/sessions/{ONE}/messages");
    instance.post(&path, json!({ "text": "/ops" })).await.refuses(400, "empty_message");
    let asked = json!({ "model": "main", "messages": [{ "role": "user", "content": "/ops hello" }] });
    let chat = instance.post("/v1/chat/completions", asked).await;
    assert_eq!(chat.ok()["choices"][0]["message"]["content"], "You said: hello");
}
