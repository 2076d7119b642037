use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::post;
use tokio::net::TcpListener;

use super::*;

async fn reply(platform: &WebhookPlatform, key: &str) -> Result<u16, reqwest::Error> {
    let body =
        serde_json::json!({ "key": key, "peer": "ann", "thread": null, "text": format!("text of {key}") });
    let client = reqwest::Client::builder().no_proxy().build()?;
    let request =
        client.post(platform.reply_url()).header("Idempotency-Key", key).body(body.to_string()).send();
    Ok(request.await?.status().as_u16())
}

#[tokio::test]
async fn each_reply_outcome_shows_and_answers_as_configured() {
    let platform = WebhookPlatform::start();
    for outcome in [
        ReplyOutcome::ShownThenStatus(500),
        ReplyOutcome::ShownThenCut,
        ReplyOutcome::Status(400),
        ReplyOutcome::Later { status: 429, seconds: 3 },
        ReplyOutcome::Cut,
    ] {
        platform.push(outcome);
    }
    let mut answers = Vec::new();
    for key in ["a", "b", "c", "d", "e", "f"] {
        answers.push(reply(&platform, key).await.ok());
    }
    assert_eq!(answers, [Some(500), None, Some(400), Some(429), None, Some(200)]);
    assert_eq!(platform.visible_texts(), ["text of a", "text of b", "text of f"]);
    assert_eq!(platform.wait_for_arrivals(6).await.len(), 6);
}

#[tokio::test]
async fn repeated_reply_is_shown_once_only_with_deduplication() {
    let platform = WebhookPlatform::start();
    for _ in 0..2 {
        reply(&platform, "a").await.unwrap();
    }
    assert_eq!(platform.visible_texts().len(), 2);
    platform.dedupe_repeats();
    for _ in 0..2 {
        reply(&platform, "b").await.unwrap();
    }
    assert_eq!(platform.visible_texts(), ["text of a", "text of a", "text of b"]);
    assert_eq!(platform.arrivals().len(), 4);
}

#[tokio::test]
async fn unsigned_reply_is_refused_when_signature_is_required() {
    let platform = WebhookPlatform::start();
    platform.require_signature("s");
    assert_eq!(reply(&platform, "a").await.unwrap(), 401);
    assert!(platform.arrivals().is_empty());
}

#[tokio::test]
async fn redelivered_post_is_identical_and_next_one_is_new() {
    let posts: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let kept = Arc::clone(&posts);
    let record = move |headers: HeaderMap, body: String| async move {
        let signature = headers[signature::SIGNATURE_HEADER].to_str().unwrap().to_owned();
        kept.lock().unwrap().push((signature, body));
        r#"{"ok":true}"#
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let root = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/hooks/desk", post(record));
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let hook = WebhookSender::new(&root, "desk", "s");
    let (first, answer) = hook.send_text("ann", "hello").await.unwrap();
    assert_eq!((answer.status, &answer.body["ok"]), (200, &true.into()));
    hook.deliver_post(&first).await.unwrap();
    let (second, _) = hook.send_text("ann", "hello").await.unwrap();
    assert_ne!(first.id, second.id);
    let posts = posts.lock().unwrap();
    assert_eq!(posts[0], posts[1]);
    assert_ne!(posts[1], posts[2]);
    assert_eq!(posts[0].0, signature::sign("s", posts[0].1.as_bytes()));
    server.abort();
}
