//! The search tool against services on the wire.

use polyclaw_domain::config::{SearchKind, Secret, WebSearch};
use polyclaw_domain::tool::Toolbox;
use polyclaw_tool::BuiltinSettings;
use serde_json::{Value, json};

use crate::Bench;
use crate::site::{Site, answer};

fn bench(kind: SearchKind, site: &Site, key: Option<&str>) -> Bench {
    let web_search = WebSearch { kind, url: Some(site.url("/")), api_key: key.map(Secret::new) };
    Bench::with(BuiltinSettings { web_search: Some(web_search), ..BuiltinSettings::default() })
}

async fn site(body: Value) -> Site {
    Site::start(move |_| answer("200 OK", "content-type: application/json\r\n", body.to_string().as_bytes()))
        .await
}

#[tokio::test]
async fn each_search_service_gets_its_own_request_format() {
    let hit = |text: &str| json!([{ "title": "Tides", "url": "https://a.example/t", text: "High at noon." }]);
    let expected = "1. Tides\n   https://a.example/t\n   High at noon.";
    for (kind, body, asked) in [
        (
            SearchKind::Searxng,
            json!({ "results": hit("content") }),
            &["get /search?q=tides+in+bern+%26+more&format=json ", "authorization: bearer canary-4711"][..],
        ),
        (
            SearchKind::Brave,
            json!({ "web": { "results": hit("description") } }),
            &[
                "get /res/v1/web/search?q=tides+in+bern+%26+more&count=3 ",
                "x-subscription-token: canary-4711",
            ],
        ),
        (
            SearchKind::Tavily,
            json!({ "results": hit("content") }),
            &[
                "post /search ",
                "authorization: bearer canary-4711",
                r#"{"query":"Tides in Bern & more","max_results":3}"#,
            ],
        ),
    ] {
        let site = site(body).await;
        let bench = bench(kind, &site, Some("canary-4711"));
        let reply = bench.ok("web_search", json!({ "query": "Tides in\nBern & more", "count": 3 })).await;
        assert_eq!(reply, expected);
        let request = site.requests.lock().unwrap().pop().unwrap();
        for part in asked {
            let found = request.contains(part) || request.to_lowercase().contains(&part.to_lowercase());
            assert!(found, "{part} in {request}");
        }
    }
}

#[tokio::test]
async fn web_search_is_absent_without_a_service() {
    let bench = Bench::new();
    assert!(bench.tools.list_tools(&bench.scope).iter().all(|tool| tool.name != "web_search"));
    let text = bench.refused("web_search", json!({ "query": "x" })).await;
    assert!(text.contains("there is no tool"), "{text}");
}

#[tokio::test]
async fn search_results_are_limited_and_sanitized() {
    let odd = json!({ "results": [
        { "title": "a\nb\u{202e}\u{1b}[2J", "url": "https://a.example/", "content": "x".repeat(100_000) },
        { "title": "file", "url": "file:///etc/passwd", "content": "no" },
        { "title": "code", "url": "javascript:alert(1)" },
        { "title": 7, "url": "http://b.example/" },
        "nonsense",
    ] });
    let site = site(odd).await;
    let bench = bench(SearchKind::Searxng, &site, None);
    let text = bench.ok("web_search", json!({ "query": "x", "count": 20 })).await;
    assert!(text.starts_with("1. a b [2J\n   https://a.example/\n   xxx"), "{text}");
    assert!(text.ends_with("…\n2. \n   http://b.example/") && text.len() < 900, "{text}");
    assert!(!site.requests.lock().unwrap()[0].contains("authorization"));
}

#[tokio::test]
async fn search_errors_do_not_reveal_the_key() {
    for (status, expected) in [
        ("401 No", "rejected the API key"),
        ("429 No", "limit"),
        ("500 No", "status 500"),
        ("302 No", "status 302"),
    ] {
        let site =
            Site::start(move |_| answer(status, "location: http://b.example/\r\n", b"canary-4711")).await;
        let text = bench(SearchKind::Brave, &site, Some("canary-4711"))
            .refused("web_search", json!({ "query": "x" }))
            .await;
        assert!(text.contains(expected) && !text.contains("canary"), "{text}");
    }
    let garbage = Site::start(|_| answer("200 OK", "", b"<html>")).await;
    let text =
        bench(SearchKind::Tavily, &garbage, Some("k")).refused("web_search", json!({ "query": "x" })).await;
    assert!(text.contains("did not respond with JSON"), "{text}");
    let flood = Site::start(|_| answer("200 OK", "", &vec![b' '; 3_000_000])).await;
    let text =
        bench(SearchKind::Tavily, &flood, Some("k")).refused("web_search", json!({ "query": "x" })).await;
    assert!(text.contains("exceeds"), "{text}");
    let nobody =
        WebSearch { kind: SearchKind::Searxng, url: Some("http://127.0.0.1:9".to_owned()), api_key: None };
    let bench = Bench::with(BuiltinSettings { web_search: Some(nobody), ..BuiltinSettings::default() });
    let text = bench.refused("web_search", json!({ "query": "x" })).await;
    assert!(text.starts_with("the search failed: "), "{text}");
    assert!(bench.refused("web_search", json!({ "query": "\u{200b}\n" })).await.contains("empty"));
}
