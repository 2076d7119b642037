use std::time::{Duration, Instant};

use polyclaw_channel::webhook::{CHANNEL_NAME, WebhookAccount, WebhookAdapter};
use polyclaw_domain::channel::{ChannelAdapter, ChatAddress, SendOutcome};
use polyclaw_domain::config::Secret;
use polyclaw_domain::delivery::{DeliveryPolicy, OutgoingMessage, apply_gate};
use polyclaw_testkit::platform::{ReplyOutcome, WebhookPlatform};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fixture::word;

const SHORT: Duration = Duration::from_millis(500);

fn account(url: &str) -> WebhookAccount {
    WebhookAccount { reply_url: url.to_owned(), reply_secret: None, idempotent: false, max_chars: 100 }
}

fn webhook(account: WebhookAccount) -> WebhookAdapter {
    WebhookAdapter::with_send_timeout([("desk".to_owned(), account)], SHORT).unwrap()
}

fn outgoing(account: &str, text: &str) -> OutgoingMessage {
    let address = ChatAddress {
        channel: CHANNEL_NAME.to_owned(),
        account: account.to_owned(),
        peer: "ann".to_owned(),
        thread: Some("t-1".to_owned()),
    };
    apply_gate(Some(address), DeliveryPolicy::ALLOW_ALL, text.to_owned()).unwrap()
}

async fn send(webhook: &WebhookAdapter, key: &str) -> SendOutcome {
    webhook.send(key, &outgoing("desk", "hello")).await
}

#[tokio::test]
async fn reply_arrives_complete_signed_and_with_its_key() {
    let platform = WebhookPlatform::start();
    platform.require_signature("s3cret");
    let signed =
        WebhookAccount { reply_secret: Some(Secret::new("s3cret")), ..account(&platform.reply_url()) };
    let webhook = webhook(signed);
    let text = "grüße, 你好 \"quoted\"\nsecond line";
    let sent = webhook.send("turn-1-0", &outgoing("desk", text)).await;
    assert_eq!(sent, SendOutcome::Accepted { platform_id: Some("reply-1".to_owned()) });
    let seen = &platform.wait_for_visible(1).await[0];
    assert_eq!((seen.key.as_str(), seen.text.as_str()), ("turn-1-0", text));
    assert_eq!((seen.peer.as_str(), seen.thread.as_deref()), ("ann", Some("t-1")));
}

#[tokio::test]
async fn wrong_reply_secret_is_rejected() {
    let platform = WebhookPlatform::start();
    platform.require_signature("s3cret");
    let signed =
        WebhookAccount { reply_secret: Some(Secret::new("other")), ..account(&platform.reply_url()) };
    let sent = send(&webhook(signed), "k").await;
    assert!(matches!(&sent, SendOutcome::Rejected { reason } if reason.contains("401")), "{sent:?}");
}

/// What each outcome means where a repeat is recognised, and where it is not.
#[tokio::test]
async fn send_is_retried_only_if_surely_not_delivered() {
    let later = |seconds| ReplyOutcome::Later { status: 503, seconds };
    let table = [
        (ReplyOutcome::Status(400), "rejected", "rejected"),
        (ReplyOutcome::Status(404), "rejected", "rejected"),
        (ReplyOutcome::Status(307), "rejected", "rejected"),
        (ReplyOutcome::Status(429), "retry", "retry"),
        (ReplyOutcome::Later { status: 429, seconds: 7 }, "retry after 7000", "retry after 7000"),
        (later(2), "retry after 2000", "retry after 2000"),
        (later(u64::MAX), "retry after 18446744073709551615", "retry after 18446744073709551615"),
        (ReplyOutcome::Status(503), "unknown", "retry"),
        (ReplyOutcome::ShownThenStatus(500), "unknown", "retry"),
        (ReplyOutcome::Status(502), "unknown", "retry"),
        (ReplyOutcome::ShownThenCut, "unknown", "unknown"),
        (ReplyOutcome::Cut, "unknown", "unknown"),
        (ReplyOutcome::ShownThenHang, "unknown", "unknown"),
    ];
    let platform = WebhookPlatform::start();
    let plain = webhook(account(&platform.reply_url()));
    let knowing = webhook(WebhookAccount { idempotent: true, ..account(&platform.reply_url()) });
    for (outcome, on_plain, on_knowing) in table {
        for (webhook, expected) in [(&plain, on_plain), (&knowing, on_knowing)] {
            platform.push(outcome);
            assert_eq!(word(&send(webhook, "k").await), expected, "{outcome:?}");
        }
    }
    assert_eq!(platform.arrivals().len(), table.len() * 2, "each was posted once, redirects included");
}

#[tokio::test]
async fn unreachable_platform_is_retried() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for url in [format!("http://{address}/r"), format!("https://{address}/r")] {
        assert_eq!(word(&send(&webhook(account(&url)), "k").await), "retry", "{url}");
    }
}

#[tokio::test]
async fn failed_tls_handshake_is_retried() {
    let platform = WebhookPlatform::start();
    let url = platform.reply_url().replace("http://", "https://");
    assert_eq!(word(&send(&webhook(account(&url)), "k").await), "retry");
    assert!(platform.arrivals().is_empty());
}

#[tokio::test]
async fn status_decides_outcome_regardless_of_body() {
    let id = |id: &str| SendOutcome::Accepted { platform_id: Some(id.to_owned()) };
    let none = SendOutcome::Accepted { platform_id: None };
    let endless = format!("{{\"id\":\"{}\"}}", "x".repeat(1 << 20));
    let table = [
        (whole(r#"{"id":"m-1"}"#), id("m-1")),
        (whole(r#"{"id":17}"#), id("17")),
        (whole(r#"{"id":null}"#), none.clone()),
        (whole("ok"), none.clone()),
        (whole(""), none.clone()),
        (whole(&endless), none.clone()),
        ("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"id\":".to_owned(), none.clone()),
    ];
    for (answer, expected) in table {
        let url = answers_with(answer).await;
        assert_eq!(send(&webhook(account(&url)), "k").await, expected);
    }
}

#[tokio::test]
async fn endless_response_body_does_not_block_outbox() {
    let url = answers_with("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned()).await;
    let started = Instant::now();
    assert_eq!(word(&send(&webhook(account(&url)), "k").await), "accepted");
    assert!(started.elapsed() < Duration::from_secs(60));
}

fn whole(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

/// A server that gives one connection these bytes and then waits until the client leaves.
async fn answers_with(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/r", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = socket.read(&mut request).await;
        let _ = socket.write_all(answer.as_bytes()).await;
        while socket.read(&mut request).await.is_ok_and(|read| read > 0) {}
    });
    url
}

#[tokio::test]
async fn account_without_reply_url_is_rejected() {
    let sent = webhook(account("http://127.0.0.1:9/r")).send("k", &outgoing("other", "hello")).await;
    assert_eq!(word(&sent), "rejected");
}

#[test]
fn invalid_reply_url_is_refused() {
    for url in ["", "chat.example.com/r", "ftp://chat.example.com", "file:///etc/passwd", "https://"] {
        let error = WebhookAdapter::new([("desk".to_owned(), account(url))]).unwrap_err();
        assert_eq!(error.code(), "channel_reply_url", "{url}");
    }
}

#[test]
fn capabilities_come_from_the_account() {
    let webhook = webhook(WebhookAccount { idempotent: true, ..account("https://chat.example.com/r") });
    let capabilities = webhook.capabilities("desk");
    assert!(capabilities.idempotent_send);
    assert_eq!(capabilities.max_chars, 100);
    assert!(!webhook.capabilities("other").idempotent_send);
}

#[tokio::test]
async fn secret_and_url_are_not_shown_in_debug_output() {
    let account = WebhookAccount {
        reply_secret: Some(Secret::new("s3cret")),
        ..account("http://user:pa55@127.0.0.1:9/T0K3N/r?key=T0K3N")
    };
    let shown = format!("{account:?} {:?}", webhook(account.clone()));
    let failed = format!("{:?}", send(&webhook(account), "k").await);
    for text in [shown, failed] {
        assert!(!["s3cret", "pa55", "T0K3N"].iter().any(|secret| text.contains(secret)), "{text}");
    }
}
