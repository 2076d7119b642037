//! What a browser sees of the control plane: the API, readable. It holds no secret; what it asks for needs the cookie
//! that a one-time link leaves.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::state::ControlState;
use crate::app;
use crate::login::{Entrance, entrance};
use crate::page::file;

const DOCS: &str = include_str!("../../assets/docs.html");
const SCRIPT: &str = include_str!("../../assets/docs.js");

/// The page asks for its files beside it, so it is shown in its own folder, where it finds by the address that the
/// link was used. The code itself is worth nothing any more and goes no further.
const USED_UP: &str = "/app/?code=used";

/// `/?code=…` leaves a cookie; both lead to the command center.
pub async fn index(
    State(state): State<ControlState>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let lead_to = |place: &'static str| (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response();
    match entrance(&state.door, (&method, &uri, &headers), app::FOLDER, state.control.now()) {
        Entrance::NoCode => lead_to(app::FOLDER),
        Entrance::Opened(response) => response,
        Entrance::UsedUp => lead_to(USED_UP),
    }
}

/// The command center.
pub async fn center(
    State(state): State<ControlState>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    app::open(&state.door, (&method, &uri, &headers), state.control.now())
}

pub async fn docs() -> Response {
    file("text/html; charset=utf-8", DOCS)
}

pub async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}
