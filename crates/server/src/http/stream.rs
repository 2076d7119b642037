//! Live frames of a session as server-sent events: `GET /sessions/{key}/stream`.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use polyclaw_api::stream::{MissedFrames, ReaderNotice, StreamOpened, StreamOpenedName, StreamQuery};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::hub::{FrameReplay, HubFrame, HubSubscription};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::ReplaceBoolSchemas;
use serde::Serialize;
use serde_json::{Value, json};

use crate::control::connection_lifetime::{ConnectionEnd, ConnectionLifetime};
use crate::error::{Error, Result};
use crate::extract::{QueryParams, SessionKeyPath};
use crate::sse;
use crate::state::AppState;

/// The type of all events, as opposed to responses on a socket.
const EVENT_TYPE: &str = "event";

/// A frame as sent to readers.
#[derive(Serialize, JsonSchema)]
pub struct FrameView<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    frame: &'a HubFrame,
}

impl<'a> FrameView<'a> {
    pub fn from_frame(frame: &'a HubFrame) -> Self {
        Self { kind: EVENT_TYPE, frame }
    }
}

/// The position a reader continues from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamCursor {
    pub after: Option<u64>,
    pub epoch: Option<String>,
}

impl StreamCursor {
    /// Parses `17`, or `<epoch>-17` as in event ids.
    fn parse(text: &str) -> Result<Self> {
        let (epoch, number) = match text.rsplit_once('-') {
            Some((epoch, number)) => (Some(epoch.to_owned()), number),
            None => (None, text),
        };
        let after = number.parse().map_err(|_| Error::invalid_field("after", "must be a frame number"))?;
        Ok(Self { after: Some(after), epoch })
    }
}

/// Subscribes to a session and returns the missed frames. `None` if they are too old or from another server process.
pub fn watch_from(
    app: &AppState,
    key: &SessionKey,
    from: &StreamCursor,
) -> (Option<Vec<Arc<HubFrame>>>, HubSubscription) {
    let foreign = from.epoch.as_ref().is_some_and(|epoch| *epoch != app.epoch);
    match from.after {
        None => (Some(Vec::new()), app.engine.hub.subscribe(key)),
        Some(_) if foreign => (None, app.engine.hub.subscribe(key)),
        Some(after) => match app.engine.hub.subscribe_after(key, after) {
            (FrameReplay::From(frames), watch) => (Some(frames), watch),
            (FrameReplay::TooOld, watch) => (None, watch),
        },
    }
}

/// Builds the notice about missed frames. `None` stands for all sessions.
pub fn reader_notice(session_key: Option<SessionKey>, event: MissedFrames) -> ReaderNotice {
    let message = match event {
        MissedFrames::Gap => "some frames are no longer available: read the transcript again",
        MissedFrames::Behind => {
            "this reader fell too far behind: subscribe again from the last number it saw"
        }
    };
    ReaderNotice { r#type: EVENT_TYPE.to_owned(), session_key, event, message: message.to_owned() }
}

/// Returns the schema of everything a session reader can get, for the API document.
pub fn frame_schema() -> Value {
    let of = |one: schemars::Schema| {
        let mut one = one.to_value();
        one.as_object_mut().map(|one| one.remove("$schema"));
        one
    };
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    // Not every client generator reads the schema `true`.
    let settings = settings.with_transform(ReplaceBoolSchemas::default());
    let mut generator = settings.for_serialize().into_generator();
    json!({ "oneOf": [
        of(generator.root_schema_for::<FrameView<'static>>()),
        of(generator.root_schema_for::<ReaderNotice>()),
    ] })
}

/// Streams tokens, tool events and state changes of a session as server-sent events.
#[utoipa::path(get, path = "/sessions/{key}/stream", tag = "sessions", params(("key" = String, Path), StreamQuery),
    responses((status = 200, description = "Each event's data is {type, seq, session_key, event, …}", body = String, content_type = "text/event-stream")))]
pub async fn stream_session(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
    QueryParams(from): QueryParams<StreamQuery>,
    headers: HeaderMap,
    until: ConnectionLifetime,
) -> Result<Response> {
    let last_id = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let from =
        from.after.or(last_id).map_or(Ok(StreamCursor::default()), |text| StreamCursor::parse(&text))?;
    let (missed, watch) = watch_from(&app, &key, &from);
    let hello = StreamOpened {
        r#type: EVENT_TYPE.to_owned(),
        session_key: key.clone(),
        event: StreamOpenedName::Opened,
        epoch: app.epoch.clone(),
        seq: app.engine.hub.last_seq(),
    };
    let gap =
        missed.is_none().then(|| sse::encode_data(&reader_notice(Some(key.clone()), MissedFrames::Gap)));
    let first = std::iter::once(sse::encode_data(&hello)).chain(gap).collect();
    let missed = missed.unwrap_or_default().into();
    let reader =
        FrameReader { app, key, first, missed, watch: Some(watch), over: Box::pin(until.wait_for_end()) };
    Ok(sse::stream_response(reader))
}

fn frame_event(epoch: &str, frame: &HubFrame) -> Bytes {
    sse::encode_event(&format!("id: {epoch}-{}\n", frame.seq), &FrameView::from_frame(frame))
}

struct FrameReader {
    app: AppState,
    key: SessionKey,
    first: VecDeque<Bytes>,
    /// Missed frames, encoded one by one because a copy for every reader could be large.
    missed: VecDeque<Arc<HubFrame>>,
    /// `None` once the reader was notified that it fell behind.
    watch: Option<HubSubscription>,
    /// Ends when the server shuts down or the login ends.
    over: Pin<Box<dyn Future<Output = ConnectionEnd> + Send>>,
}

impl sse::EventSource for FrameReader {
    async fn next_bytes(&mut self) -> Option<Bytes> {
        if let Some(bytes) = self.first.pop_front() {
            return Some(bytes);
        }
        if let Some(frame) = self.missed.pop_front() {
            return Some(frame_event(&self.app.epoch, &frame));
        }
        let watch = self.watch.as_mut()?;
        tokio::select! {
            biased;
            frame = tokio::time::timeout(sse::KEEP_ALIVE_INTERVAL, watch.recv()) => match frame {
                Err(_) => Some(sse::KEEP_ALIVE_COMMENT),
                Ok(Some(frame)) => Some(frame_event(&self.app.epoch, &frame)),
                Ok(None) => {
                    self.watch = None;
                    tracing::info!(session.key = %self.key, "event reader fell too far behind; closing its stream");
                    Some(sse::encode_data(&reader_notice(Some(self.key.clone()), MissedFrames::Behind)))
                }
            },
            _ = &mut self.over => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_cursor_parses_with_and_without_epoch() {
        assert_eq!(StreamCursor::parse("17").unwrap(), StreamCursor { after: Some(17), epoch: None });
        let of_a_life = StreamCursor { after: Some(17), epoch: Some("a-b".into()) };
        assert_eq!(StreamCursor::parse("a-b-17").unwrap(), of_a_life);
        assert!(
            StreamCursor::parse("x").is_err()
                && StreamCursor::parse("").is_err()
                && StreamCursor::parse("-").is_err()
        );
    }
}
