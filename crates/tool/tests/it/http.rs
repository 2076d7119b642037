//! Web pages: what is returned, and which addresses are never asked.

use std::time::{Duration, Instant};

use polyclaw_tool::BuiltinSettings;
use serde_json::json;

use crate::Bench;
use crate::site::{Site, answer, redirect, text};

fn private() -> Bench {
    Bench::with(BuiltinSettings { allow_private: true, ..BuiltinSettings::default() })
}

#[tokio::test]
async fn page_is_returned_with_status_and_content_type() {
    let site = Site::start(|_| text("hello")).await;
    let bench = private();
    let page = bench.ok("http_fetch", json!({ "url": site.url("/a") })).await;
    let expected = format!("HTTP 200 OK\nurl: {}\ncontent-type: text/plain\n\nhello", site.url("/a"));
    assert_eq!(page, expected);
    let by_name = format!("http://localhost:{}/b", site.port);
    assert!(bench.ok("http_fetch", json!({ "url": by_name })).await.ends_with("hello"));
}

#[tokio::test]
async fn private_addresses_are_refused_in_every_spelling() {
    let site = Site::start(|_| text("hello")).await;
    let bench = Bench::new();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "017700000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "①②⑦.0.0.1",
        "0.0.0.0",
        "0",
        "localhost",
        "LOCALHOST",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.0.1",
        "100.64.0.1",
    ];
    for host in hosts {
        let url = format!("http://{host}:{}/", site.port);
        let error = bench.refused("http_fetch", json!({ "url": url })).await;
        assert!(error.contains("not a public address"), "{host}: {error}");
    }
    assert_eq!(site.count(), 0);
}

#[tokio::test]
async fn redirects_are_followed_and_checked() {
    let site = Site::start(|path| match path {
        "/start" => redirect("next?x=1"),
        "/next?x=1" => text("arrived"),
        "/file" => redirect("file:///etc/passwd"),
        "/login" => redirect("http://user:secret@127.0.0.1/"),
        "/bad" => redirect("http://["),
        _ => redirect("/loop"),
    })
    .await;
    let bench = private();
    let page = bench.ok("http_fetch", json!({ "url": site.url("/start") })).await;
    assert!(page.contains("/next?x=1\n") && page.ends_with("arrived"), "{page}");
    assert!(bench.refused("http_fetch", json!({ "url": site.url("/file") })).await.contains("not file"));
    assert!(bench.refused("http_fetch", json!({ "url": site.url("/login") })).await.contains("password"));
    assert!(bench.refused("http_fetch", json!({ "url": site.url("/bad") })).await.contains("redirects"));
    let before = site.count();
    assert!(bench.refused("http_fetch", json!({ "url": site.url("/loop") })).await.contains("5 redirects"));
    assert_eq!(site.count() - before, 6);
}

#[tokio::test]
async fn request_headers_are_not_sent_to_another_site() {
    let other = Site::start(|_| text("other")).await;
    let target = other.url("/");
    let site = Site::start(move |path| match path {
        "/away" => redirect(&target),
        "/near" => redirect("/here"),
        _ => text("here"),
    })
    .await;
    let bench = private();
    let headers = json!({ "Authorization": "Bearer key" });
    bench.ok("http_fetch", json!({ "url": site.url("/near"), "headers": headers })).await;
    bench.ok("http_fetch", json!({ "url": site.url("/away"), "headers": headers })).await;
    let sent = |site: &Site| site.requests.lock().unwrap().clone();
    assert!(sent(&site).iter().all(|head| head.contains("authorization: bearer key")));
    assert!(sent(&other).iter().all(|head| !head.contains("authorization")));
    assert_eq!(other.count(), 1);
    bench.refused("http_fetch", json!({ "url": site.url("/"), "headers": { "Host": "example.com" } })).await;
}

#[tokio::test]
async fn only_get_and_head_methods_are_accepted() {
    let site =
        Site::start(|_| answer("200 OK", "content-type: image/png\r\ncontent-length: 1234\r\n", b"")).await;
    let bench = private();
    let page = bench.ok("http_fetch", json!({ "url": site.url("/"), "method": "HEAD" })).await;
    assert!(page.contains("content-type: image/png\ncontent-length: 1234\n"), "{page}");
    assert!(site.requests.lock().unwrap()[0].starts_with("head "));
    bench.refused("http_fetch", json!({ "url": site.url("/"), "method": "POST" })).await;
    assert_eq!(site.count(), 1);
}

#[tokio::test]
async fn http_error_status_is_an_error_with_body() {
    let site =
        Site::start(|_| answer("404 Not Found", "content-type: text/html\r\nset-cookie: a=b\r\n", b"nope"))
            .await;
    let page = private().refused("http_fetch", json!({ "url": site.url("/") })).await;
    assert!(page.starts_with("HTTP 404 Not Found\n") && page.ends_with("nope"), "{page}");
    assert!(!page.contains("cookie"));
}

#[tokio::test]
async fn response_bodies_are_limited_and_text_only() {
    let site = Site::start(|path| match path {
        "/large" => text(&"x".repeat(5 * 1024 * 1024)),
        "/image" => answer("200 OK", "content-type: image/png\r\ncontent-length: 4\r\n", b"\x89PNG"),
        "/lie" => answer("200 OK", "content-type: text/plain\r\n", b"a\0b"),
        "/header" => {
            let header = format!("content-type: text/plain\r\netag: {}\r\n", "e".repeat(9000));
            answer("200 OK", &header, b"")
        }
        _ => answer("200 OK", "", b"no type"),
    })
    .await;
    let bench = private();
    let page = bench.ok("http_fetch", json!({ "url": site.url("/large"), "max_bytes": 100_000_000 })).await;
    assert!(
        page.len() < 1024 * 1024 + 2000
            && page.ends_with("[truncated: only the first 1048576 bytes are shown]")
    );
    let page = bench.ok("http_fetch", json!({ "url": site.url("/large"), "max_bytes": 10 })).await;
    assert!(page.contains("\n\nxxxxxxxxxx\n[truncated"), "{page}");
    let error = bench.refused("http_fetch", json!({ "url": site.url("/image") })).await;
    assert!(error.contains("image/png, 4 bytes"), "{error}");
    assert!(bench.refused("http_fetch", json!({ "url": site.url("/lie") })).await.contains("not text"));
    assert!(bench.ok("http_fetch", json!({ "url": site.url("/header") })).await.len() < 1000);
    assert!(bench.ok("http_fetch", json!({ "url": site.url("/none") })).await.ends_with("no type"));
}

#[tokio::test]
async fn invalid_responses_and_urls_are_errors() {
    let site = Site::start(|_| b"this is not http\r\n\r\n".to_vec()).await;
    let bench = private();
    bench.refused("http_fetch", json!({ "url": site.url("/") })).await;
    let started_at = Instant::now();
    for url in [
        "",
        "nonsense",
        "http://",
        "ftp://127.0.0.1/",
        "http://user:pw@example.com/",
        "http://no-such-host.invalid/",
    ] {
        bench.refused("http_fetch", json!({ "url": url })).await;
    }
    assert!(started_at.elapsed() < Duration::from_secs(60));
}
