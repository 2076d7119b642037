//! The routes. Every answer is played inside its connection's task: the server starts no others.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State as Shared};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::anthropic::Anthropic;
use super::openai::OpenAi;
use super::reply::play;
use super::request::{Request, Shape};
use super::state::{State, count};

pub(super) async fn serve(listener: TcpListener, state: Arc<State>) {
    let router = Router::new()
        .route("/v1/chat/completions", post(chat_completions))
        .route("/v1/messages", post(messages))
        .route("/v1/models", get(models))
        .route("/api/tags", get(tags))
        .layer(DefaultBodyLimit::disable())
        .with_state(Arc::clone(&state));
    let listener = listener.tap_io(move |socket| {
        // Without it small chunks wait for each other, and the server would add the latency it should measure.
        let _ = socket.set_nodelay(true);
        count(&state.connections);
    });
    let _ = axum::serve(listener, router).await;
}

async fn chat_completions(Shared(state): Shared<Arc<State>>, headers: HeaderMap, body: Bytes) -> Response {
    let request = state.record(Request::new(Shape::OpenAi, headers, body));
    let script = state.script_for(&request);
    play(script, request.streams(), OpenAi::new(request.model()), state).await
}

async fn messages(Shared(state): Shared<Arc<State>>, headers: HeaderMap, body: Bytes) -> Response {
    let request = state.record(Request::new(Shape::Anthropic, headers, body));
    let script = state.script_for(&request);
    play(script, request.streams(), Anthropic::new(request.model()), state).await
}

async fn models(Shared(state): Shared<Arc<State>>) -> Json<Value> {
    let model = |name| json!({ "id": name, "object": "model", "created": 0, "owned_by": "testkit" });
    Json(json!({ "object": "list", "data": state.models().into_iter().map(model).collect::<Vec<_>>() }))
}

async fn tags(Shared(state): Shared<Arc<State>>) -> Json<Value> {
    let model = |name: String| json!({ "name": name, "model": name, "size": 1 });
    Json(json!({ "models": state.models().into_iter().map(model).collect::<Vec<_>>() }))
}
