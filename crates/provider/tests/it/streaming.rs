use std::sync::Mutex;
use std::time::Duration;

use polyclaw_domain::provider::{ModelProvider, Prompt, ReasoningEffort, StreamDelta, TokenUsage};
use polyclaw_testkit::model_server::{ReplyGate, ReplyScript};
use tokio::sync::mpsc;

use crate::fixture::{Bench, KEY, SHAPES, refs, text, user};

#[tokio::test]
async fn text_and_reasoning_are_streamed_in_order() {
    let bench = Bench::new();
    for model in SHAPES {
        bench.server.push(ReplyScript::new().reasoning("hmm").chunks("Hello, wörld", 3, Duration::ZERO));
        let (reply, deltas) = bench.ask_all(&[model], &user("hi")).await;
        let reply = reply.unwrap();
        assert_eq!(reply.text, "Hello, wörld");
        assert_eq!(reply.model.to_string(), model);
        assert!(!reply.truncated && reply.calls.is_empty());
        let expected = [StreamDelta::Reasoning("hmm".into()), text("Hell"), text("o, w"), text("örld")];
        assert_eq!(deltas, expected, "{model}");
    }
}

#[tokio::test]
async fn first_token_is_streamed_before_reply_ends() {
    let bench = Bench::new();
    for model in SHAPES {
        let gate = ReplyGate::new();
        bench.server.push(ReplyScript::new().text("first").gate(&gate).text(" second"));
        let (sender, mut seen) = mpsc::unbounded_channel();
        let (candidates, prompt) = (refs(&[model]), user("hi"));
        let sink = move |delta| sender.send(delta).unwrap();
        let answer = bench.models.stream_reply(&candidates, &prompt, &sink);
        let watch = async {
            assert_eq!(seen.recv().await, Some(text("first")));
            gate.open();
            assert_eq!(seen.recv().await, Some(text(" second")));
        };
        let (reply, ()) = tokio::join!(answer, watch);
        assert_eq!(reply.unwrap().text, "first second");
    }
}

#[tokio::test]
async fn usage_is_unknown_unless_provider_reports_it() {
    let bench = Bench::new();
    for model in SHAPES {
        let known = bench.says(model, ReplyScript::reply("a").usage(120, 7)).await.unwrap().usage;
        assert_eq!((known.input_tokens, known.output_tokens), (Some(120), Some(7)), "{model}");
        let unknown = bench.says(model, ReplyScript::reply("a").no_usage()).await.unwrap().usage;
        assert_eq!(unknown, TokenUsage::default(), "{model}");
    }
}

#[tokio::test]
async fn endless_answer_is_truncated() {
    let bench = Bench::new();
    for model in SHAPES {
        let endless = (0..40).fold(ReplyScript::new(), |script, _| script.text("x".repeat(256 << 10)));
        let reply = bench.says(model, endless.hang()).await.unwrap();
        assert!(reply.truncated && reply.text.len() < 6 << 20, "{model} {}", reply.text.len());
    }
}

#[tokio::test]
async fn length_limited_reply_is_marked_truncated() {
    let bench = Bench::new();
    for model in SHAPES {
        assert!(bench.says(model, ReplyScript::reply("a").truncated()).await.unwrap().truncated, "{model}");
    }
}

#[tokio::test]
async fn request_carries_key_system_prompt_and_limits() {
    let bench = Bench::new();
    let prompt =
        Prompt { system: "Be brief.".into(), temperature: Some(0.5), max_tokens: Some(99), ..user("hi") };
    bench.ask("openai/some-model-medium", &prompt).await.unwrap();
    let request = bench.server.last_request();
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!((request.model(), request.is_streaming()), ("some-model-medium", true));
    assert_eq!((request.system_prompt(), request.last_user_text()), ("Be brief.".into(), "hi".into()));
    assert_eq!((&request.body()["temperature"], &request.body()["max_tokens"]), (&0.5.into(), &99.into()));
    assert!(request.body().get("reasoning_effort").is_none() && request.body().get("tools").is_none());

    bench.ask("anthropic/claude-haiku-4-5", &prompt).await.unwrap();
    let request = bench.server.last_request();
    assert_eq!((request.header("x-api-key"), request.model()), (Some(KEY), "claude-haiku-4-5"));
    assert_eq!((request.system_prompt(), request.last_user_text()), ("Be brief.".into(), "hi".into()));
    assert_eq!(request.body()["max_tokens"], 99);
}

#[tokio::test]
async fn reasoning_effort_is_sent_in_provider_format() {
    let bench = Bench::new();
    let prompt =
        Prompt { reasoning_effort: Some(ReasoningEffort::High), temperature: Some(0.5), ..user("hi") };
    bench.ask("openai/gpt-5-mini", &prompt).await.unwrap();
    let request = bench.server.last_request();
    assert_eq!(
        (&request.body()["reasoning_effort"], &request.body()["temperature"]),
        (&"high".into(), &0.5.into())
    );

    bench.ask("anthropic/claude-sonnet-4-5", &prompt).await.unwrap();
    let body = bench.server.last_request().body().clone();
    assert!(body["thinking"]["budget_tokens"].as_u64() < body["max_tokens"].as_u64(), "{body}");
    assert_eq!(body["thinking"]["type"], "enabled", "{body}");
    assert!(body.get("temperature").is_none(), "Anthropic refuses one where it is to think: {body}");

    let short = Prompt { max_tokens: Some(8_192), ..prompt };
    bench.ask("anthropic/claude-sonnet-4-5", &short).await.unwrap();
    let body = bench.server.last_request().body().clone();
    assert_eq!(
        (&body["thinking"]["budget_tokens"], &body["max_tokens"]),
        (&4_096.into(), &8_192.into()),
        "{body}"
    );
}

#[tokio::test]
async fn concurrent_calls_do_not_mix() {
    let bench = Bench::new();
    let seen = Mutex::new(0);
    let ask = |n: usize| {
        let (bench, seen) = (&bench, &seen);
        async move {
            let reply = bench.ask(SHAPES[n % 2], &user(&format!("number {n}"))).await.unwrap();
            assert_eq!(reply.text, format!("echo: number {n}"));
            *seen.lock().unwrap() += 1;
        }
    };
    futures_util::future::join_all((0..50).map(ask)).await;
    assert_eq!(*seen.lock().unwrap(), 50);
}
