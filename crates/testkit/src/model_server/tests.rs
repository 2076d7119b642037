use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

fn body(stream: bool) -> Value {
    json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "hi" }] })
}

async fn post(server: &ModelServer, path: &str, body: &Value) -> reqwest::Response {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.post(format!("{}/{path}", server.url())).json(body).send().await.unwrap()
}

async fn whole(server: &ModelServer, path: &str) -> Value {
    post(server, path, &body(false)).await.json().await.unwrap()
}

#[tokio::test]
async fn both_api_formats_answer_without_streaming() {
    let server = ModelServer::start();
    let script = || ReplyScript::reply("ok").call("c1", "f", json!({ "a": 1 })).usage(3, 4);
    server.push(script());
    let openai = whole(&server, "chat/completions").await;
    let message = &openai["choices"][0]["message"];
    assert_eq!((&message["content"], &openai["usage"]["total_tokens"]), (&json!("ok"), &json!(7)));
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], "{\"a\":1}");
    assert_eq!(openai["choices"][0]["finish_reason"], "tool_calls");
    server.push(script());
    let anthropic = whole(&server, "messages").await;
    assert_eq!(anthropic["content"][0]["text"], "ok");
    assert_eq!(anthropic["content"][1]["input"], json!({ "a": 1 }));
    assert_eq!(
        (&anthropic["stop_reason"], &anthropic["usage"]["output_tokens"]),
        (&json!("tool_use"), &json!(4))
    );
    server.push(ReplyScript::reply("ok").no_usage());
    assert!(whole(&server, "messages").await.get("usage").is_none());
}

#[tokio::test]
async fn pushed_scripts_precede_the_answer_function_and_the_echo() {
    let server = ModelServer::start();
    let text = async || whole(&server, "chat/completions").await["choices"][0]["message"]["content"].clone();
    assert_eq!(text().await, "echo: hi");
    server.answer_with(|request| {
        ReplyScript::reply(format!("{} of {}", request.last_user_text(), request.model()))
    });
    server.push(ReplyScript::reply("first"));
    assert_eq!((text().await, text().await), (json!("first"), json!("hi of m")));
    assert_eq!(server.wait_for_requests(3).await.len(), 3);
}

#[tokio::test]
async fn gate_before_first_output_delays_the_response_head() {
    let server = ModelServer::start();
    let gate = ReplyGate::new();
    server.push(ReplyScript::new().gate(&gate).text("late"));
    let request = body(true);
    let mut answer = std::pin::pin!(post(&server, "chat/completions", &request));
    tokio::select! {
        _ = &mut answer => panic!("answered through a closed gate"),
        _ = server.wait_for_requests(1) => gate.open(),
    }
    assert!(answer.await.text().await.unwrap().contains("late"));
}

#[tokio::test]
async fn dropping_the_server_ends_hanging_answers() {
    let server = ModelServer::start();
    server.push(ReplyScript::reply("one").hang());
    let mut answer = post(&server, "messages", &body(true)).await;
    assert!(answer.chunk().await.unwrap().is_some());
    let address = server.address();
    drop(server);
    while let Ok(Some(_)) = answer.chunk().await {}
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[tokio::test]
async fn errors_carry_status_body_and_retry_after() {
    let server = ModelServer::start();
    server.push(ReplyScript::error(429, json!({ "error": "slow" })).retry_after(3));
    let answer = post(&server, "messages", &body(true)).await;
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"3".parse().unwrap()));
    assert_eq!(answer.json::<Value>().await.unwrap(), json!({ "error": "slow" }));
}

#[tokio::test]
async fn chunks_are_sent_apart_with_their_pauses() {
    let server = ModelServer::start();
    server.push(ReplyScript::new().chunks("abc", 3, Duration::from_millis(20)));
    let started = Instant::now();
    let mut answer = post(&server, "chat/completions", &body(true)).await;
    let mut chunks = 0;
    while answer.chunk().await.unwrap().is_some() {
        chunks += 1;
    }
    assert!(chunks >= 3 && started.elapsed() >= Duration::from_millis(40), "{chunks} chunks");
}
