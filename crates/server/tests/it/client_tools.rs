//! Tools a client of the chat endpoint runs itself.

use axum::http::Method;
use serde_json::{Value, json};

use crate::chat::{PATH, ask, chunks};
use crate::instance::{Answer, Instance};

fn weather() -> Value {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    json!([{ "type": "function", "function": { "name": "weather", "description": "w", "parameters": parameters } }])
}

#[tokio::test]
async fn client_tools_work_with_and_without_session() {
    let instance = Instance::start().await;
    for user in [Value::Null, json!("ada")] {
        let question = json!({ "role": "user", "content": "call weather" });
        let body = json!({ "model": "main", "user": user, "tools": weather(), "messages": [question] });
        let called = instance.post(PATH, body.clone()).await;
        let choice = called.ok()["choices"][0].clone();
        assert_eq!(
            (&choice["finish_reason"], &choice["message"]["content"]),
            (&json!("tool_calls"), &Value::Null)
        );
        let call = &choice["message"]["tool_calls"][0];
        assert_eq!((&call["type"], &call["function"]["name"]), (&json!("function"), &json!("weather")));
        assert_eq!(call["function"]["arguments"], r#"{"city":"Bern"}"#);
        let mut follow_up = body;
        follow_up["messages"] = json!([question, choice["message"],
            { "role": "tool", "tool_call_id": call["id"], "content": "sunny" }]);
        let done = async || {
            let request = instance.request(Method::POST, PATH).header("idempotency-key", "once");
            Answer::of(request.json(&follow_up)).await.ok().clone()
        };
        let first = done().await;
        assert_eq!(first["choices"][0]["message"]["content"], "It said: sunny");
        assert_eq!(done().await["id"], first["id"], "the same results again are the same message");
    }
    let sessions = instance.get("/api/v1/sessions").await;
    assert_eq!(
        sessions.ok()["sessions"].as_array().unwrap().len(),
        2,
        "each follow-up went on in its session"
    );
}

#[tokio::test]
async fn only_client_tool_calls_are_returned() {
    let instance = Instance::start().await;
    let mut body = ask("both");
    body["tools"] = weather();
    let (chunks, done) = chunks(&instance, body).await;
    assert!(done);
    let calls: Vec<&Value> =
        chunks.iter().filter_map(|c| c["choices"][0]["delta"].get("tool_calls")).collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].as_array().unwrap().len(), 1);
    assert_eq!((&calls[0][0]["index"], &calls[0][0]["function"]["name"]), (&json!(0), &json!("weather")));
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn tool_results_of_unknown_session_use_request_history() {
    let instance = Instance::start().await;
    let made =
        json!({ "id": "call_9", "type": "function", "function": { "name": "weather", "arguments": "{}" } });
    let body = json!({ "model": "main", "tools": weather(), "messages": [
        { "role": "user", "content": "weather?" },
        { "role": "assistant", "content": null, "tool_calls": [made] },
        { "role": "tool", "tool_call_id": "call_9", "content": "rain" },
    ]});
    let answer = instance.post(PATH, body).await;
    assert_eq!(answer.ok()["choices"][0]["message"]["content"], "It said: rain");
}
