//! Embeddings of a provider on the wire.

use polyclaw_domain::embedding::Embedder;
use polyclaw_domain::provider::ErrorClass;
use polyclaw_provider::embedded::LocalEmbeddings;
use polyclaw_provider::{ProviderSettings, ProviderVendor, RemoteEmbeddings};
use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::json;

fn remote(server: &ModelServer, dim: usize) -> RemoteEmbeddings {
    let settings = ProviderSettings::new("lab", ProviderVendor::OpenAiCompatible).base_url(server.url());
    RemoteEmbeddings::new(settings, "m", dim).unwrap()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn vectors_are_normalized_and_in_text_order() {
    let server = ModelServer::start();
    let embedder = remote(&server, 3);
    assert_eq!((embedder.model_id(), embedder.dimensions()), ("lab/m", 3));
    let vectors = embedder.embed_texts(&texts(&["abcd 12", " ", "1"])).await.unwrap();
    assert_eq!(vectors[1], [0.0; 3], "a text without words is near to nothing and sent to nobody");
    assert_eq!(vectors[2], [0.0, 0.5_f32.sqrt(), 0.5_f32.sqrt()]);
    assert!(vectors[0][0] > vectors[0][2]);
    assert_eq!(server.last_request().body()["input"], json!(["abcd 12", "1"]));
    let many: Vec<String> = (0..150).map(|n| format!("text {n}")).collect();
    assert_eq!(embedder.embed_texts(&many).await.unwrap().len(), 150);
    assert_eq!(server.request_count(), 4);
}

#[tokio::test]
async fn embedding_errors_are_classified() {
    let server = ModelServer::start();
    let error = remote(&server, 5).embed_texts(&texts(&["a"])).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Malformed);
    for (status, class) in
        [(401, ErrorClass::Auth), (429, ErrorClass::RateLimit), (500, ErrorClass::Overload)]
    {
        server.push(ReplyScript::error(status, json!({ "error": { "message": "no" } })));
        assert_eq!(remote(&server, 3).embed_texts(&texts(&["a"])).await.unwrap_err().class, class);
    }
    let embedder = remote(&server, 3);
    drop(server);
    assert_eq!(embedder.embed_texts(&texts(&["a"])).await.unwrap_err().class, ErrorClass::Unreachable);
}

#[tokio::test]
async fn missing_embedding_model_names_pull_command() {
    let embedder = LocalEmbeddings::new("/nowhere/minilm");
    assert_eq!((embedder.model_id(), embedder.dimensions()), ("embedded/all-minilm-l6-v2", 384));
    let error = embedder.embed_texts(&texts(&["a"])).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::NotConfigured);
    assert!(error.message.contains("polyclaw model pull"), "{error}");
}
