//! The chat page: three files, built into the binary. It holds no secret; what it asks the API for needs the
//! token, or the cookie that a one-time link leaves.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::guard::{code_in, shows_cookie};
use crate::state::AppState;

const INDEX: &str = include_str!("../assets/index.html");
const SCRIPT: &str = include_str!("../assets/chat.js");
const STYLE: &str = include_str!("../assets/chat.css");

const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
form-action 'self'; frame-ancestors 'none'";
const REFERRER: HeaderName = HeaderName::from_static("referrer-policy");

/// `/?code=…` leaves a cookie and takes the code out of the address bar; `/` is the page.
pub async fn index(State(app): State<AppState>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    // A look at the head of a link, as previews do, must not use it up.
    let code = code_in(&uri).filter(|_| method == Method::GET);
    let Some(code) = code else { return file("text/html; charset=utf-8", INDEX) };
    if !app.logins.take(&code, app.engine.now()) && !shows_cookie(&app, &headers) {
        // The page itself says that the link is used up, and asks for the token.
        return (StatusCode::UNAUTHORIZED, file("text/html; charset=utf-8", INDEX)).into_response();
    }
    let mut response = (StatusCode::SEE_OTHER, [(LOCATION, "/"), (REFERRER, "no-referrer")]).into_response();
    let name = &app.cookie_name;
    let cookie = app.cookie().map(|value| format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict"));
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
