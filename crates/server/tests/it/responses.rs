use reqwest::Method;
use serde_json::{Value, json};

use crate::instance::Instance;
use crate::stream::Events;

const PATH: &str = "/v1/responses";

fn weather() -> Value {
    json!([{ "type": "function", "name": "weather", "description": "w", "parameters": { "type": "object" } }])
}

#[tokio::test]
async fn response_has_openai_shape() {
    let instance = Instance::start().await;
    let answer = instance.post(PATH, json!({ "model": "main", "input": "hello" })).await;
    let body = answer.ok();
    assert!(body["id"].as_str().unwrap().starts_with("resp_"));
    assert_eq!((&body["object"], &body["status"]), (&json!("response"), &json!("completed")));
    let item = &body["output"][0];
    assert_eq!(
        (&item["type"], &item["role"], &item["status"]),
        (&json!("message"), &json!("assistant"), &json!("completed"))
    );
    let part = json!({ "type": "output_text", "text": "You said: hello", "annotations": [], "logprobs": [] });
    assert_eq!(item["content"], json!([part]));
    assert_eq!(body["usage"], json!({ "input_tokens": 7, "output_tokens": 3, "total_tokens": 10 }));
    assert_eq!((&body["error"], &body["tools"]), (&Value::Null, &json!([])));
    let unknown = instance.post(PATH, json!({ "model": "main", "input": "unknown-usage" })).await;
    assert_eq!(unknown.ok()["usage"], Value::Null);
}

#[tokio::test]
async fn response_stream_numbers_events_from_created_to_completed() {
    let instance = Instance::start().await;
    let body = json!({ "model": "main", "input": "hello there", "stream": true });
    let mut events = Events::open(instance.request(Method::POST, PATH).json(&body)).await;
    let (mut kinds, mut text, mut last) = (Vec::new(), String::new(), Value::Null);
    while let Some(event) = events.next().await {
        let data = event.json();
        assert_eq!(data["type"], event.kind.unwrap());
        assert_eq!(data["sequence_number"].as_u64().unwrap() as usize, kinds.len());
        text.push_str(data["delta"].as_str().unwrap_or_default());
        kinds.push(data["type"].as_str().unwrap().to_owned());
        last = data;
    }
    kinds.dedup();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(text, "You said: hello there");
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], text);
    assert_eq!(last["response"]["usage"]["total_tokens"], 10);
}

#[tokio::test]
async fn previous_response_id_continues_the_conversation() {
    let instance = Instance::start().await;
    let first = instance.post(PATH, json!({ "model": "main", "input": "one" })).await;
    let id = first.ok()["id"].clone();
    let body = json!({ "model": "main", "input": "prompt", "previous_response_id": id });
    let second = instance.post(PATH, body.clone()).await;
    let shown = second.ok()["output"][0]["content"][0]["text"].as_str().unwrap();
    let expected = r#"[User { text: "one", images: [] }, Assistant { text: "You said: one", calls: [] }, User { text: "prompt", images: [] }]"#;
    assert_eq!(shown, expected);
    assert_eq!(second.body["previous_response_id"], id);
    let stale = instance.post(PATH, body).await;
    assert_eq!((stale.status.as_u16(), &stale.body["error"]["code"]), (400, &json!("invalid_parameter")));
    for missing in ["resp_none", "none"] {
        let body = json!({ "model": "main", "input": "x", "previous_response_id": missing });
        let refused = instance.post(PATH, body).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.body["error"]["code"]),
            (404, &json!("unknown_response"))
        );
    }
}

#[tokio::test]
async fn client_tool_results_continue_the_response() {
    let instance = Instance::start().await;
    let question = json!({ "role": "user", "content": [{ "type": "input_text", "text": "call weather" }] });
    let body = json!({ "model": "main", "tools": weather(), "input": [question] });
    let called = instance.post(PATH, body.clone()).await;
    let call = called.ok()["output"][0].clone();
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("weather")));
    assert_eq!(call["arguments"], r#"{"city":"Bern"}"#);
    let output = json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "sunny" });
    let stateless = json!({ "model": "main", "tools": weather(), "input": [question, call, output] });
    let done = instance.post(PATH, stateless).await;
    assert_eq!(done.ok()["output"][0]["content"][0]["text"], "It said: sunny");
    let again = instance.post(PATH, body).await;
    let output = json!({ "type": "function_call_output", "call_id": again.ok()["output"][0]["call_id"], "output": "rain" });
    let linked = json!({ "model": "main", "tools": weather(), "input": [output], "previous_response_id": again.body["id"] });
    let done = instance.post(PATH, linked).await;
    assert_eq!(done.ok()["output"][0]["content"][0]["text"], "It said: rain");
}

#[tokio::test]
async fn streamed_tool_call_has_all_its_events() {
    let instance = Instance::start().await;
    let body = json!({ "model": "main", "tools": weather(), "input": "call weather", "stream": true });
    let mut events = Events::open(instance.request(Method::POST, PATH).json(&body)).await;
    let mut kinds = Vec::new();
    while let Some(event) = events.next().await {
        kinds.push(event.json()["type"].as_str().unwrap().to_owned());
    }
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn instructions_reach_system_prompt_and_are_echoed() {
    let instance = Instance::start().await;
    let body = json!({ "model": "main", "input": "system", "instructions": "Speak like a pirate." });
    let answer = instance.post(PATH, body).await;
    let text = answer.ok()["output"][0]["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("Speak like a pirate."), "{text}");
    assert_eq!(answer.body["instructions"], "Speak like a pirate.");
}

#[tokio::test]
async fn failed_turn_fails_the_response() {
    let instance = Instance::start().await;
    let failed = instance.post(PATH, json!({ "model": "main", "input": "fail" })).await;
    assert_eq!((failed.status.as_u16(), &failed.body["error"]["code"]), (502, &json!("provider_failed")));
    let body = json!({ "model": "main", "input": "fail", "stream": true });
    let mut events = Events::open(instance.request(Method::POST, PATH).json(&body)).await;
    let mut last = Value::Null;
    while let Some(event) = events.next().await {
        last = event.json();
    }
    assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    assert!(last["response"]["error"]["message"].as_str().unwrap().contains("too busy"));
}

#[tokio::test]
async fn invalid_input_items_are_refused() {
    let instance = Instance::start().await;
    for (input, code) in [
        (json!([{ "type": "computer_call_output", "output": "x" }]), "invalid_parameter"),
        (
            json!([{ "role": "user", "content": [{ "type": "input_image", "image_url": "x" }] }]),
            "remote_image_not_allowed",
        ),
        (json!([{ "type": "function_call_output", "output": "x" }]), "invalid_body"),
        (json!([{ "type": "function_call_output", "call_id": "none", "output": "x" }]), "invalid_parameter"),
        (json!([]), "invalid_body"),
        (json!(7), "invalid_body"),
    ] {
        let refused = instance.post(PATH, json!({ "model": "main", "input": input })).await;
        assert_eq!((refused.status.as_u16(), &refused.body["error"]["code"]), (400, &json!(code)), "{input}");
    }
    let body = json!({ "model": "main", "input": "x", "tools": [{ "type": "web_search" }] });
    assert_eq!(instance.post(PATH, body).await.status, 400);
}
