//! Server-sent events: one buffer per event, sent immediately.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::Serialize;

/// A comment is sent after this much silence, so that no proxy closes the connection.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
pub const KEEP_ALIVE_COMMENT: Bytes = Bytes::from_static(b": keep-alive\n\n");
pub const DONE_EVENT: Bytes = Bytes::from_static(b"data: [DONE]\n\n");

/// A source of events. `None` ends the stream.
pub trait EventSource: Send + 'static {
    fn next_bytes(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

pub fn stream_response(source: impl EventSource) -> Response {
    let events = stream::unfold(source, |mut source| async move {
        let bytes = source.next_bytes().await?;
        Some((bytes, source))
    });
    let body = Body::from_stream(events.map(Ok::<_, std::convert::Infallible>));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    // Buffering proxies would delay tokens.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Encodes `data: <json>` with the given lines in front.
pub fn encode_event(before: &str, data: &impl Serialize) -> Bytes {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(before.as_bytes());
    out.extend_from_slice(b"data: ");
    if serde_json::to_writer(&mut out, data).is_err() {
        // Our data always serializes, but a partial event would break the stream.
        return KEEP_ALIVE_COMMENT;
    }
    out.extend_from_slice(b"\n\n");
    out.into()
}

pub fn encode_data(data: &impl Serialize) -> Bytes {
    encode_event("", data)
}
