//! The server's side of the wire. It stands on hyper itself: only there can a request end with no answer at all.

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::state::State;
use super::{Arrival, Outcome, signature};

/// The connection is closed without an answer.
#[derive(Debug)]
struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut by the script")
    }
}

impl std::error::Error for Cut {}

pub(super) async fn serve(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        connections.spawn(converse(socket, Arc::clone(&state)));
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(socket: TcpStream, state: Arc<State>) {
    let service = service_fn(move |request| answer(Arc::clone(&state), request));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    let (head, body) = request.into_parts();
    if head.method != Method::POST || head.uri.path() != "/replies" {
        return Ok(status(404));
    }
    let body = to_bytes(Body::new(body), usize::MAX).await.map_err(|_| Cut)?;
    if !is_genuine(&state, &head.headers, &body) {
        return Ok(status(401));
    }
    let Some(arrival) = read(&head.headers, &body) else { return Ok(status(400)) };
    let (outcome, id) = state.take_in(arrival);
    match outcome {
        Outcome::Shown => Ok(accepted(&id)),
        Outcome::ShownThenStatus(code) | Outcome::Status(code) => Ok(status(code)),
        Outcome::Later { status: code, seconds } => {
            let mut response = status(code);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
            Ok(response)
        }
        Outcome::ShownThenCut | Outcome::Cut => Err(Cut),
        Outcome::ShownThenHang => std::future::pending().await,
    }
}

fn is_genuine(state: &State, headers: &HeaderMap, body: &Bytes) -> bool {
    let Some(secret) = state.secret() else { return true };
    text(headers, signature::HEADER).is_some_and(|given| given == signature::sign(&secret, body))
}

/// A body without a key, a peer or a text, or with another key than its header, is a fault of the sender.
fn read(headers: &HeaderMap, body: &Bytes) -> Option<Arrival> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let field = |name: &str| body.get(name)?.as_str().map(str::to_owned);
    let key = text(headers, "Idempotency-Key").filter(|key| Some(key) == field("key").as_ref())?;
    Some(Arrival {
        key,
        peer: field("peer")?,
        thread: field("thread"),
        text: field("text")?,
        signature: text(headers, signature::HEADER),
        shown: false,
    })
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn accepted(id: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(json!({ "id": id }).to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn status(code: u16) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // A redirect must lead somewhere for a test to see that nobody follows it.
    if response.status().is_redirection() {
        response.headers_mut().insert("location", HeaderValue::from_static("/replies"));
    }
    response
}
