//! Images over every door of an instance, and back out by their hash.

use polyclaw_testkit::PIXEL;
use reqwest::Method;
use serde_json::{Value, json};

use crate::instance::{Instance, ONE};

/// `GIF89a`.
const GIF: &str = "R0lGODlh";

fn in_base64(bytes: &[u8]) -> String {
    polyclaw_domain::media::Image::from_bytes(bytes).unwrap().to_base64()
}

/// What the model was shown of the last message of this transcript that has an image.
async fn hash_in(instance: &Instance, session: &str) -> String {
    let transcript = instance.get(&format!("/api/v1/sessions/{session}/transcript")).await;
    let messages = transcript.ok()["messages"].as_array().unwrap().clone();
    let parts = messages.iter().flat_map(|message| message["parts"].as_array().unwrap());
    parts.filter_map(|part| part["media"].as_str()).next_back().unwrap().to_owned()
}

#[tokio::test]
async fn image_reaches_model_and_is_served_by_hash() {
    let instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/messages?wait=5");
    let image = json!({ "name": "cat.png", "media_type": "image/jpeg", "data": in_base64(PIXEL) });
    let answer = instance.post(&path, json!({ "text": "prompt this", "attachments": [image] })).await;
    let shown = answer.ok()["reply"]["text"].as_str().unwrap();
    assert!(shown.contains("[attachment cat.png (image/png)]"), "its own bytes say what it is: {shown}");
    assert!(shown.contains("Image(image/png, 69 bytes)"), "{shown}");
    let hash = hash_in(&instance, ONE).await;
    let found = instance.request(Method::GET, &format!("/api/v1/media/{hash}")).send().await.unwrap();
    for (header, value) in [
        ("content-type", "image/png"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox"),
    ] {
        assert_eq!(found.headers()[header], value);
    }
    assert_eq!(found.bytes().await.unwrap(), PIXEL);
}

#[tokio::test]
async fn image_requires_token_and_is_deleted_with_session() {
    let instance = Instance::start().await;
    let image = json!({ "name": "a", "media_type": "image/gif", "data": GIF });
    let path = format!("/api/v1/sessions/{ONE}/messages?wait=5");
    instance.post(&path, json!({ "text": "", "attachments": [image] })).await.ok();
    let path = format!("/api/v1/media/{}", hash_in(&instance, ONE).await);
    assert_eq!(instance.bare(Method::GET, &path).send().await.unwrap().status(), 401);
    assert_eq!(instance.request(Method::GET, &path).send().await.unwrap().status(), 200);
    instance.delete(&format!("/api/v1/sessions/{ONE}")).await;
    instance.get(&path).await.refuses(404, "unknown_media");
    for bad in ["x", &"A".repeat(64), "..%2f..%2fetc"] {
        instance.get(&format!("/api/v1/media/{bad}")).await.refuses(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn largest_images_of_one_message_are_accepted() {
    let instance = Instance::start().await;
    let mut large = b"GIF89a".to_vec();
    large.resize(5 << 20, 1);
    let image = |n: u8| {
        let bytes = [large[..large.len() - 1].to_vec(), vec![n]].concat();
        json!({ "name": "a", "media_type": "image/gif", "data": in_base64(&bytes) })
    };
    let path = format!("/api/v1/sessions/{ONE}/messages?wait=20");
    let body = json!({ "text": "prompt this", "attachments": [image(1), image(2), image(3), image(4)] });
    let answer = instance.post(&path, body).await;
    assert_eq!(answer.ok()["reply"]["text"].as_str().unwrap().matches("5242880 bytes").count(), 4);
    let body = json!({ "text": "x", "attachments": vec![image(1); 5] });
    instance.post(&path, body).await.refuses(413, "body_too_large");
}

fn shown(answer: &Value) -> &str {
    answer.as_str().unwrap()
}

#[tokio::test]
async fn openai_requests_pass_new_and_past_images() {
    let instance = Instance::start().await;
    let url = format!("data:image/gif;base64,{GIF}");
    let image = json!({ "type": "image_url", "image_url": { "url": url } });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let messages = json!([
        { "role": "user", "content": [text("first"), image] },
        { "role": "assistant", "content": "I see." },
        { "role": "user", "content": [text("prompt this"), image, image] },
    ]);
    let chat = instance.post("/v1/chat/completions", json!({ "model": "main", "messages": messages })).await;
    let reply = shown(&chat.ok()["choices"][0]["message"]["content"]);
    assert_eq!(reply.matches("Image(image/gif, 6 bytes)").count(), 3, "{reply}");
    let input = json!([{ "role": "user", "content": [
        { "type": "input_text", "text": "prompt this" },
        { "type": "input_image", "image_url": url },
    ] }]);
    let response = instance.post("/v1/responses", json!({ "model": "main", "input": input })).await;
    let reply = shown(&response.ok()["output"][0]["content"][0]["text"]);
    assert!(reply.contains("Image(image/gif, 6 bytes)"), "{reply}");
}

#[tokio::test]
async fn a2a_image_files_reach_the_model() {
    let instance = Instance::start().await;
    let send = async |id: &str, file: Value| {
        let parts = json!([{ "kind": "text", "text": "prompt this" }, { "kind": "file", "file": file }]);
        let message = json!({ "kind": "message", "role": "user", "messageId": id, "parts": parts });
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": { "message": message } });
        instance.post("/a2a/main", body).await.body
    };
    let taken = send("m1", json!({ "name": "a", "mimeType": "image/gif", "bytes": GIF })).await;
    let text = shown(&taken["result"]["artifacts"][0]["parts"][0]["text"]);
    assert!(text.contains("Image(image/gif, 6 bytes)"), "{text}");
    for file in [json!({ "uri": "https://a.example/b.png" }), json!({ "bytes": "aGVsbG8=" })] {
        let refused = send("m2", file).await;
        assert_eq!(refused["error"]["code"], -32005, "{refused}");
        assert_eq!(refused["error"]["data"]["code"], "attachment_not_supported", "{refused}");
    }
}
