//! What a browser sees of the control plane: the API, readable. It holds no secret; what it asks for needs the login
//! that a one-time link gives.

use axum::http::Uri;
use axum::response::{Redirect, Response};

use crate::app;
use crate::page::file;

const DOCS: &str = include_str!("../../assets/docs.html");
const SCRIPT: &str = include_str!("../../assets/docs.js");

/// The command center asks for its files beside it, so it is shown in its own folder; a code in the address goes along,
/// and the page trades it for a login.
pub async fn index(uri: Uri) -> Redirect {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Redirect::to(&format!("{}{query}", app::FOLDER))
}

pub async fn docs() -> Response {
    file("text/html; charset=utf-8", DOCS)
}

pub async fn script() -> Response {
    file("text/javascript; charset=utf-8", SCRIPT)
}
