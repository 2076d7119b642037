//! The chat page: three files, built into the binary. It holds no secret; what it asks the API for needs the
//! token, or the cookie that a one-time link leaves.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use polyclaw_domain::time::Millis;

use crate::door::Door;
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
    match entrance(&app.door, &method, &uri, &headers, app.engine.now()) {
        Entrance::None => file("text/html; charset=utf-8", INDEX),
        // The page itself says that the link is used up, and asks for the token.
        Entrance::Used => (StatusCode::UNAUTHORIZED, file("text/html; charset=utf-8", INDEX)).into_response(),
        Entrance::Open(response) => response,
    }
}

/// What a one-time code in an address comes to.
pub enum Entrance {
    None,
    Used,
    /// The browser is let in and goes to `/`.
    Open(Response),
}

pub fn entrance(door: &Door, method: &Method, uri: &Uri, headers: &HeaderMap, now: Millis) -> Entrance {
    // A look at the head of a link, as previews do, must not use it up.
    let Some(code) = code_in(uri).filter(|_| *method == Method::GET) else { return Entrance::None };
    if !door.logins.take(&code, now) && !shows_cookie(door, headers) {
        return Entrance::Used;
    }
    let mut response = (StatusCode::SEE_OTHER, [(LOCATION, "/"), (REFERRER, "no-referrer")]).into_response();
    if let Some(cookie) = door.set_cookie().and_then(|cookie| cookie.parse().ok()) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Entrance::Open(response)
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
        (REFERRER, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}
