use polyclaw_testkit::wait_until;
use reqwest::Method;
use serde_json::{Value, json};

use crate::instance::{Answer, Instance};
use crate::stream::Events;

pub const PATH: &str = "/v1/chat/completions";

pub fn ask(text: &str) -> Value {
    json!({ "model": "polyclaw/main", "messages": [{ "role": "user", "content": text }] })
}

/// All chunks of a stream, and whether `[DONE]` came.
pub async fn chunks(instance: &Instance, mut body: Value) -> (Vec<Value>, bool) {
    body["stream"] = json!(true);
    let mut events = Events::open(instance.request(Method::POST, PATH).json(&body)).await;
    let mut chunks = Vec::new();
    while let Some(event) = events.next().await {
        if event.data == "[DONE]" {
            assert!(events.next().await.is_none());
            return (chunks, true);
        }
        chunks.push(event.json());
    }
    (chunks, false)
}

#[tokio::test]
async fn chat_completion_has_openai_shape() {
    let instance = Instance::start().await;
    let answer = instance.post(PATH, ask("hello")).await;
    let mut body = answer.ok().clone();
    assert!(body["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert!(body["created"].as_i64().unwrap() > 1_700_000_000);
    body["id"] = json!("chatcmpl-x");
    body["created"] = json!(1);
    let expected = json!({
        "id": "chatcmpl-x",
        "object": "chat.completion",
        "created": 1,
        "model": "polyclaw/main",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": "You said: hello", "refusal": null },
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 },
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn model_names_resolve_to_agents() {
    let instance = Instance::start().await;
    for model in ["polyclaw/main", "main", "polyclaw"] {
        let mut body = ask("hi");
        body["model"] = json!(model);
        assert_eq!(instance.post(PATH, body).await.ok()["model"], model);
    }
    let listed = instance.get("/v1/models").await;
    assert_eq!(
        (&listed.ok()["object"], &listed.body["data"][0]["id"]),
        (&json!("list"), &json!("polyclaw/main"))
    );
    for id in ["polyclaw/main", "main", "polyclaw", "polyclaw%2Fmain"] {
        assert_eq!(instance.get(&format!("/v1/models/{id}")).await.ok()["object"], "model");
    }
    for missing in ["polyclaw/nobody", "gpt-4o", "Not An Id"] {
        let mut body = ask("hi");
        body["model"] = json!(missing);
        let refused = instance.post(PATH, body).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.body["error"]["code"]),
            (404, &json!("model_not_found"))
        );
        let shown = instance.get(&format!("/v1/models/{}", missing.replace(' ', "%20"))).await;
        assert_eq!((shown.status.as_u16(), &shown.body["error"]["code"]), (404, &json!("model_not_found")));
    }
}

#[tokio::test]
async fn chat_stream_starts_with_role_and_ends_with_done() {
    let instance = Instance::start().await;
    let mut body = ask("hello there");
    body["stream_options"] = json!({ "include_usage": true });
    let (chunks, done) = chunks(&instance, body).await;
    assert!(done);
    let delta = |n: usize| &chunks[n]["choices"][0]["delta"];
    assert_eq!(delta(0), &json!({ "role": "assistant", "content": "" }));
    let text: String = chunks.iter().filter_map(|c| c["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "You said: hello there");
    assert!(chunks.len() > 5, "word by word");
    let last = &chunks[chunks.len() - 2];
    assert_eq!((&last["choices"][0]["finish_reason"], delta(chunks.len() - 2)), (&json!("stop"), &json!({})));
    let usage = &chunks[chunks.len() - 1];
    assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(10)));
    for chunk in &chunks {
        assert_eq!((&chunk["object"], &chunk["id"]), (&json!("chat.completion.chunk"), &chunks[0]["id"]));
    }
}

#[tokio::test]
async fn chat_stream_delivers_text_before_turn_ends() {
    let instance = Instance::start().await;
    let mut body = ask("hold");
    body["stream"] = json!(true);
    let mut events = Events::open(instance.request(Method::POST, PATH).json(&body)).await;
    events.next().await.unwrap();
    let first = events.next().await.unwrap().json();
    assert_eq!(first["choices"][0]["delta"]["content"], "first ");
    instance.gate.add_permits(1);
    let second = events.next().await.unwrap().json();
    assert_eq!(second["choices"][0]["delta"]["content"], "second");
}

#[tokio::test]
async fn client_disconnect_does_not_end_the_turn() {
    let instance = Instance::start().await;
    let mut body = ask("hold");
    body["stream"] = json!(true);
    let mut events = Events::open(instance.request(Method::POST, PATH).json(&body)).await;
    events.next().await.unwrap();
    events.next().await.unwrap();
    drop(events);
    instance.gate.add_permits(1);
    let is_done = async || instance.get("/api/v1/turns").await.ok()["turns"][0]["state"] == "done";
    wait_until("the turn ends", is_done).await;
}

#[tokio::test]
async fn unknown_usage_is_null_and_never_zero() {
    let instance = Instance::start().await;
    assert_eq!(instance.post(PATH, ask("unknown-usage")).await.ok()["usage"], Value::Null);
    let mut body = ask("unknown-usage");
    body["stream_options"] = json!({ "include_usage": true });
    let (chunks, _) = chunks(&instance, body).await;
    assert!(chunks.iter().all(|chunk| chunk["usage"].is_null()));
}

#[tokio::test]
async fn failed_turn_returns_error_response() {
    let instance = Instance::start().await;
    let failed = instance.post(PATH, ask("fail")).await;
    assert_eq!(failed.status, 502);
    assert_eq!(failed.headers["x-should-retry"], "false");
    assert_eq!(
        (&failed.body["error"]["code"], &failed.body["error"]["type"]),
        (&json!("provider_failed"), &json!("server_error"))
    );
    assert!(failed.body["error"]["message"].as_str().unwrap().contains("too busy"));
    let (chunks, done) = chunks(&instance, ask("fail")).await;
    assert!(done);
    assert_eq!(chunks.last().unwrap()["error"]["code"], "provider_failed");
}

#[tokio::test]
async fn without_user_history_comes_from_request() {
    let instance = Instance::start().await;
    let body = json!({ "model": "main", "messages": [
        { "role": "system", "content": "Speak like a pirate." },
        { "role": "user", "content": "my name is Ada" },
        { "role": "assistant", "content": "Aye, Ada." },
        { "role": "user", "content": [{ "type": "text", "text": "prompt please" }] },
    ]});
    let answer = instance.post(PATH, body.clone()).await;
    let shown = answer.ok()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let expected = r#"[User { text: "my name is Ada", images: [] }, Assistant { text: "Aye, Ada.", calls: [] }, User { text: "prompt please", images: [] }]"#;
    assert_eq!(shown, expected);
    assert_eq!(
        instance.post(PATH, body).await.ok()["choices"][0]["message"]["content"],
        expected,
        "no leftovers"
    );
}

#[tokio::test]
async fn system_message_is_appended_but_not_stored() {
    let instance = Instance::start().await;
    let body = |text: &str, system: Option<&str>| {
        let system = system.map(|content| json!({ "role": "system", "content": content }));
        let user = json!({ "role": "user", "content": text });
        let messages: Vec<Value> = system.into_iter().chain([user]).collect();
        json!({ "model": "main", "user": "ada", "messages": messages })
    };
    let first = instance.post(PATH, body("system", Some("Speak like a pirate."))).await;
    let text = first.ok()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert!(text.starts_with("You are main") && text.ends_with("Speak like a pirate."), "{text}");
    let second = instance.post(PATH, body("system", None)).await;
    assert!(!second.ok()["choices"][0]["message"]["content"].as_str().unwrap().contains("pirate"));
    let transcript = instance.get("/api/v1/sessions/agent%3Amain%3Aopenai%3Adm%3Aada/transcript").await;
    assert_eq!(transcript.ok()["messages"][0]["text"], "system", "what was said is kept as it was said");
}

#[tokio::test]
async fn user_field_selects_persistent_session() {
    let instance = Instance::start().await;
    let body = |messages: Value| json!({ "model": "main", "user": "ada", "messages": messages });
    instance.post(PATH, body(json!([{ "role": "user", "content": "one" }]))).await.ok();
    let answer = instance
        .post(
            PATH,
            body(json!([
                { "role": "user", "content": "one" },
                { "role": "assistant", "content": "You said: one" },
                { "role": "user", "content": "prompt" },
            ])),
        )
        .await;
    let shown = answer.ok()["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(shown.matches("User {").count(), 2, "only what is new was added: {shown}");
}

#[tokio::test]
async fn text_around_tool_call_is_separated_by_blank_line() {
    let instance = Instance::start().await;
    let (chunks, _) = chunks(&instance, ask("look-and-call clock")).await;
    let text: String = chunks.iter().filter_map(|c| c["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "Looking.\n\nIt said: clock ran");
}

#[tokio::test]
async fn repeated_idempotency_key_returns_same_turn() {
    let instance = Instance::start().await;
    let send = || {
        let request =
            instance.request(Method::POST, PATH).header("idempotency-key", "abc").json(&ask("hello"));
        Answer::of(request)
    };
    let (first, second) = (send().await, send().await);
    assert_eq!(first.ok()["id"], second.ok()["id"]);
    assert_eq!(first.body["choices"], second.body["choices"]);
}

#[tokio::test]
async fn request_token_limit_is_passed_to_model() {
    let instance = Instance::start().await;
    for (name, tokens, expected) in
        [("max_tokens", 2, "Some(2)"), ("max_completion_tokens", 3, "Some(3)"), ("temperature", 1, "None")]
    {
        let mut body = ask("limit");
        body[name] = json!(tokens);
        assert_eq!(
            instance.post(PATH, body).await.ok()["choices"][0]["message"]["content"],
            expected,
            "{name}"
        );
    }
    let mut none = ask("limit");
    none["max_tokens"] = json!(0);
    instance.post(PATH, none).await.refuses(400, "invalid_parameter");
}

/// OpenAI's clients send no key; they count how often they tried.
#[tokio::test]
async fn client_retry_returns_answer_of_first_attempt() {
    let instance = Instance::start().await;
    let send = |tries: &str, text: &str| {
        let mut body = ask(text);
        body["user"] = json!("ann");
        Answer::of(instance.request(Method::POST, PATH).header("x-stainless-retry-count", tries).json(&body))
    };
    let first = send("0", "hello").await.ok()["id"].clone();
    assert_eq!(send("1", "hello").await.ok()["id"], first, "the same words again");
    assert_eq!(send("2", "hello").await.ok()["id"], first);
    assert_ne!(send("1", "other").await.ok()["id"], first, "the first try of these never arrived");
    let second = send("0", "hello").await.ok()["id"].clone();
    assert_ne!(second, first, "a first try is a message of its own, whatever it says");
    assert_eq!(send("1", "hello").await.ok()["id"], second);
    send("0", "something else").await.ok();
    assert_ne!(
        send("1", "hello").await.ok()["id"],
        second,
        "said again after something else, it is said again"
    );
    let failed = [send("0", "fail").await, send("1", "fail").await];
    assert!(failed.iter().all(|answer| answer.status.is_server_error()));
    let shown = instance.get("/api/v1/sessions/agent%3Amain%3Aopenai%3Adm%3Aann/transcript").await;
    let reply = shown.ok()["messages"].as_array().unwrap().iter().filter(|one| one["text"] == "fail");
    assert_eq!(reply.count(), 2, "a turn that failed is tried anew");
}

#[tokio::test]
async fn invalid_conversations_are_refused() {
    let instance = Instance::start().await;
    let with = |messages: Value| json!({ "model": "main", "messages": messages });
    let image = json!([{ "type": "image_url", "image_url": { "url": "data:x" } }]);
    let mut many = ask("x");
    many["n"] = json!(2);
    let mut strange = ask("x");
    strange["tools"] = json!([{ "type": "retrieval" }]);
    let mut long = ask("x");
    long["user"] = json!("u".repeat(600));
    let cases = [
        (with(json!([])), "invalid_body"),
        (with(json!([{ "role": "assistant", "content": "x" }])), "invalid_body"),
        (with(json!([{ "role": "system", "content": "x" }])), "invalid_body"),
        (with(json!([{ "role": "wizard", "content": "x" }])), "invalid_parameter"),
        (with(json!([{ "role": "user", "content": image }])), "invalid_parameter"),
        (with(json!([{ "role": "system", "content": image }])), "attachment_not_supported"),
        (with(json!([{ "role": "user", "content": "" }])), "empty_message"),
        (with(json!([{ "role": "tool", "tool_call_id": "none", "content": "x" }])), "invalid_parameter"),
        (with(json!([{ "role": "tool", "content": "x" }])), "invalid_body"),
        (json!({ "model": "main" }), "invalid_body"),
        (json!({ "messages": [] }), "invalid_body"),
        (many, "invalid_parameter"),
        (strange, "invalid_parameter"),
        (long, "invalid_parameter"),
    ];
    for (body, code) in cases {
        let refused = instance.post(PATH, body.clone()).await;
        let error = &refused.body["error"];
        assert_eq!((refused.status.as_u16(), &error["code"]), (400, &json!(code)), "{body}");
        assert_eq!(error["type"], "invalid_request_error");
    }
}

#[tokio::test]
async fn slow_stream_reader_still_gets_final_answer() {
    let instance = Instance::start().await;
    let mut body = ask("flood 8000");
    body["stream"] = json!(true);
    body["user"] = json!("ada");
    let mut events = Events::open(instance.request(Method::POST, PATH).json(&body)).await;
    // It reads nothing until the turn is over.
    let turns = "/api/v1/turns?session=agent%3Amain%3Aopenai%3Adm%3Aada&state=done";
    wait_until("the turn is over", async || {
        !instance.get(turns).await.ok()["turns"].as_array().unwrap().is_empty()
    })
    .await;
    let mut text = String::new();
    loop {
        let event = events.next().await.expect("it ends with [DONE]");
        if event.data == "[DONE]" {
            break;
        }
        text.push_str(event.json()["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
    }
    assert!(text.ends_with("\n\nflooded"), "{}", &text[text.len() - 40..]);
}

#[tokio::test]
async fn steered_question_is_answered_after_newer_one() {
    let instance = Instance::start().await;
    let body = |text: &str, stream: bool| {
        let mut body = ask(text);
        body["user"] = json!("ada");
        body["stream"] = json!(stream);
        body
    };
    let request = instance.request(Method::POST, PATH).json(&body("look-and-call wait", true));
    let mut first = Events::open(request).await;
    first.next().await.unwrap();
    assert_eq!(first.next().await.unwrap().json()["choices"][0]["delta"]["content"], "Looking.");
    let second = tokio::spawn(Answer::of(instance.request(Method::POST, PATH).json(&body("hello", false))));
    let backlog = "/api/v1/sessions/agent%3Amain%3Aopenai%3Adm%3Aada/backlog";
    wait_until("it waits", async || {
        !instance.get(backlog).await.ok()["waiting"].as_array().unwrap().is_empty()
    })
    .await;
    instance.gate.add_permits(1);
    assert_eq!(second.await.unwrap().ok()["choices"][0]["message"]["content"], "You said: hello");
    let mut rest = String::new();
    while let Some(event) = first.next().await.filter(|event| event.data != "[DONE]") {
        rest.push_str(event.json()["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
    }
    assert!(rest.contains("[Backlog]") && rest.contains("look-and-call wait"), "{rest}");
}
