//! What a browser sees of the control plane: the API, readable. It holds no secret; what it asks for needs the cookie
//! that a one-time link leaves.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::state::ControlState;
use crate::page::{Entrance, entrance, file};

const DOCS: &str = include_str!("../../assets/docs.html");
const SCRIPT: &str = include_str!("../../assets/docs.js");

/// `/?code=…` leaves a cookie; `/` leads to what there is to see.
pub async fn index(
    State(app): State<ControlState>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    match entrance(&app.door, &method, &uri, &headers, app.control.now()) {
        Entrance::None => (StatusCode::SEE_OTHER, [(LOCATION, "/api/docs")]).into_response(),
        Entrance::Used => (StatusCode::UNAUTHORIZED, docs().await).into_response(),
        Entrance::Open(response) => response,
    }
}

pub async fn docs() -> Response {
    file("text/html; charset=utf-8", DOCS)
}

pub async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}
