//! What clients send that they should not: always our shape, never a crash.

use std::sync::Arc;

use polyclaw_domain::redact::Redactor;
use polyclaw_engine::EngineSettings;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::instance::{Answer, Instance, ONE};

#[tokio::test]
async fn malformed_json_bodies_are_refused() {
    let instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/messages");
    let send = |kind: &'static str, body: Vec<u8>| {
        let request = instance.request(Method::POST, &path).header("content-type", kind).body(body);
        Answer::of(request)
    };
    let cases: [(&str, &[u8], u16, &str); 9] = [
        ("application/json", b" [\"hello\"]", 400, "invalid_body"),
        ("application/json", b"{", 400, "malformed_json"),
        ("application/json", b"{\"text\":\"a\"} b", 400, "malformed_json"),
        ("application/json", b"\"text\"", 400, "invalid_body"),
        ("application/json", b"{\"text\":1}", 400, "invalid_body"),
        ("application/json", b"{\"text\":\"\xff\xfe\"}", 400, "invalid_utf8"),
        ("text/plain", b"{\"text\":\"a\"}", 415, "unsupported_content_type"),
        ("application/x-www-form-urlencoded", b"text=a", 415, "unsupported_content_type"),
        ("application/json", b"{\"text\":\"a\",\"text\":\"b\"}", 400, "invalid_body"),
    ];
    for (kind, body, status, code) in cases {
        send(kind, body.to_vec()).await.refuses(status, code);
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    send("application/json", deep.clone().into_bytes()).await.refuses(400, "invalid_body");
    let patch =
        instance.request(Method::PATCH, "/api/v1/agents/main").header("content-type", "application/json");
    Answer::of(patch.body(deep)).await.refuses(400, "malformed_json");
    let good = send("application/json; charset=utf-8", b"{\"text\":\"a\"}".to_vec()).await;
    assert_eq!(good.status, 202);
}

#[tokio::test]
async fn secrets_in_requests_are_not_echoed_in_errors() {
    let instance = Instance::start().await;
    let secret = "Tr0ub4dor-and-3";
    let redactor = Arc::new(Redactor::new([secret]));
    instance
        .engine
        .reload_settings(EngineSettings { redactor, ..EngineSettings::clone(&instance.engine.settings()) });
    let asked = [
        instance.get(&format!("/api/v1/agents/{secret}")).await,
        instance.get(&format!("/api/v1/nowhere/{secret}")).await,
        instance.get(&format!("/v1/models/{secret}")).await,
        instance.post("/v1/chat/completions", json!({ "model": secret, "messages": [] })).await,
    ];
    for answer in asked {
        let text = answer.body["error"]["message"].as_str().unwrap_or_default();
        assert!(answer.status.is_client_error() && !text.is_empty(), "{}", answer.body);
        assert!(!answer.body.to_string().contains(secret), "{}", answer.body);
    }
}

#[tokio::test]
async fn invalid_query_is_refused_with_plain_message() {
    let instance = Instance::start().await;
    let refused = instance.get("/api/v1/usage?window=5h").await;
    let text = refused.body["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("`5h` is unknown") && text.contains("`24h`"), "{text}");
    assert!(!text.contains("deserialize") && !text.contains("variant"), "{text}");
}

#[tokio::test]
async fn oversized_body_is_refused() {
    let instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/messages");
    let large = json!({ "text": "x".repeat(33 * 1024 * 1024) });
    instance.post(&path, large.clone()).await.refuses(413, "body_too_large");
    let spec = json!({ "agent_id": "x", "name": "x".repeat(3 * 1024 * 1024) });
    instance.post("/api/v1/agents", spec).await.refuses(413, "body_too_large");
    let openai = instance.post("/v1/chat/completions", large).await;
    assert_eq!(openai.status, 413);
    assert_eq!(openai.body["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn unknown_and_invalid_paths_are_refused() {
    let instance = Instance::start().await;
    let cases = [
        (Method::GET, "/nowhere", 404, "unknown_route"),
        (Method::GET, "/api/v1/nowhere", 404, "unknown_route"),
        (Method::PUT, "/api/v1/sessions", 405, "method_not_allowed"),
        (Method::GET, "/hooks/build", 405, "method_not_allowed"),
        (Method::GET, "/api/v1/sessions/rubbish", 400, "invalid_parameter"),
        (Method::GET, "/api/v1/sessions/agent%3AMain%3Ax", 400, "invalid_parameter"),
        (Method::GET, "/api/v1/sessions/%FF%FE", 400, "invalid_parameter"),
        (Method::GET, "/api/v1/sessions/agent%3Amain%3A..%2F..%2Fetc", 400, "invalid_parameter"),
        (Method::GET, "/api/v1/ws", 400, "invalid_parameter"),
        (Method::GET, "/../../etc/passwd", 404, "unknown_route"),
    ];
    for (method, path, status, code) in cases {
        Answer::of(instance.request(method, path)).await.refuses(status, code);
    }
    let long = format!("/api/v1/sessions/agent%3Amain%3A{}", "x".repeat(600));
    instance.get(&long).await.refuses(400, "invalid_parameter");
}

#[tokio::test]
async fn invalid_http_bytes_do_not_stop_the_server() {
    let instance = Instance::start().await;
    for bytes in [&b"\x16\x03\x01\x02\x00garbage\r\n\r\n"[..], b"GET / HTTP/9.9\r\n\r\n", b"\0\0\0\0\r\n\r\n"]
    {
        let address = instance.url.strip_prefix("http://").unwrap();
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        socket.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer).await;
    }
    instance.say("still there").await;
}
