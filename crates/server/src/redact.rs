//! Errors quote what was asked, and that may be a secret in the wrong place: an id, a name, a query. What goes out has
//! none of those the server knows, and nothing that looks like one.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::Response;
use polyclaw_domain::redact::Redactor;
use serde_json::Value;

use crate::control::ControlState;
use crate::error::Error;
use crate::state::AppState;

/// A server that knows what must not go out.
pub trait HasRedactor {
    fn redactor(&self) -> Arc<Redactor>;
}

impl HasRedactor for AppState {
    fn redactor(&self) -> Arc<Redactor> {
        self.engine.redactor()
    }
}

impl HasRedactor for ControlState {
    fn redactor(&self) -> Arc<Redactor> {
        self.control.redactor()
    }
}

/// Outside of whatever shapes errors, so that every shape is clean.
pub async fn redact_errors<S: HasRedactor>(State(app): State<S>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if response.extensions().get::<Error>().is_none() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return Response::from_parts(parts, Body::empty());
    };
    let Ok(mut reply) = serde_json::from_slice::<Value>(&bytes) else {
        return Response::from_parts(parts, bytes.into());
    };
    app.redactor().redact_json(&mut reply);
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, reply.to_string().into())
}
