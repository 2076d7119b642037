//! Request extractors that report invalid input in our error format.

use std::time::Duration;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use polyclaw_domain::patch;
use polyclaw_domain::session_key::SessionKey;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

use crate::error::{Error, Result};
use crate::serde_errors;

/// The body limit.
pub const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;
/// The body limit of a message, which may contain images.
pub const MAX_MESSAGE_BYTES: usize = 32 * 1024 * 1024;
/// A body must arrive within this time.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A JSON body. An absent body counts as `{}`, so that missing fields are reported by name. A patch without a body is
/// rejected: it would change nothing, which the sender cannot have meant.
pub struct JsonBody<T, const MOST: usize = MAX_BODY_BYTES>(pub T);

impl<S: Send + Sync, T: DeserializeOwned, const MOST: usize> FromRequest<S> for JsonBody<T, MOST> {
    type Rejection = Error;

    async fn from_request(request: Request, _: &S) -> Result<Self> {
        let (is_json, is_patch) = (is_json(&request), request.method() == Method::PATCH);
        let bytes = read_body_up_to(request, MOST).await?;
        if bytes.is_empty() && is_patch {
            return Err(Error::InvalidBody("there is no body; send an object with the changes".to_owned()));
        }
        if bytes.is_empty() {
            return parse_json(b"{}").map(Self);
        }
        if !is_json {
            return Err(Error::WrongContentType);
        }
        let parsed = parse_json(&bytes)?;
        // Serde would accept a list as the fields of an object in order, which is never intended.
        match bytes.trim_ascii_start().first() {
            Some(b'[') => Err(Error::InvalidBody("an object is expected, not a list".to_owned())),
            _ => Ok(Self(parsed)),
        }
    }
}

fn is_json(request: &Request) -> bool {
    let Some(value) = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

pub fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::InvalidUtf8)?;
    serde_json::from_str(text).or_else(|error| match error.classify() {
        Category::Data => {
            let value = serde_json::from_str(text).ok();
            value.and_then(parse_with_integers).ok_or_else(|| invalid_body(&error.to_string()))
        }
        _ => Err(Error::MalformedJson(error.to_string())),
    })
}

/// Like `parse_json`, for a parsed value.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T> {
    T::deserialize(&value)
        .or_else(|error| parse_with_integers(value).ok_or_else(|| invalid_body(&error.to_string())))
}

/// Applies a merge patch. Numbers are converted as in a whole body.
pub fn apply_merge_patch<T: Serialize + DeserializeOwned>(
    thing: &T,
    name: &str,
    mut patch: Value,
) -> Result<T> {
    patch::apply_patch(thing, name, patch.clone()).or_else(|text| {
        let again = convert_to_integers(&mut patch).then(|| patch::apply_patch(thing, name, patch).ok());
        again.flatten().ok_or_else(|| invalid_body(&text))
    })
}

fn invalid_body(text: &str) -> Error {
    Error::InvalidBody(serde_errors::plain_message(text))
}

/// JSON Schema allows writing an integer as `6.0`.
fn parse_with_integers<T: DeserializeOwned>(mut value: Value) -> Option<T> {
    convert_to_integers(&mut value).then(|| serde_json::from_value(value).ok())?
}

/// Converts such numbers. Returns whether there were any.
fn convert_to_integers(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|_| number.is_f64()).and_then(whole_number);
            whole.map(|whole| *value = whole.into()).is_some()
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, item| convert_to_integers(item) | any),
        Value::Object(fields) => {
            fields.values_mut().fold(false, |any, field| convert_to_integers(field) | any)
        }
        _ => false,
    }
}

fn whole_number(real: f64) -> Option<i64> {
    /// Above this value not every integer has an exact float.
    const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and in the range")]
    (real.fract() == 0.0 && real.abs() <= MAX_EXACT_FLOAT).then_some(real as i64)
}

/// Reads the raw body within the default size and time limits.
pub async fn read_body(request: Request) -> Result<Bytes> {
    read_body_up_to(request, MAX_BODY_BYTES).await
}

/// Like `read_body`, with another size limit.
pub async fn read_body_up_to(request: Request, most: usize) -> Result<Bytes> {
    match tokio::time::timeout(BODY_TIMEOUT, collect_body(request.into_body(), most)).await {
        Ok(body) => body,
        Err(_) => Err(Error::BodyTimeout),
    }
}

async fn collect_body(mut body: axum::body::Body, most: usize) -> Result<Bytes> {
    if body.size_hint().upper().is_some_and(|size| size <= most as u64) {
        let collected = body.collect().await.map_err(|_| Error::BodyBroken)?;
        return Ok(collected.to_bytes());
    }
    let (mut kept, mut seen) = (Vec::new(), 0);
    // Excess data is read for a while and dropped: a sender cut off while sending never sees the error.
    while seen <= 8 * most
        && let Some(frame) = body.frame().await
    {
        let Ok(data) = frame.map_err(|_| Error::BodyBroken)?.into_data() else { continue };
        seen += data.len();
        if seen <= most {
            kept.extend_from_slice(&data);
        }
    }
    if seen > most { Err(Error::BodyTooLarge(most)) } else { Ok(kept.into()) }
}

/// The query parameters.
pub struct QueryParams<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        query.map(|query| Self(query.0)).map_err(|rejection| invalid_query(&rejection))
    }
}

fn invalid_query(rejection: &QueryRejection) -> Error {
    let text = rejection.body_text();
    let (name, words) =
        serde_errors::split_field(text.rsplit_once("query string: ").map_or(&*text, |(_, text)| text));
    Error::invalid_field("query", name.map_or(words.clone(), |name| format!("{name}: {words}")))
}

/// The session key in the path.
pub struct SessionKeyPath(pub SessionKey);

impl<S: Send + Sync> FromRequestParts<S> for SessionKeyPath {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let PathId(text) = PathId::from_request_parts(parts, state).await?;
        SessionKey::parse(&text).map(Self).map_err(|error| Error::invalid_field("session_key", error))
    }
}

/// The single id in the path.
pub struct PathId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let found = Path::<String>::from_request_parts(parts, state).await;
        found.map(|path| Self(path.0)).map_err(|rejection| invalid_path(&rejection))
    }
}

/// The ids of a path with several.
pub struct PathIds<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for PathIds<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let found = Path::<T>::from_request_parts(parts, state).await;
        found.map(|path| Self(path.0)).map_err(|rejection| invalid_path(&rejection))
    }
}

fn invalid_path(rejection: &PathRejection) -> Error {
    Error::invalid_field("path", rejection.body_text())
}

/// Checks that a key built from caller input is short enough.
pub fn bounded_key(key: SessionKey, name: &'static str) -> Result<SessionKey> {
    SessionKey::parse(key.as_str()).map_err(|_| Error::invalid_field(name, "too long for a session key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integral_floats_are_accepted_as_integers() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Wish {
            tries: u32,
            share: f64,
        }
        let read = |text: &str| parse_json::<Wish>(text.as_bytes()).map_err(|error| error.code().to_owned());
        assert_eq!(read(r#"{"tries":6.0,"share":2.0}"#), Ok(Wish { tries: 6, share: 2.0 }));
        assert_eq!(read(r#"{"tries":6e0,"share":0.5}"#), Ok(Wish { tries: 6, share: 0.5 }));
        for wrong in ["6.5", "-1.0", "1e300", "\"6\""] {
            let refused = read(&format!(r#"{{"tries":{wrong},"share":1}}"#));
            assert_eq!(refused, Err("invalid_body".to_owned()), "{wrong}");
        }
        let body = serde_json::json!({ "tries": 6.0, "share": 2 });
        assert_eq!(from_value::<Wish>(body).unwrap(), Wish { tries: 6, share: 2.0 });
    }
}
