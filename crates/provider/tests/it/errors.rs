use polyclaw_domain::provider::ErrorClass::{self, *};
use polyclaw_provider::{Error, ModelProviders, ModelProvidersSettings, ProviderSettings, ProviderVendor};
use polyclaw_testkit::model_server::ReplyScript;
use serde_json::{Value, json};

use crate::fixture::{Bench, KEY, ManualClock, SHAPES, user};

fn said(message: &str) -> Value {
    json!({ "error": { "message": message, "type": "invalid_request_error" } })
}

#[tokio::test]
async fn http_status_maps_to_error_class() {
    let bench = Bench::new();
    let cases: [(u16, Value, ErrorClass); 13] = [
        (400, said("bad"), BadRequest),
        (400, said("This model's maximum context length is 8192 tokens."), ContextTooLong),
        (400, said("prompt is too long: 9 tokens > 8 maximum"), ContextTooLong),
        (401, said("no"), Auth),
        (402, json!({}), Quota),
        (403, json!("<html>forbidden</html>"), Auth),
        (404, said("no such model"), NotConfigured),
        (429, json!({ "error": { "code": "insufficient_quota" } }), Quota),
        (429, said("slow down"), RateLimit),
        (500, json!("boom"), Overload),
        (502, json!(""), Overload),
        (503, json!({}), Overload),
        (529, json!({ "error": { "type": "overloaded_error" } }), Overload),
    ];
    for model in SHAPES {
        for (status, body, expected) in &cases {
            let class = bench.class(model, ReplyScript::error(*status, body.clone())).await;
            assert_eq!(class, *expected, "{model} {status} {body}");
        }
    }
}

#[tokio::test]
async fn rate_limit_error_carries_retry_after() {
    let bench = Bench::new();
    for model in SHAPES {
        let error = bench.says(model, ReplyScript::error(429, json!({})).retry_after(7)).await.unwrap_err();
        assert_eq!((error.class, error.retry_after_ms), (RateLimit, Some(7000)));
    }
}

#[tokio::test]
async fn mid_stream_error_keeps_its_class() {
    let bench = Bench::new();
    let openai = ReplyScript::reply("so f").raw("data: {\"error\":{\"code\":429,\"message\":\"slow\"}}\n\n");
    assert_eq!(bench.class("openai/m", openai).await, RateLimit);
    let anthropic = ReplyScript::reply("so f").raw(
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n",
    );
    assert_eq!(bench.class("anthropic/m", anthropic).await, Overload);
}

#[tokio::test]
async fn error_messages_hide_key_and_are_one_line() {
    let bench = Bench::new();
    for status in [400, 401, 403, 404, 429, 500] {
        let body = said(&format!("Key {KEY} is wrong\n{}", "blah ".repeat(500)));
        let error = bench.says("openai/m", ReplyScript::error(status, body)).await.unwrap_err().to_string();
        assert!(!error.contains(KEY) && !error.contains('\n') && error.len() < 300, "{error}");
    }
}

#[tokio::test]
async fn refused_connection_is_unreachable() {
    let free = format!("127.0.0.1:{}", polyclaw_testkit::free_port());
    let bench = Bench::with(|_| {
        vec![
            ProviderSettings::new("gone", ProviderVendor::OpenAiCompatible)
                .base_url(format!("http://{free}")),
        ]
    });
    let error = bench.ask("gone/m", &user("hi")).await.unwrap_err();
    assert_eq!(error.class, Unreachable);
    assert!(error.to_string().starts_with(&format!("gone/m: cannot connect to {free}")), "{error}");
}

#[tokio::test]
async fn unconfigured_provider_or_missing_key_is_not_called() {
    let bench = Bench::with(|_| vec![ProviderSettings::new("openai", ProviderVendor::OpenAi)]);
    let error = bench.ask("other/m", &user("hi")).await.unwrap_err();
    assert_eq!((error.class, error.message.as_str()), (NotConfigured, "no provider 'other' is configured"));
    assert_eq!(bench.ask("openai/m", &user("hi")).await.unwrap_err().class, Auth);
    assert_eq!(bench.ask_all(&[], &user("hi")).await.0.unwrap_err().class, NotConfigured);
}

#[tokio::test]
async fn keyless_server_gets_no_authorization_header() {
    let bench = Bench::with(|server| {
        vec![
            ProviderSettings::new("here", ProviderVendor::OpenAiCompatible).base_url(server.url()),
            ProviderSettings::new("ollama", ProviderVendor::Ollama).base_url(server.root_url()),
        ]
    });
    for model in ["here/m", "ollama/qwen3:8b"] {
        assert_eq!(bench.ask(model, &user("hi")).await.unwrap().text, "echo: hi");
        assert_eq!(bench.server.last_request().header("authorization"), None);
    }
}

#[test]
fn duplicate_provider_name_is_refused() {
    let provider = || ProviderSettings::new("a", ProviderVendor::Ollama);
    let settings = ModelProvidersSettings {
        providers: vec![provider(), provider()],
        ..ModelProvidersSettings::default()
    };
    let error = ModelProviders::new(settings, std::sync::Arc::new(ManualClock::default())).err().unwrap();
    assert!(matches!(error, Error::Duplicate(name) if name == "a"));
}
