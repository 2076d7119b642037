//! The routes. Every response is played in its connection's task; the server spawns no others.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State as Shared};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::anthropic::AnthropicRenderer;
use super::openai::OpenAiRenderer;
use super::reply::play_script;
use super::request::{ReceivedRequest, WireShape};
use super::state::{ModelServerState, count_up};

pub(super) async fn serve_models(listener: TcpListener, state: Arc<ModelServerState>) {
    let router = Router::new()
        .route("/v1/chat/completions", post(chat_completions))
        .route("/v1/messages", post(messages))
        .route("/v1/embeddings", post(embeddings))
        .route("/v1/models", get(models))
        .route("/api/tags", get(tags))
        .layer(DefaultBodyLimit::disable())
        .with_state(Arc::clone(&state));
    let listener = listener.tap_io(move |socket| {
        // Without it small chunks wait for each other, and the server would add the latency that it should measure.
        let _ = socket.set_nodelay(true);
        count_up(&state.connections);
    });
    let _ = axum::serve(listener, router).await;
}

async fn chat_completions(
    Shared(state): Shared<Arc<ModelServerState>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request = state.record_request(ReceivedRequest::new(WireShape::OpenAi, headers, body));
    let script = state.script_for(&request);
    play_script(script, request.is_streaming(), OpenAiRenderer::new(request.model()), state).await
}

async fn messages(Shared(state): Shared<Arc<ModelServerState>>, headers: HeaderMap, body: Bytes) -> Response {
    let request = state.record_request(ReceivedRequest::new(WireShape::Anthropic, headers, body));
    let script = state.script_for(&request);
    play_script(script, request.is_streaming(), AnthropicRenderer::new(request.model()), state).await
}

/// Returns an embedding that counts letters, words and digits: deterministic and easy to predict.
async fn embeddings(
    Shared(state): Shared<Arc<ModelServerState>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request = state.record_request(ReceivedRequest::new(WireShape::OpenAi, headers, body));
    if let Some(script) = state.next_pushed() {
        return play_script(script, false, OpenAiRenderer::new(request.model()), state).await;
    }
    let texts = request.body()["input"].as_array().cloned().unwrap_or_default();
    let vector = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        let count = |is: fn(&char) -> bool| text.chars().filter(is).count();
        json!([count(|c| c.is_alphabetic()), text.split_whitespace().count(), count(char::is_ascii_digit)])
    };
    // Returned out of order, as real servers may do.
    let data = texts.iter().enumerate().rev();
    let data =
        data.map(|(index, text)| json!({ "object": "embedding", "index": index, "embedding": vector(text) }));
    let data: Vec<Value> = data.collect();
    let usage = json!({ "prompt_tokens": 1, "total_tokens": 1 });
    Json(json!({ "object": "list", "model": request.model(), "data": data, "usage": usage })).into_response()
}

async fn models(Shared(state): Shared<Arc<ModelServerState>>) -> Json<Value> {
    let model = |name| json!({ "id": name, "object": "model", "created": 0, "owned_by": "testkit" });
    Json(json!({ "object": "list", "data": state.models().into_iter().map(model).collect::<Vec<_>>() }))
}

async fn tags(Shared(state): Shared<Arc<ModelServerState>>) -> Json<Value> {
    let model = |name: String| json!({ "name": name, "model": name, "size": 1 });
    Json(json!({ "models": state.models().into_iter().map(model).collect::<Vec<_>>() }))
}
