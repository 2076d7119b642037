//! Redacts error responses. Errors quote the request, which may contain a secret in the wrong place, such as in an
//! id, a name or a query. Known secrets and texts that look like one are removed.

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

/// A server with a redactor.
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

/// Redacts errors. It wraps the layers that format errors, so that every format is covered.
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
