use polyclaw_server::AuthMode;
use reqwest::Method;

use crate::instance::{Answer, Instance, TOKEN};

#[tokio::test]
async fn requests_without_valid_token_are_refused() {
    let instance = Instance::start().await;
    for path in ["/api/v1/sessions", "/api/v1/agents", "/api/v1/openapi.json", "/metrics", "/api/v1/ws"] {
        let bare = Answer::of(instance.bare(Method::GET, path)).await;
        bare.refuses(401, "unauthorized");
        assert_eq!(bare.headers["www-authenticate"], "Bearer");
        let wrong = instance.bare(Method::GET, path).bearer_auth("wrong");
        let wrong = Answer::of(wrong).await;
        wrong.refuses(401, "unauthorized");
        assert_ne!(wrong.body["error"]["message"], bare.body["error"]["message"], "a wrong one is told so");
        let basic = instance.bare(Method::GET, path).header("authorization", format!("Basic {TOKEN}"));
        Answer::of(basic).await.refuses(401, "unauthorized");
    }
    let query = format!("/api/v1/sessions?token={}", TOKEN.replace(' ', "%20"));
    Answer::of(instance.bare(Method::GET, &query)).await.refuses(401, "unauthorized");
}

#[tokio::test]
async fn foreign_host_or_origin_is_refused() {
    let instance = Instance::start().await;
    let with = |name: &'static str, value: &'static str| {
        Answer::of(instance.request(Method::GET, "/api/v1/sessions").header(name, value))
    };
    with("host", "evil.example").await.refuses(403, "host_not_allowed");
    with("host", "127.0.0.1.evil.example").await.refuses(403, "host_not_allowed");
    with("origin", "https://evil.example").await.refuses(403, "origin_not_allowed");
    with("origin", "null").await.refuses(403, "origin_not_allowed");
    with("origin", "https://chat.example.com").await.ok();
    with("host", "chat.example.com").await.ok();
    with("host", "localhost").await.ok();
    let own = instance.request(Method::GET, "/api/v1/sessions").header("origin", instance.url.as_str());
    Answer::of(own).await.ok();
    let health = instance.bare(Method::GET, "/health").header("host", "evil.example");
    Answer::of(health).await.refuses(403, "host_not_allowed");
}

#[tokio::test]
async fn auth_off_accepts_requests_without_token() {
    let instance = Instance::with(AuthMode::Off).await;
    Answer::of(instance.bare(Method::GET, "/api/v1/sessions")).await.ok();
    let foreign = instance.bare(Method::GET, "/api/v1/sessions").header("origin", "https://evil.example");
    Answer::of(foreign).await.refuses(403, "origin_not_allowed");
}

#[tokio::test]
async fn openai_routes_return_openai_error_shape() {
    let instance = Instance::start().await;
    let bare = Answer::of(instance.bare(Method::GET, "/v1/models")).await;
    assert_eq!(bare.status, 401);
    assert_eq!(bare.body["error"]["type"], "authentication_error");
    let nowhere = instance.get("/v1/nowhere").await;
    assert_eq!((nowhere.status.as_u16(), &nowhere.body["error"]["code"]), (404, &"unknown_route".into()));
    assert!(nowhere.body["error"]["param"].is_null());
}

#[tokio::test]
async fn allowed_origin_passes_cors_checks() {
    let instance = Instance::start().await;
    let page = "https://chat.example.com";
    let asked = instance
        .bare(Method::OPTIONS, "/v1/chat/completions")
        .header("origin", page)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type");
    let asked = Answer::of(asked).await;
    assert_eq!(asked.status, 204);
    assert_eq!(asked.headers["access-control-allow-origin"], page);
    assert_eq!(asked.headers["access-control-allow-headers"], "authorization,content-type");
    let methods = asked.headers["access-control-allow-methods"].to_str().unwrap();
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        assert!(methods.split(", ").any(|one| one == method), "{method}: {methods}");
    }
    let called = Answer::of(instance.request(Method::GET, "/v1/models").header("origin", page)).await;
    assert_eq!(
        (called.status.as_u16(), &called.headers["access-control-allow-origin"]),
        (200, &page.parse().unwrap())
    );
    let stranger = instance
        .bare(Method::OPTIONS, "/v1/models")
        .header("origin", "https://evil.example")
        .header("access-control-request-method", "GET");
    let refused = Answer::of(stranger).await;
    assert_eq!(refused.status, 403);
    assert!(!refused.headers.contains_key("access-control-allow-origin"));
}
