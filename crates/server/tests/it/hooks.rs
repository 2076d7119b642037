use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::instance::{Answer, Instance, SECRET};

pub fn signed(instance: &Instance, hook: &str, body: &str, secret: &str) -> RequestBuilder {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let request = instance.bare(Method::POST, &format!("/hooks/{hook}"));
    request.header("x-polyclaw-signature", format!("sha256={hex}")).body(body.to_owned())
}

#[tokio::test]
async fn repeated_hook_message_is_accepted_once() {
    let instance = Instance::start().await;
    let body = json!({ "text": "built", "id": "m1", "peer": "Repo", "thread": "t" }).to_string();
    let first = Answer::of(signed(&instance, "build", &body, SECRET)).await;
    assert_eq!(first.status, StatusCode::ACCEPTED);
    assert_eq!(first.body["session_key"], "agent:main:webhook:build:dm:%52epo:thread:t");
    let again = Answer::of(signed(&instance, "build", &body, SECRET)).await;
    assert_eq!((&again.body["duplicate"], &again.body["turn_id"]), (&json!(true), &first.body["turn_id"]));
}

#[tokio::test]
async fn waiting_hook_returns_the_reply() {
    let instance = Instance::start().await;
    let answer = Answer::of(signed(&instance, "build?wait=5", r#"{"text":"hi"}"#, SECRET)).await;
    assert_eq!(answer.status, StatusCode::OK);
    let text = answer.body["reply"]["text"].as_str().unwrap();
    assert!(text.contains("origin=\"hook\""), "what no person typed is framed: {text}");
}

#[tokio::test]
async fn unsigned_or_invalid_hook_is_refused() {
    let instance = Instance::start().await;
    let body = r#"{"text":"hi"}"#;
    Answer::of(signed(&instance, "build", body, "other")).await.refuses(401, "bad_signature");
    Answer::of(signed(&instance, "none", body, SECRET)).await.refuses(404, "unknown_hook");
    let changed = signed(&instance, "build", body, SECRET).body(r#"{"text":"ho"}"#);
    Answer::of(changed).await.refuses(401, "bad_signature");
    for header in ["", "sha256=", "sha256=zz", "md5=00", "sha256=é"] {
        let request = instance.bare(Method::POST, "/hooks/build").body(body);
        let value = reqwest::header::HeaderValue::from_bytes(header.as_bytes()).unwrap();
        Answer::of(request.header("x-polyclaw-signature", value)).await.refuses(401, "bad_signature");
    }
    Answer::of(signed(&instance, "build", "{", SECRET)).await.refuses(400, "malformed_json");
    Answer::of(signed(&instance, "build", r#"{"text":""}"#, SECRET)).await.refuses(400, "empty_message");
    let long = json!({ "text": "x", "peer": "x".repeat(600) }).to_string();
    Answer::of(signed(&instance, "build", &long, SECRET)).await.refuses(400, "invalid_parameter");
}

#[tokio::test]
async fn approval_is_decided_only_in_its_conversation() {
    let instance = Instance::start().await;
    let post = async |id: &str, peer: &str, text: &str| {
        let body = json!({ "text": text, "id": id, "peer": peer }).to_string();
        Answer::of(signed(&instance, "build", &body, SECRET)).await
    };
    assert_eq!(post("m1", "repo", "call danger").await.status, StatusCode::ACCEPTED);
    let mut asked = Value::Null;
    for _ in 0..500 {
        let pending = instance.get("/api/v1/approvals").await;
        asked = pending.ok()["approvals"][0].clone();
        if !asked.is_null() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(asked["origin"], json!({ "channel": "webhook", "account": "build", "peer": "repo" }));
    let line = format!("/approve {}", asked["id"].as_str().unwrap());
    let other = post("m2", "else", &line).await;
    assert!(other.ok()["text"].as_str().unwrap().contains("another conversation"), "{}", other.body);
    let yes = post("m3", "repo", &line).await;
    assert_eq!(yes.ok()["text"], "Approved. It runs now.");
    let again = post("m3", "repo", &line).await;
    assert_eq!(again.ok()["text"], "This message was already processed.", "a platform that delivers twice");
    let shown = instance.get(&format!("/api/v1/approvals/{}", asked["id"].as_str().unwrap())).await;
    assert_eq!(
        (&shown.ok()["state"], &shown.body["decided_by"]),
        (&json!("approved"), &json!("webhook:build:repo"))
    );
    instance.get("/api/v1/approvals/none").await.refuses(404, "unknown_approval");
    let key = "agent%3Amain%3Awebhook%3Abuild%3Adm%3Arepo";
    let transcript = instance.get(&format!("/api/v1/sessions/{key}/transcript")).await.ok().to_string();
    assert!(!transcript.contains("/approve"), "{transcript}");
}

#[tokio::test]
async fn hook_commands_run_and_are_not_stored() {
    let instance = Instance::start().await;
    let post = async |id: &str, text: &str| {
        let body = json!({ "text": text, "id": id, "peer": "repo" }).to_string();
        Answer::of(signed(&instance, "build?wait=5", &body, SECRET)).await
    };
    assert_eq!(post("m0", "/status").await.ok()["text"], "This conversation has no messages yet.");
    post("m1", "hello").await.ok();
    let who = post("m2", "/whoami").await;
    assert_eq!(who.ok()["text"], "session agent:main:webhook:build:dm:repo, agent main");
    assert_eq!(post("m3", "/model a/b").await.ok()["text"], "Only owners of this assistant can use /model.");
    let key = "agent%3Amain%3Awebhook%3Abuild%3Adm%3Arepo";
    let transcript = instance.get(&format!("/api/v1/sessions/{key}/transcript")).await;
    assert_eq!(transcript.ok()["messages"].as_array().unwrap().len(), 2, "{}", transcript.body);
}

#[tokio::test]
async fn agent_prefix_routes_hook_without_fixed_agent() {
    let instance = Instance::start().await;
    instance.post("/api/v1/agents", json!({ "agent_id": "ops", "name": "Ops" })).await;
    let post = async |hook: &str, text: &str| {
        Answer::of(signed(&instance, hook, &json!({ "text": text }).to_string(), SECRET)).await
    };
    let named = post("open", "/ops built").await;
    assert_eq!(named.status, StatusCode::ACCEPTED);
    assert_eq!(named.body["session_key"], "agent:ops:webhook:open:dm:default");
    post("open", "/ops").await.refuses(400, "empty_message");
    assert!(post("open", "/agent ops").await.ok()["text"].is_string(), "it switches its own conversation");
    for text in ["/ops built", "/agent ops", "/ops"] {
        let settled = post("build", text).await;
        assert_eq!(settled.body["session_key"], "agent:main:webhook:build:dm:default", "{text}");
    }
}

#[tokio::test]
async fn mapped_hook_text_is_never_a_command() {
    let instance = Instance::start().await;
    instance.post("/api/v1/agents", json!({ "agent_id": "ops", "name": "Ops" })).await;
    for login in ["/ops", "/agent", "/new", "/stop"] {
        let body = json!({ "action": "ops", "sender": { "login": login }, "issue": { "title": "x", "number": 7 },
            "repository": { "full_name": "a/b" } });
        let posted = Answer::of(signed(&instance, "issues?wait=5", &body.to_string(), SECRET)).await;
        assert_eq!(posted.ok()["session_key"], "agent:main:webhook:issues:dm:a%2fb:thread:7", "{login}");
        let reply = posted.body["reply"]["text"].as_str().unwrap();
        assert!(reply.contains(&format!("{login} ops x")), "it is told as it is: {reply}");
        let response = json!({ "channel": "webhook", "account_id": "issues", "peer": { "id": "a/b" },
            "text": format!("{login} ops x") });
        let answer = instance.post("/api/v1/route/explain", response).await;
        assert_eq!(
            (&answer.ok()["agent_id"], &answer.body["command"]),
            (&json!("main"), &Value::Null),
            "{login}"
        );
    }
}

#[tokio::test]
async fn hook_mapping_extracts_message_from_body() {
    let instance = Instance::start().await;
    let body = json!({
        "delivery": "d1", "action": "opened", "issue": { "number": 7, "title": "It burns" },
        "repository": { "full_name": "a/b" }, "sender": { "login": "ann" },
    });
    let posted = Answer::of(signed(&instance, "issues?wait=5", &body.to_string(), SECRET)).await;
    assert_eq!(posted.status, StatusCode::OK, "{}", posted.body);
    assert_eq!(posted.body["session_key"], "agent:main:webhook:issues:dm:a%2fb:thread:7");
    assert!(
        posted.body["reply"]["text"].as_str().unwrap().contains("ann opened It burns"),
        "{}",
        posted.body
    );
    let again = Answer::of(signed(&instance, "issues", &body.to_string(), SECRET)).await;
    assert_eq!(again.body["duplicate"], true, "its id is found too");
    let other = Answer::of(signed(&instance, "issues", r#"{"ping":true}"#, SECRET)).await;
    other.refuses(400, "invalid_body");
    let odd =
        Answer::of(signed(&instance, "build", &json!({ "text": "x", "odd": 1 }).to_string(), SECRET)).await;
    odd.refuses(400, "invalid_body");
}

/// Signed together with a time.
fn stamped(instance: &Instance, body: &str, at: i64) -> RequestBuilder {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(format!("{at}.{body}").as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let request = instance.bare(Method::POST, "/hooks/build").header("x-polyclaw-timestamp", at.to_string());
    request.header("x-polyclaw-signature", format!("sha256={hex}")).body(body.to_owned())
}

#[tokio::test]
async fn replayed_hook_without_id_is_accepted_once() {
    let instance = Instance::start().await;
    let body = r#"{"text":"deploy","peer":"repo"}"#;
    let first = Answer::of(signed(&instance, "build", body, SECRET)).await;
    assert_eq!(first.status, StatusCode::ACCEPTED);
    let again = Answer::of(signed(&instance, "build", body, SECRET)).await;
    assert_eq!((&again.body["duplicate"], &again.body["turn_id"]), (&json!(true), &first.body["turn_id"]));
    let (now, body) = (instance.engine.now().0 / 1000, r#"{"text":"deploy","peer":"other"}"#);
    let taken = Answer::of(stamped(&instance, body, now)).await;
    assert_eq!(taken.status, StatusCode::ACCEPTED);
    assert_eq!(Answer::of(stamped(&instance, body, now)).await.body["duplicate"], true);
    let later = Answer::of(stamped(&instance, body, now + 1)).await;
    assert_ne!(later.body["duplicate"], true, "said again, not sent again");
    for far in [now - 400, now + 400] {
        Answer::of(stamped(&instance, body, far)).await.refuses(401, "bad_signature");
    }
    let unsigned = signed(&instance, "build", body, SECRET).header("x-polyclaw-timestamp", now.to_string());
    Answer::of(unsigned).await.refuses(401, "bad_signature");
}
