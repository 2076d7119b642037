//! The command center: the files that `make web` builds in `web/dist`, compressed into the binary. They contain no
//! secrets; their API calls need the token or a browser login.

use std::io::Read;

use axum::extract::Path;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use flate2::read::GzDecoder;
use polyclaw_domain::redact::quote_safely;

use crate::error::{Error, Result};
use crate::page::PAGE_SECURITY_POLICY;

/// The path and gzipped content of each file. Written by the build script; empty if the page was not built.
type PageFiles = &'static [(&'static str, &'static [u8])];
const PAGE_FILES: PageFiles = include!(concat!(env!("OUT_DIR"), "/app.rs"));

const INDEX_FILE: &str = "index.html";
/// The path of the page.
pub const APP_PATH: &str = "/app/";
/// Names of these files change with their content.
const HASHED_ASSETS_PREFIX: &str = "assets/";
const NOT_BUILT_PAGE: &str = "<!doctype html><title>Polyclaw</title><h1>The command center is not in this binary</h1>\
<p>This binary was built without it. Run <code>make web</code> in the source folder, then build again. \
An instance has a small chat page at its own address; the API of the control plane is documented at \
<a href=\"/api/docs\">/api/docs</a>.</p>";

/// Redirects to the folder, because the page uses relative URLs.
pub async fn redirect_to_app() -> Redirect {
    Redirect::permanent(APP_PATH)
}

/// Serves the page on either server. With `?code=…` the page exchanges the code for a login.
pub async fn serve_index(headers: HeaderMap) -> Response {
    match find_file(INDEX_FILE) {
        Some(packed) => file_response(INDEX_FILE, packed, &headers),
        None => {
            (StatusCode::SERVICE_UNAVAILABLE, [(CONTENT_TYPE, "text/html")], NOT_BUILT_PAGE).into_response()
        }
    }
}

pub async fn serve_file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response> {
    let packed = find_file(&name).ok_or_else(|| Error::UnknownRoute(quote_safely(&name)))?;
    Ok(file_response(&name, packed, &headers))
}

fn find_file(name: &str) -> Option<&'static [u8]> {
    PAGE_FILES.iter().find(|(known, _)| *known == name).map(|(_, packed)| *packed)
}

fn file_response(name: &str, packed: &'static [u8], asked: &HeaderMap) -> Response {
    let mut response = match takes_gzip(asked) {
        true => ([(CONTENT_ENCODING, "gzip")], packed).into_response(),
        false => decompress(packed).into_response(),
    };
    let cache = if name.starts_with(HASHED_ASSETS_PREFIX) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let headers = response.headers_mut();
    for (header, value) in [
        (CONTENT_TYPE, content_type(name)),
        (CONTENT_SECURITY_POLICY, PAGE_SECURITY_POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, cache),
        (VARY, "accept-encoding"),
    ] {
        headers.insert(header, HeaderValue::from_static(value));
    }
    response
}

/// Whether the client accepts gzip. Browsers do, but command-line programs may not.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let all = asked.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|line| line.split(','))
        .any(|one| one.split(';').next().is_some_and(|name| name.trim() == "gzip"))
}

fn decompress(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    // Decompressing our own data into memory cannot fail.
    let _ = GzDecoder::new(packed).read_to_end(&mut plain);
    plain
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_support_is_read_from_accept_encoding() {
        for (asked, takes) in
            [("gzip, deflate, br", true), ("br;q=1, gzip;q=0.5", true), ("br", false), ("x-gzip", false)]
        {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, asked.parse().unwrap())]);
            assert_eq!(takes_gzip(&headers), takes, "{asked}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
