//! The chat page: three files, built into the binary. It holds no secret; what it asks the API for needs the
//! token, which a link may bring along once.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderName, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::guard::{COOKIE, token_in};
use crate::state::AppState;

const INDEX: &str = include_str!("../assets/index.html");
const SCRIPT: &str = include_str!("../assets/chat.js");
const STYLE: &str = include_str!("../assets/chat.css");

const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
form-action 'self'; frame-ancestors 'none'";
const REFERRER: HeaderName = HeaderName::from_static("referrer-policy");

/// `/?token=…` leaves a cookie and takes the token out of the address bar; `/` is the page.
pub async fn index(State(app): State<AppState>, uri: Uri) -> Response {
    let Some(given) = token_in(&uri) else { return file("text/html; charset=utf-8", INDEX) };
    if !app.accepts_token(&given) {
        // The page itself says that the token is wrong, and asks for another.
        return (StatusCode::UNAUTHORIZED, file("text/html; charset=utf-8", INDEX)).into_response();
    }
    let mut response = (StatusCode::SEE_OTHER, [(LOCATION, "/"), (REFERRER, "no-referrer")]).into_response();
    let cookie = app.cookie().map(|value| format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict"));
    if let Some(cookie) = cookie.and_then(|cookie| cookie.parse().ok()) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

pub async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}

pub async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}
