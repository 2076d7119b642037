use polyclaw_domain::media::Image;
use polyclaw_domain::provider::{ErrorClass, Prompt, PromptMessage, StreamDelta};
use polyclaw_provider::{ProviderSettings, ProviderVendor};
use polyclaw_testkit::model_server::ReplyScript;
use serde_json::json;

use crate::fixture::{Bench, KEY, SHAPES};

/// `R0lGODlh` in base64.
const GIF: &[u8] = b"GIF89a";

fn look() -> Prompt {
    let images = vec![Image::from_bytes(GIF).unwrap()];
    let shown = PromptMessage::User { text: "what is it?".into(), images };
    Prompt { messages: vec![shown], ..Prompt::default() }
}

const TOLD: &str = "what is it?\n[an image is attached here that you cannot see]";

#[tokio::test]
async fn image_is_sent_in_openai_format() {
    let bench = Bench::new();
    bench.ask("openai/m", &look()).await.unwrap();
    assert_eq!(
        bench.server.last_request().messages()[0]["content"],
        json!([
            { "type": "text", "text": "what is it?" },
            { "type": "image_url", "image_url": { "url": "data:image/gif;base64,R0lGODlh" } },
        ])
    );
}

#[tokio::test]
async fn image_is_sent_in_anthropic_format() {
    let bench = Bench::new();
    bench.ask("anthropic/m", &look()).await.unwrap();
    let content = bench.server.last_request().messages()[0]["content"].clone();
    assert_eq!((&content[0]["type"], &content[0]["text"]), (&json!("text"), &json!("what is it?")));
    assert_eq!(content[1]["type"], "image");
    let source = json!({ "type": "base64", "media_type": "image/gif", "data": "R0lGODlh" });
    assert_eq!(content[1]["source"], source);
}

#[tokio::test]
async fn provider_without_image_support_gets_text_note() {
    let bench = Bench::with(|server| {
        let blind =
            ProviderSettings::new("blind", ProviderVendor::OpenAi).base_url(server.url()).api_key(KEY);
        vec![ProviderSettings { images: false, ..blind }]
    });
    bench.ask("blind/m", &look()).await.unwrap();
    assert_eq!(bench.server.last_request().messages()[0]["content"], TOLD);
}

#[tokio::test]
async fn refused_image_is_retried_without_image() {
    for model in SHAPES {
        let bench = Bench::new();
        bench
            .server
            .push(ReplyScript::error(400, json!({ "error": { "message": "image input is not supported" } })));
        bench.server.push(ReplyScript::reply("I see nothing."));
        let reply = bench.ask(model, &look()).await.unwrap();
        assert_eq!(reply.text, "I see nothing.", "{model}");
        let content = bench.server.last_request().messages()[0]["content"].to_string();
        assert!(content.contains("that you cannot see") && !content.contains("R0lGODlh"), "{content}");
    }
}

#[tokio::test]
async fn retry_without_image_happens_only_once() {
    let bench = Bench::new();
    for _ in 0..3 {
        bench.server.push(ReplyScript::error(400, json!({ "error": { "message": "no" } })));
    }
    let error = bench.ask("openai/m", &look()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::BadRequest);
    assert_eq!(bench.server.requests().len(), 2);
}

#[tokio::test]
async fn too_large_body_is_retried_without_images() {
    let bench = Bench::new();
    bench.server.push(ReplyScript::error(413, json!({})));
    bench.server.push(ReplyScript::reply("I see nothing."));
    let reply = bench.ask("openai/m", &look()).await.unwrap();
    assert_eq!(reply.text, "I see nothing.");
    assert_eq!(bench.server.last_request().messages()[0]["content"], TOLD);
}

#[tokio::test]
async fn oversized_anthropic_image_is_dropped_alone() {
    let bench = Bench::new();
    let large = [GIF, &vec![7; 4 * 1024 * 1024]].concat();
    let images = vec![Image::from_bytes(GIF).unwrap(), Image::from_bytes(large).unwrap()];
    let messages = vec![PromptMessage::User { text: "look".into(), images }];
    bench.ask("anthropic/m", &Prompt { messages, ..Prompt::default() }).await.unwrap();
    let content = bench.server.last_request().messages()[0]["content"].clone();
    assert_eq!(content.as_array().unwrap().len(), 2, "{content}");
    assert_eq!(content[0]["text"], "look\n[an image attached here is too large for you to see]");
    assert_eq!(content[1]["source"]["data"], "R0lGODlh");
}

#[tokio::test]
async fn refused_image_restarts_the_stream() {
    let bench = Bench::new();
    let refusal = r#"data: {"error":{"type":"invalid_request_error","message":"no images"}}"#;
    bench.server.push(ReplyScript::new().text("I s").raw(format!("{refusal}\n\n")));
    bench.server.push(ReplyScript::reply("I see nothing."));
    let (reply, deltas) = bench.ask_all(&["openai/m"], &look()).await;
    assert_eq!(reply.unwrap().text, "I see nothing.");
    let at = deltas.iter().position(|delta| *delta == StreamDelta::Restart).unwrap();
    assert_eq!(deltas[..at], [StreamDelta::Text("I s".into())]);
}

#[tokio::test]
async fn image_for_unconfigured_provider_is_an_error() {
    let bench = Bench::new();
    let error = bench.ask("nobody/m", &look()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::NotConfigured);
}
