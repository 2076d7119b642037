//! What a browser sees of the control plane: the API, readable. It holds no secret; what it asks for needs the login
//! that a one-time link gives.

use axum::http::Uri;
use axum::response::{Redirect, Response};

use crate::app;
use crate::page::static_response;

const DOCS_PAGE: &str = include_str!("../../assets/docs.html");
const DOCS_SCRIPT: &str = include_str!("../../assets/docs.js");

/// The command center asks for its files beside it, so it is shown in its own folder; a code in the address goes along,
/// and the page trades it for a login.
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
