//! The chat page: three files in the binary. They contain no secrets; their API calls need the token or a browser
//! login.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::{IntoResponse, Response};

const INDEX_HTML: &str = include_str!("../assets/index.html");
const CHAT_SCRIPT: &str = include_str!("../assets/chat.js");
const CHAT_STYLE: &str = include_str!("../assets/chat.css");

/// The policy for pages: nothing from other origins, and no inline scripts or styles.
pub const PAGE_SECURITY_POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
form-action 'self'; frame-ancestors 'none'";

/// Serves the page. With `?code=…` the page exchanges the code for a login and removes it from the address bar.
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
