//! The chat page: three files, built into the binary. It holds no secret; what it asks the API for needs the
//! token, or the login that a one-time link gives.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::{IntoResponse, Response};

const INDEX_HTML: &str = include_str!("../assets/index.html");
const CHAT_SCRIPT: &str = include_str!("../assets/chat.js");
const CHAT_STYLE: &str = include_str!("../assets/chat.css");

/// For pages: nothing from elsewhere, no script or style that stands in the page itself.
pub const PAGE_SECURITY_POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
form-action 'self'; frame-ancestors 'none'";

/// With `?code=…` too: the page itself trades the code for a login, and takes it out of the address bar.
pub async fn serve_index() -> Response {
    static_response("text/html; charset=utf-8", INDEX_HTML)
}

pub async fn serve_script() -> Response {
    static_response("text/javascript; charset=utf-8", CHAT_SCRIPT)
}

pub async fn serve_style() -> Response {
    static_response("text/css; charset=utf-8", CHAT_STYLE)
}

pub fn static_response(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, PAGE_SECURITY_POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}
