//! Validates URLs and headers before anything is sent.

use std::collections::BTreeMap;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::error::{Error, Result};

const MAX_URL_LEN: usize = 8 * 1024;
const MAX_HEADERS: usize = 30;
const MAX_HEADERS_LEN: usize = 8 * 1024;
/// Headers that control the connection or name another site than the checked one.
const RESERVED_HEADERS: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "keep-alive",
];

pub fn parse(text: &str) -> Result<Url> {
    if text.len() > MAX_URL_LEN {
        return Err(Error::Arguments("the url is too long".to_owned()));
    }
    let url = Url::parse(text.trim()).map_err(|error| Error::Arguments(format!("invalid url: {error}")))?;
    check_url(&url)?;
    Ok(url)
}

pub fn check_url(url: &Url) -> Result<()> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::Arguments(format!(
            "only http and https URLs are supported, not {}",
            url.scheme()
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::Arguments(
            "the url contains a user name or password, which is not allowed".to_owned(),
        ));
    }
    if url.as_str().len() > MAX_URL_LEN || url.host_str().is_none_or(str::is_empty) {
        return Err(Error::Arguments("the url is too long or has no host".to_owned()));
    }
    Ok(())
}

pub fn parse_headers(given: &BTreeMap<String, String>) -> Result<HeaderMap> {
    let size: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    if given.len() > MAX_HEADERS || size > MAX_HEADERS_LEN {
        return Err(Error::Arguments("too many headers, or headers too long".to_owned()));
    }
    given.iter().map(|(name, value)| parse_header(name, value)).collect()
}

fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    // The value is not in the message, because it may be a secret.
    let refused = |why: &str| Error::Arguments(format!("the header {name:?} {why}"));
    let key = HeaderName::try_from(name).map_err(|_| refused("has an invalid name"))?;
    if RESERVED_HEADERS.contains(&key.as_str()) || key.as_str().starts_with("proxy-") {
        return Err(refused("cannot be set"));
    }
    let value = HeaderValue::try_from(value).map_err(|_| refused("has an invalid value"))?;
    Ok((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_without_credentials_are_accepted() {
        for good in ["http://example.com", "https://example.com:8443/a?b#c", " https://example.com/ "] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "example.com",
            "/etc/passwd",
            "file:///etc/passwd",
            "ftp://example.com/",
            "gopher://example.com/",
            "data:text/plain,hi",
            "javascript:alert(1)",
            "http://",
            "http://user@example.com/",
            "http://user:secret@example.com/",
            "http://:secret@example.com/",
            &format!("http://example.com/{}", "a".repeat(MAX_URL_LEN)),
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn connection_headers_and_invalid_values_are_refused() {
        let one =
            |name: &str, value: &str| parse_headers(&BTreeMap::from([(name.to_owned(), value.to_owned())]));
        assert!(one("Accept", "text/html").is_ok());
        for (name, value) in [
            ("Host", "example.com"),
            ("CONNECTION", "close"),
            ("Proxy-Authorization", "x"),
            ("Transfer-Encoding", "chunked"),
            ("a b", "x"),
            ("", "x"),
            ("X-A", "a\r\nX-B: b"),
            ("X-A", &"a".repeat(MAX_HEADERS_LEN)),
        ] {
            assert!(one(name, value).is_err(), "{name}");
        }
        let error = one("X-Key", "sec\nret").unwrap_err().to_string();
        assert!(!error.contains("sec"), "{error}");
    }
}
