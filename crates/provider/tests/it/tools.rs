use polyclaw_domain::provider::{ErrorClass, Prompt, PromptMessage, ReasoningEffort};
use polyclaw_domain::tool::{ToolCall, ToolConsent, ToolEffect, ToolRisk, ToolSpec};
use polyclaw_testkit::model_server::ReplyScript;
use serde_json::{Value, json};

use crate::fixture::{Bench, SHAPES, user};

fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments }
}

fn result(id: &str, name: &str, content: &str, is_error: bool) -> PromptMessage {
    PromptMessage::ToolResult { call_id: id.into(), name: name.into(), content: content.into(), is_error }
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: format!("Does {name}."),
        parameters: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
        effect: ToolEffect::Pure,
        risk: ToolRisk::Low,
        consent: ToolConsent::NotNeeded,
        confined: false,
    }
}

/// A turn in its second round: two calls were made, one of them failed.
fn second_round() -> Prompt {
    let calls = vec![call("c1", "read", json!({ "path": "a" })), call("c2", "list", json!({}))];
    Prompt {
        messages: vec![
            PromptMessage::user_text("look"),
            PromptMessage::Assistant { text: "I look.".into(), calls },
            result("c1", "read", "alpha", false),
            result("c2", "list", "no such folder", true),
        ],
        tools: vec![spec("read").into(), spec("list").into()],
        ..Prompt::default()
    }
}

#[tokio::test]
async fn tool_calls_are_assembled_with_arguments() {
    let bench = Bench::new();
    for model in SHAPES {
        let script = ReplyScript::reply("Let me see.")
            .call("c1", "read", json!({ "path": "ü/b", "deep": { "n": [1, 2] } }))
            .call("c2", "list", json!({}));
        let reply = bench.says(model, script).await.unwrap();
        assert_eq!(reply.text, "Let me see.");
        let expected = [
            call("c1", "read", json!({ "path": "ü/b", "deep": { "n": [1, 2] } })),
            call("c2", "list", json!({})),
        ];
        assert_eq!(reply.calls, expected, "{model}");
    }
}

#[tokio::test]
async fn calls_and_results_are_sent_in_openai_format() {
    let bench = Bench::new();
    bench.ask("openai/m", &second_round()).await.unwrap();
    let request = bench.server.last_request();
    let messages = request.messages();
    assert_eq!(messages.len(), 4);
    assert_eq!((&messages[1]["role"], &messages[1]["content"]), (&json!("assistant"), &json!("I look.")));
    assert_eq!(
        messages[1]["tool_calls"],
        json!([
            { "type": "function", "id": "c1", "function": { "name": "read", "arguments": "{\"path\":\"a\"}" } },
            { "type": "function", "id": "c2", "function": { "name": "list", "arguments": "{}" } },
        ])
    );
    assert_eq!(messages[2], json!({ "role": "tool", "content": "alpha", "tool_call_id": "c1" }));
    assert_eq!(messages[3], json!({ "role": "tool", "content": "no such folder", "tool_call_id": "c2" }));
    assert_eq!(request.tool_names(), ["read", "list"]);
    assert_eq!(request.body()["tools"][0]["function"]["parameters"], spec("read").parameters);
}

#[tokio::test]
async fn calls_and_results_are_sent_in_anthropic_format() {
    let bench = Bench::new();
    bench.ask("anthropic/m", &second_round()).await.unwrap();
    let request = bench.server.last_request();
    let messages = request.messages();
    assert_eq!(messages.len(), 3, "both results stand in one message");
    assert_eq!(
        messages[1]["content"],
        json!([
            { "type": "text", "text": "I look." },
            { "type": "tool_use", "id": "c1", "name": "read", "input": { "path": "a" } },
            { "type": "tool_use", "id": "c2", "name": "list", "input": {} },
        ])
    );
    assert_eq!(messages[2]["role"], "user");
    assert_eq!(
        messages[2]["content"],
        json!([
            { "type": "tool_result", "content": "alpha", "tool_use_id": "c1" },
            { "type": "tool_result", "tool_use_id": "c2", "content": "no such folder", "is_error": true },
        ])
    );
    assert_eq!(request.tool_names(), ["read", "list"]);
    assert_eq!(request.body()["tools"][0]["input_schema"], spec("read").parameters);
}

#[tokio::test]
async fn non_object_arguments_are_kept_as_text() {
    let bench = Bench::new();
    for model in SHAPES {
        for arguments in ["{\"path\": ", "[1]", "\"text\""] {
            let script = ReplyScript::new().raw_call("c1", "read", arguments).call("c2", "list", json!({}));
            let reply = bench.says(model, script).await.unwrap();
            let expected = [call("c1", "read", json!(arguments)), call("c2", "list", json!({}))];
            assert_eq!(reply.calls, expected, "{model}");
        }
        let reply = bench.says(model, ReplyScript::new().raw_call("c1", "read", "")).await.unwrap();
        assert_eq!(reply.calls, [call("c1", "read", json!({}))], "{model}");
    }
}

/// Servers read what they are given back, and refuse a whole conversation for one call they can not read.
#[tokio::test]
async fn non_object_arguments_are_sent_back_inside_object() {
    let bench = Bench::new();
    let mut prompt = second_round();
    let calls = vec![call("c1", "read", json!("{\"path\": ")), call("c2", "list", json!({}))];
    prompt.messages[1] = PromptMessage::Assistant { text: "I look.".into(), calls };
    let kept = json!({ "unreadable": "{\"path\": " });
    bench.ask("openai/m", &prompt).await.unwrap();
    let sent = bench.server.last_request().messages()[1]["tool_calls"][0].clone();
    let arguments = sent["function"]["arguments"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), kept);
    bench.ask("anthropic/m", &prompt).await.unwrap();
    assert_eq!(bench.server.last_request().messages()[1]["content"][1]["input"], kept);
}

#[tokio::test]
async fn truncated_tool_call_is_dropped() {
    let bench = Bench::new();
    for model in SHAPES {
        let script = ReplyScript::reply("I").raw_call("c1", "read", "{\"path\": \"a").truncated();
        let reply = bench.says(model, script).await.unwrap();
        assert!(reply.truncated && reply.calls.is_empty(), "{model}");
    }
}

#[tokio::test]
async fn reused_tool_call_id_is_replaced() {
    let bench = Bench::new();
    for model in SHAPES {
        bench.server.push(ReplyScript::new().call("c1", "read", json!({})).call("c1x", "read", json!({})));
        let reply = bench.ask(model, &second_round()).await.unwrap();
        let ids: Vec<_> = reply.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["c11", "c1x"], "{model}");
    }
}

/// Servers that number their calls from elsewhere, or absurdly: neither extra calls nor memory without end.
#[tokio::test]
async fn unusual_call_index_creates_one_call() {
    let bench = Bench::new();
    for index in [1_u32, 7, u32::MAX] {
        let piece =
            |delta: Value| format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }));
        let script = ReplyScript::new()
            .raw(piece(json!({ "tool_calls": [{ "index": index, "id": "c1", "function": { "name": "f", "arguments": "{\"a\"" } }] })))
            .raw(piece(json!({ "tool_calls": [{ "index": index, "function": { "arguments": ":1}" } }] })));
        let reply = bench.says("openai/m", script).await.unwrap();
        assert_eq!(reply.calls, [call("c1", "f", json!({ "a": 1 }))]);
    }
}

#[tokio::test]
async fn announced_but_missing_call_is_malformed() {
    let bench = Bench::new();
    let announced = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
    let script = ReplyScript::new().raw(format!("data: {announced}\n\ndata: [DONE]\n\n")).unfinished();
    assert_eq!(bench.class("openai/m", script).await, ErrorClass::Malformed);
    assert!(bench.ask("openai/m", &user("hi")).await.is_ok());
}

#[tokio::test]
async fn older_anthropic_models_get_no_thinking_after_tool_call() {
    let bench = Bench::new();
    let prompt = Prompt { reasoning_effort: Some(ReasoningEffort::High), ..second_round() };
    for model in ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-1", "claude-3-7-sonnet-latest", "m"]
    {
        bench.ask(&format!("anthropic/{model}"), &prompt).await.unwrap();
        let body = bench.server.last_request().body().clone();
        assert!(body.get("thinking").is_none(), "it would be refused without its thoughts: {body}");
    }
    for model in
        ["claude-opus-4-5", "claude-opus-4-7", "claude-sonnet-4-6", "claude-sonnet-5", "claude-haiku-5"]
    {
        bench.ask(&format!("anthropic/{model}"), &prompt).await.unwrap();
        let body = bench.server.last_request().body().clone();
        assert_eq!(body["output_config"]["effort"], "high", "{body}");
        assert_ne!(body["thinking"]["type"], "enabled", "{body}");
    }
}
