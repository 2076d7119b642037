use reqwest::header::HeaderValue;
use serde_json::json;

use super::*;

fn class(status: u16, body: Value) -> ErrorClass {
    from_status(status, &body.to_string(), &HeaderMap::new()).class
}

#[test]
fn status_and_body_decide_error_class() {
    use ErrorClass::*;
    let text_of = |message: &str| json!({ "error": { "message": message } });
    let typed = |kind: &str| json!({ "error": { "type": kind, "message": "x" } });
    for (status, body, expected) in [
        (401, json!({}), Auth),
        (403, json!({}), Auth),
        (400, text_of("API key not valid. Please pass a valid API key."), Auth),
        (402, json!({}), Quota),
        (429, typed("insufficient_quota"), Quota),
        (400, text_of("Your credit balance is too low to access the API"), Quota),
        (429, typed("rate_limit_error"), RateLimit),
        (
            429,
            json!([{ "error": { "status": "RESOURCE_EXHAUSTED", "message": "exceeded your current quota" } }]),
            RateLimit,
        ),
        (500, json!("oops"), Overload),
        (502, json!({}), Overload),
        (503, json!({}), Overload),
        (529, typed("overloaded_error"), Overload),
        (504, json!({}), Timeout),
        (400, json!({ "error": { "code": "context_length_exceeded", "message": "x" } }), ContextTooLong),
        (400, text_of("prompt is too long: 210000 tokens > 200000 maximum"), ContextTooLong),
        (400, typed("exceed_context_size_error"), ContextTooLong),
        (500, text_of("the request exceeds the available context size"), ContextTooLong),
        (413, json!({}), ContextTooLong),
        (400, text_of("temperature must be at most 2"), BadRequest),
        (422, json!({}), BadRequest),
        (404, text_of("model 'x' not found"), NotConfigured),
        (302, json!({}), Malformed),
    ] {
        assert_eq!(class(status, body.clone()), expected, "{status} {body}");
    }
}

#[test]
fn stream_error_is_classified_by_its_labels() {
    let of = |body: Value| from_event(&body).class;
    assert_eq!(of(json!({ "type": "error", "error": { "type": "overloaded_error" } })), ErrorClass::Overload);
    assert_eq!(of(json!({ "code": 429, "message": "slow" })), ErrorClass::RateLimit);
    assert_eq!(of(json!({ "type": "invalid_request_error", "message": "no" })), ErrorClass::BadRequest);
    assert_eq!(of(json!("something else")), ErrorClass::Overload);
    assert_eq!(of(json!({ "message": "maximum context length is 8192" })), ErrorClass::ContextTooLong);
}

#[test]
fn retry_delay_is_read_from_headers_and_body() {
    let with = |name: &'static str, value: &'static str| {
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_static(value))]);
        from_status(429, "{}", &headers).retry_after_ms
    };
    assert_eq!(with("retry-after", "2"), Some(2000));
    assert_eq!(with("retry-after", "0.5"), Some(500));
    assert_eq!(with("retry-after-ms", "1500"), Some(1500));
    assert_eq!(with("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"), None);
    assert_eq!(with("retry-after", "-1"), None);
    let body = json!({ "error": { "details": [{ "retryDelay": "37s" }] } }).to_string();
    assert_eq!(from_status(429, &body, &HeaderMap::new()).retry_after_ms, Some(37_000));
}

#[test]
fn short_key_is_not_redacted_inside_words() {
    for (text, key, shown) in [
        ("the socket broke", "k", "the socket broke"),
        ("wrong key k, or k", "k", "wrong key [key], or [key]"),
        ("kk k", "k", "kk [key]"),
        ("xlong-key-12x", "long-key-12", "x[key]x"),
    ] {
        assert_eq!(redact_key(text, key), shown);
    }
}

#[test]
fn error_message_is_one_short_line_without_key() {
    let long = format!("bad\n request with sk-1 {}", "x".repeat(5000));
    let fault = from_status(400, &json!({ "error": { "message": long } }).to_string(), &HeaderMap::new());
    let error = fault.into_error(&ModelRef::parse("p/m").unwrap(), Some("sk-1"));
    assert!(
        error.message.starts_with("the provider rejected the request (HTTP 400): bad request with [key] x")
    );
    assert!(error.message.chars().count() < 260 && !error.message.contains('\n'));
    let fault =
        from_status(401, r#"{"error":{"message":"Incorrect API key provided: sk-2"}}"#, &HeaderMap::new());
    assert_eq!(fault.message, "the provider rejected the API key (HTTP 401)");
}
