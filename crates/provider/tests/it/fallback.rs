use std::time::{Duration, Instant};

use polyclaw_domain::provider::{ErrorClass, ModelProvider, ModelStatus, StreamDelta};
use polyclaw_provider::{ProviderSettings, ProviderVendor};
use polyclaw_testkit::model_server::{ReceivedRequest, ReplyScript};
use serde_json::json;

use crate::fixture::{Bench, KEY, text, user};

/// Model `bad` answers with the given error, every other one echoes.
fn refuse_bad(bench: &Bench, status: u16, retry_after: Option<u32>) {
    bench.server.answer_with(move |request: &ReceivedRequest| match (request.model(), retry_after) {
        ("bad", Some(seconds)) => ReplyScript::error(status, json!({})).retry_after(seconds),
        ("bad", None) => ReplyScript::error(status, json!({})),
        _ => ReplyScript::reply("ok"),
    });
}

fn asked(bench: &Bench) -> Vec<String> {
    bench.server.requests().iter().map(|request| request.model().to_owned()).collect()
}

#[tokio::test]
async fn next_candidate_answers_after_failure() {
    let bench = Bench::new();
    refuse_bad(&bench, 529, None);
    let started = Instant::now();
    let (reply, deltas) = bench.ask_all(&["anthropic/bad", "openai/good"], &user("hi")).await;
    assert_eq!(reply.unwrap().model.to_string(), "openai/good");
    assert_eq!(deltas, [text("ok")], "nothing was streamed before, so nothing starts over");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn partial_stream_is_restarted_on_fallback() {
    let bench = Bench::new();
    for broken in [
        ReplyScript::reply("half").wait(Duration::from_millis(5)).cut(),
        ReplyScript::reply("half").malformed_json(),
    ] {
        bench.server.push(broken);
        bench.server.push(ReplyScript::reply("whole"));
        let (reply, deltas) = bench.ask_all(&["openai/a", "anthropic/b"], &user("hi")).await;
        assert_eq!(reply.unwrap().text, "whole");
        assert_eq!(deltas, [text("half"), StreamDelta::Restart, text("whole")]);
    }
}

#[tokio::test]
async fn bad_request_is_not_sent_to_fallback() {
    let bench = Bench::new();
    refuse_bad(&bench, 400, None);
    let (reply, _) = bench.ask_all(&["openai/bad", "openai/good"], &user("hi")).await;
    assert_eq!(reply.unwrap_err().class, ErrorClass::BadRequest);
    assert_eq!(asked(&bench), ["bad"]);
}

#[tokio::test]
async fn each_candidate_is_tried_once_and_named_in_error() {
    let bench = Bench::new();
    bench.server.answer_with(|_| ReplyScript::error(503, json!({})));
    let candidates = ["openai/a", "openai/b", "openai/a", "anthropic/c"];
    let error = bench.ask_all(&candidates, &user("hi")).await.0.unwrap_err();
    assert_eq!(asked(&bench), ["a", "b", "c"]);
    assert_eq!((error.class, error.model.as_str()), (ErrorClass::Overload, "anthropic/c"));
    assert!(error.message.ends_with("(before: openai/a overload, openai/b overload)"), "{error}");
}

/// Who hears it can wait for that one, and for no other.
#[tokio::test]
async fn rate_limited_candidate_determines_the_error() {
    let bench = Bench::new();
    bench.server.answer_with(|request| match request.model() {
        "busy" => ReplyScript::error(429, json!({})).retry_after(7),
        _ => ReplyScript::error(401, json!({})),
    });
    let error = bench.ask_all(&["openai/busy", "anthropic/locked"], &user("hi")).await.0.unwrap_err();
    assert_eq!((error.class, error.retry_after_ms), (ErrorClass::RateLimit, Some(7_000)));
    assert!(error.message.ends_with("(beside: anthropic/locked auth)"), "{error}");
}

/// What two models answer, and what is told of it: the class and how long to wait.
#[tokio::test]
async fn error_with_shortest_retry_delay_is_reported() {
    let cases = [
        ((429, None), (429, Some(7_200)), ErrorClass::RateLimit, None),
        ((429, Some(9)), (429, Some(7)), ErrorClass::RateLimit, Some(7_000)),
        ((503, Some(5)), (401, None), ErrorClass::Overload, Some(5_000)),
        ((503, None), (401, None), ErrorClass::Overload, None),
        ((429, Some(5)), (400, None), ErrorClass::BadRequest, None),
    ];
    for (first, second, class, retry_after_ms) in cases {
        let bench = Bench::new();
        bench.server.answer_with(move |request| {
            let (status, after) = if request.model() == "first" { first } else { second };
            let script = ReplyScript::error(status, json!({}));
            match after {
                Some(seconds) => script.retry_after(seconds),
                None => script,
            }
        });
        let error = bench.ask_all(&["openai/first", "openai/second"], &user("hi")).await.0.unwrap_err();
        assert_eq!((error.class, error.retry_after_ms), (class, retry_after_ms), "{error}");
    }
}

#[tokio::test]
async fn cooling_model_is_used_without_alternative() {
    let bench = Bench::new();
    bench.server.push(ReplyScript::error(429, json!({})));
    let candidates = ["openai/busy", "gone/model"];
    assert_eq!(bench.ask_all(&candidates, &user("hi")).await.0.unwrap_err().class, ErrorClass::RateLimit);
    bench.server.answer_with(|_| ReplyScript::reply("ok"));
    assert_eq!(bench.ask_all(&candidates, &user("hi")).await.0.unwrap().model.model, "busy");
}

#[tokio::test]
async fn cooling_model_is_skipped_until_cooldown_ends() {
    for (status, retry_after, rest) in
        [(429, Some(7), 7_000), (429, None, 30_000), (503, None, 10_000), (401, None, 60_000)]
    {
        let bench = Bench::new();
        refuse_bad(&bench, status, retry_after);
        let ask = async || bench.ask_all(&["openai/bad", "openai/good"], &user("hi")).await.0.unwrap();
        ask().await;
        ask().await;
        bench.clock.advance(rest - 1);
        ask().await;
        assert_eq!(asked(&bench), ["bad", "good", "good", "good"], "{status}");
        bench.clock.advance(1);
        ask().await;
        assert_eq!(asked(&bench)[4..], ["bad", "good"], "{status}");
    }
}

#[tokio::test]
async fn first_candidate_is_tried_when_all_are_cooling() {
    let bench = Bench::new();
    bench.server.push(ReplyScript::error(429, json!({})));
    bench.server.push(ReplyScript::error(429, json!({})));
    let candidates = ["openai/a", "openai/b"];
    assert!(bench.ask_all(&candidates, &user("hi")).await.0.is_err());
    let reply = bench.ask_all(&candidates, &user("hi")).await.0.unwrap();
    assert_eq!(reply.model.model, "a");
    bench.ask_all(&["openai/b", "openai/a"], &user("hi")).await.0.unwrap();
    assert_eq!(asked(&bench), ["a", "b", "a", "a"], "an answer ends the cooldown");
}

#[tokio::test]
async fn malformed_answer_starts_no_cooldown() {
    let bench = Bench::new();
    bench.server.push(ReplyScript::empty());
    let candidates = ["openai/a", "openai/b"];
    assert_eq!(bench.ask_all(&candidates, &user("hi")).await.0.unwrap().model.model, "b");
    assert_eq!(bench.ask_all(&candidates, &user("hi")).await.0.unwrap().model.model, "a");
}

#[tokio::test]
async fn providers_with_same_key_and_url_share_cooldowns() {
    let bench = Bench::with(|server| {
        let provider = |name: &str| {
            ProviderSettings::new(name, ProviderVendor::OpenAi).base_url(server.url()).models(["bad"])
        };
        vec![provider("one").api_key(KEY), provider("two").api_key(KEY), provider("three").api_key("other")]
    });
    refuse_bad(&bench, 429, None);
    assert!(bench.ask("one/bad", &user("hi")).await.is_err());
    let status: Vec<_> = bench.models.list_models().await.into_iter().map(|info| info.status).collect();
    assert_eq!(status, [ModelStatus::Cooling, ModelStatus::Cooling, ModelStatus::Ready]);
}

#[tokio::test]
async fn first_token_timeout_falls_back_to_next_model() {
    for kind in [ProviderVendor::OpenAiCompatible, ProviderVendor::Anthropic] {
        let bench = Bench::with(|server| {
            let mut slow = ProviderSettings::new("slow", kind).base_url(server.url());
            slow.first_token_timeout = Duration::from_millis(50);
            vec![slow, ProviderSettings::new("here", ProviderVendor::OpenAiCompatible).base_url(server.url())]
        });
        bench.server.push(ReplyScript::new().hang());
        let reply = bench.ask_all(&["slow/a", "here/b"], &user("hi")).await.0.unwrap();
        assert_eq!(reply.model.to_string(), "here/b", "{kind:?}");
        bench.server.wait_for_abandoned(1).await;
        bench.server.push(ReplyScript::reply("first").wait(Duration::from_millis(150)).text(" second"));
        assert_eq!(bench.ask("slow/a", &user("hi")).await.unwrap().text, "first second");
    }
}

#[tokio::test]
async fn last_candidate_has_no_first_token_timeout() {
    let bench = Bench::with(|server| {
        let mut slow = ProviderSettings::new("slow", ProviderVendor::OpenAiCompatible).base_url(server.url());
        slow.first_token_timeout = Duration::from_millis(50);
        vec![slow]
    });
    bench.server.push(ReplyScript::new().hang());
    bench.server.push(ReplyScript::new().wait(Duration::from_millis(150)).text("late"));
    let reply = bench.ask_all(&["slow/a", "slow/b"], &user("hi")).await.0.unwrap();
    assert_eq!((reply.model.model.as_str(), reply.text.as_str()), ("b", "late"));
}

#[tokio::test]
async fn mid_stream_silence_falls_back_and_starts_cooldown() {
    for kind in [ProviderVendor::OpenAiCompatible, ProviderVendor::Anthropic] {
        let bench = Bench::with(|server| {
            let mut slow = ProviderSettings::new("slow", kind).base_url(server.url()).api_key(KEY);
            slow.first_token_timeout = Duration::from_millis(100);
            vec![slow, ProviderSettings::new("here", ProviderVendor::OpenAiCompatible).base_url(server.url())]
        });
        bench.server.answer_with(|request| match request.model() {
            "a" => ReplyScript::reply("half").hang(),
            _ => ReplyScript::reply("whole"),
        });
        let candidates = ["slow/a", "here/b"];
        let (reply, deltas) = bench.ask_all(&candidates, &user("hi")).await;
        assert_eq!(reply.unwrap().model.to_string(), "here/b", "{kind:?}");
        assert_eq!(deltas, [text("half"), StreamDelta::Restart, text("whole")], "{kind:?}");
        bench.ask_all(&candidates, &user("hi")).await.0.unwrap();
        assert_eq!(asked(&bench), ["a", "b", "b"], "a model that hung is not asked first again: {kind:?}");
        bench.clock.advance(120_000);
        bench.server.answer_with(|_| ReplyScript::reply("back"));
        let (reply, _) = bench.ask_all(&candidates, &user("hi")).await;
        assert_eq!(reply.unwrap().model.to_string(), "slow/a", "{kind:?}");
    }
}

#[tokio::test]
async fn empty_answer_falls_back_to_next_model() {
    for model in ["openai/empty", "anthropic/empty"] {
        let bench = Bench::new();
        bench.server.answer_with(|request| match request.model() {
            "empty" => ReplyScript::new(),
            _ => ReplyScript::reply("ok"),
        });
        let reply = bench.ask_all(&[model, "openai/good"], &user("hi")).await.0.unwrap();
        assert_eq!(reply.model.model, "good", "{model}");
        assert!(bench.ask(model, &user("hi")).await.unwrap().is_empty(), "{model}: nobody else is left");
    }
}
