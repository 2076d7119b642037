//! Formats a response as text: status, a few headers and a bounded body.

use polyclaw_domain::tool::ToolOutcome;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Response, Url};

use super::client::innermost_cause;
use crate::error::{Error, Result};
use crate::text;

const MAX_HEADER_VALUE_LEN: usize = 500;
/// Headers that may be needed for a next request. Cookies and others are not shown to the model.
const SHOWN_HEADERS: [&str; 9] = [
    "content-type",
    "content-length",
    "last-modified",
    "etag",
    "location",
    "link",
    "retry-after",
    "allow",
    "www-authenticate",
];

struct FetchedBody {
    bytes: Vec<u8>,
    is_cut: bool,
}

pub async fn read_page(response: Response, url: &Url, limit: usize) -> Result<ToolOutcome> {
    let status = response.status();
    let mut page =
        format!("HTTP {status}\nurl: {}\n", text::truncate_text(url.as_str(), 2 * MAX_HEADER_VALUE_LEN));
    page.push_str(&shown_headers(response.headers()));
    let kind = content_type(response.headers());
    let announced = response.content_length();
    if !is_text(&kind) && announced != Some(0) {
        return Err(not_text_error(&kind, announced));
    }
    let body = read_body(response, limit).await?;
    if body.bytes.contains(&0) {
        return Err(not_text_error(&kind, announced));
    }
    page.push('\n');
    page.push_str(&body_text(&body, limit));
    Ok(if status.is_success() { ToolOutcome::ok(page) } else { ToolOutcome::error(page) })
}

async fn read_body(mut response: Response, limit: usize) -> Result<FetchedBody> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Error::Fetch(innermost_cause(&error)))? {
        let room = limit - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(&chunk[..room]);
            return Ok(FetchedBody { bytes, is_cut: true });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(FetchedBody { bytes, is_cut: false })
}

fn body_text(body: &FetchedBody, limit: usize) -> String {
    let lossy = String::from_utf8_lossy(&body.bytes);
    let broken = std::str::from_utf8(&body.bytes).err();
    // A character split by the limit is not an error of the page.
    let is_lossy = broken.is_some_and(|error| !(body.is_cut && error.error_len().is_none()));
    let mut text = lossy[..lossy.floor_char_boundary(limit)].to_owned();
    if body.is_cut || text.len() < lossy.len() {
        text.push_str(&format!("\n[truncated: only the first {limit} bytes are shown]"));
    }
    if is_lossy {
        text.push_str("\n[not valid UTF-8: invalid bytes are shown as \u{fffd}]");
    }
    text
}

fn shown_headers(headers: &HeaderMap) -> String {
    let mut out = String::new();
    for name in SHOWN_HEADERS {
        if let Some(value) = headers.get(name) {
            let value = text::one_line(&String::from_utf8_lossy(value.as_bytes()));
            out.push_str(&format!("{name}: {}\n", text::truncate_text(&value, MAX_HEADER_VALUE_LEN)));
        }
    }
    out
}

fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let essence = value.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    text::truncate_text(&essence, 100)
}

/// Whether the content type is text. A page without a type is read, and rejected if it contains zero bytes.
fn is_text(kind: &str) -> bool {
    let (node_name, name) = kind.split_once('/').unwrap_or((kind, ""));
    match node_name {
        "" | "text" | "message" => true,
        "application" | "image" | "model" if name.ends_with("+xml") || name.ends_with("+json") => true,
        "application" => {
            let words = ["json", "xml", "yaml", "toml", "javascript", "ecmascript", "graphql", "sql"];
            let is_named = words.iter().any(|word| name == *word || name.strip_prefix("x-") == Some(word));
            is_named || matches!(name, "x-ndjson" | "jsonl" | "x-sh" | "x-www-form-urlencoded" | "rtf")
        }
        _ => false,
    }
}

fn not_text_error(kind: &str, size: Option<u64>) -> Error {
    let kind = if kind.is_empty() { "no content type" } else { kind };
    let size = size.map_or("unknown size".to_owned(), |size| format!("{size} bytes"));
    Error::Fetch(format!("the content is not text ({kind}, {size})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_type_decides_text_or_binary() {
        for kind in [
            "",
            "text/html",
            "application/json",
            "application/ld+json",
            "image/svg+xml",
            "application/x-yaml",
        ] {
            assert!(is_text(kind), "{kind}");
        }
        for kind in
            ["image/png", "application/octet-stream", "application/pdf", "video/mp4", "application/zip"]
        {
            assert!(!is_text(kind), "{kind}");
        }
    }

    #[test]
    fn cut_and_invalid_utf8_bodies_are_marked() {
        let body = |bytes: &[u8], is_cut| FetchedBody { bytes: bytes.to_vec(), is_cut };
        assert_eq!(body_text(&body(b"abc", false), 10), "abc");
        assert_eq!(body_text(&body(b"abc", true), 3), "abc\n[truncated: only the first 3 bytes are shown]");
        assert!(!body_text(&body(b"ab\xc3", true), 3).contains("UTF-8"));
        assert!(body_text(&body(b"\xffabc", false), 10).contains("not valid UTF-8"));
        assert!(body_text(&body(&[0xff; 100], false), 100).len() < 250);
    }
}
