//! Around every call: what it took, what it answered, and a panic that stays inside.

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
use crate::metrics::Metrics;
use crate::openai;

pub async fn observe(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
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
        response = openai::reshape(response);
    }
    harden(&mut response);
    let route = metrics.route(path.as_ref().map(MatchedPath::as_str), &method);
    route.count(response.status(), started.elapsed());
    response
}

/// Nothing here is to be guessed at or kept by a browser.
fn harden(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
