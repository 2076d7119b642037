//! The chat page: three files, built into the binary. It holds no secret; what it asks the API for needs the
//! token, or the cookie that a one-time link leaves.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::login::{Entrance, entrance};
use crate::state::AppState;

const INDEX: &str = include_str!("../assets/index.html");
const SCRIPT: &str = include_str!("../assets/chat.js");
const STYLE: &str = include_str!("../assets/chat.css");

/// For pages: nothing from elsewhere, no script or style that stands in the page itself.
pub const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
form-action 'self'; frame-ancestors 'none'";

/// `/?code=…` leaves a cookie and takes the code out of the address bar; `/` is the page.
pub async fn index(State(app): State<AppState>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let page = file("text/html; charset=utf-8", INDEX);
    match entrance(&app.door, (&method, &uri, &headers), "/", app.engine.now()) {
        Entrance::NoCode => page,
        Entrance::Opened(response) => response,
        // The page itself says that the link is used up, and asks for the token.
        Entrance::UsedUp => (StatusCode::UNAUTHORIZED, page).into_response(),
    }
}

pub async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}

pub async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

pub fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}
