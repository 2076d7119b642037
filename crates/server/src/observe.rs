//! Middleware around every call: counts latency and status, and turns a panic into an error response.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use crate::error::Error;
use crate::metrics::HttpMetrics;
use crate::openai;

pub async fn observe_request(
    State(metrics): State<Arc<HttpMetrics>>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let is_openai = request.uri().path().starts_with("/v1/");
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = answered.unwrap_or_else(|_| Error::Panicked.into_response());
    if let Some(Error::Engine(polyclaw_engine::Error::Store(_))) = response.extensions().get() {
        metrics.store_errors.fetch_add(1, Ordering::Relaxed);
    }
    if is_openai {
        response = openai::reshape_error(response);
    }
    add_security_headers(&mut response);
    let route = metrics.route_counters(path.as_ref().map(MatchedPath::as_str), &method);
    route.count_response(response.status(), started.elapsed());
    response
}

/// Prevents browsers from guessing content types and caching responses.
fn add_security_headers(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn explode() -> Response {
        panic!("the secret of the kitchen");
    }

    #[tokio::test]
    async fn panic_becomes_internal_error_without_details() {
        let metrics = Arc::new(HttpMetrics::new(["/".to_owned()]));
        let router = Router::new()
            .route("/", get(explode))
            .layer(from_fn_with_state(Arc::clone(&metrics), observe_request));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(crate::serve(listener, router, std::future::pending()));
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
        assert!(answer.contains(r#"{"error":{"code":"internal""#) && !answer.contains("kitchen"), "{answer}");
        server.abort();
    }
}
