//! Browser pages of the control plane: the readable API document. The page contains no secrets; its API calls need a
//! browser login.

use axum::http::Uri;
use axum::response::{Redirect, Response};

use crate::app;
use crate::page::static_response;

const DOCS_PAGE: &str = include_str!("../../assets/docs.html");
const DOCS_SCRIPT: &str = include_str!("../../assets/docs.js");

/// Redirects to the command center, which uses relative URLs and has its own folder. A code in the address is passed
/// on, and the page exchanges it for a login.
pub async fn redirect_to_app(uri: Uri) -> Redirect {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Redirect::to(&format!("{}{query}", app::APP_PATH))
}

pub async fn serve_docs() -> Response {
    static_response("text/html; charset=utf-8", DOCS_PAGE)
}

pub async fn serve_docs_script() -> Response {
    static_response("text/javascript; charset=utf-8", DOCS_SCRIPT)
}
