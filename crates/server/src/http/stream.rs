//! Live frames of a session as server-sent events: `GET /sessions/{key}/stream`.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::hub::{FrameReplay, HubFrame, HubSubscription};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::IntoParams;

use crate::control::until::{End, Until};
use crate::error::{Error, Result};
use crate::extract::{Key, Query};
use crate::sse;
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct From {
    /// A frame's number, or the `id` of an event of this stream; `Last-Event-ID` says the same.
    after: Option<String>,
    /// A one-time code of `POST /logins`, where no header can be sent.
    #[serde(rename = "code")]
    #[param(rename = "code")]
    _code: Option<String>,
}

/// A frame as readers see it.
#[derive(Serialize, JsonSchema)]
pub struct Shown<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    frame: &'a HubFrame,
}

impl<'a> Shown<'a> {
    pub fn of(frame: &'a HubFrame) -> Self {
        Self { kind: "event", frame }
    }
}

/// Where a reader wants to go on from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub after: Option<u64>,
    pub epoch: Option<String>,
}

impl Position {
    /// `17`, or `<epoch>-17` as event ids are written.
    fn parse(text: &str) -> Result<Self> {
        let (epoch, number) = match text.rsplit_once('-') {
            Some((epoch, number)) => (Some(epoch.to_owned()), number),
            None => (None, text),
        };
        let after = number.parse().map_err(|_| Error::invalid("after", "must be the number of a frame"))?;
        Ok(Self { after: Some(after), epoch })
    }
}

/// A watch, with what its reader missed. `None`: too old, or of another life of the server.
pub fn open(
    app: &AppState,
    key: &SessionKey,
    from: &Position,
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

/// Tells a reader what no frame can.
#[derive(Serialize, JsonSchema)]
pub struct Notice {
    #[serde(rename = "type")]
    kind: &'static str,
    /// Of the session that is watched; none where all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_key: Option<SessionKey>,
    event: Missed,
    message: &'static str,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
pub enum Missed {
    #[serde(rename = "replay.gap")]
    Gap,
    #[serde(rename = "reader.behind")]
    Behind,
}

impl Notice {
    pub fn of(session_key: Option<SessionKey>, event: Missed) -> Self {
        let message = match event {
            Missed::Gap => "some frames are no longer kept: read the transcript again",
            Missed::Behind => "this reader fell too far behind: subscribe again from the last number it saw",
        };
        Self { kind: "event", session_key, event, message }
    }
}

/// All that a reader of sessions is told, as the document has it.
pub fn schema() -> Value {
    let of = |one: schemars::Schema| {
        let mut one = one.to_value();
        one.as_object_mut().map(|one| one.remove("$schema"));
        one
    };
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut generator = settings.for_serialize().into_generator();
    json!({ "oneOf": [
        of(generator.root_schema_for::<Shown<'static>>()),
        of(generator.root_schema_for::<Notice>()),
    ] })
}

/// Tokens, tool events and state changes as they happen.
#[utoipa::path(get, path = "/sessions/{key}/stream", tag = "sessions", params(("key" = String, Path), From),
    responses((status = 200, description = "Each event's data is {type, seq, session_key, event, …}", body = String, content_type = "text/event-stream")))]
pub async fn frames(
    State(app): State<AppState>,
    Key(key): Key,
    Query(from): Query<From>,
    headers: HeaderMap,
    until: Until,
) -> Result<Response> {
    let last_id = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let from = from.after.or(last_id).map_or(Ok(Position::default()), |text| Position::parse(&text))?;
    let (missed, watch) = open(&app, &key, &from);
    let hello = json!({ "type": "event", "session_key": key, "event": "stream.opened",
        "epoch": app.epoch, "seq": app.engine.hub.last_seq() });
    let gap = missed.is_none().then(|| sse::data(&Notice::of(Some(key.clone()), Missed::Gap)));
    let first = std::iter::once(sse::data(&hello)).chain(gap).collect();
    let missed = missed.unwrap_or_default().into();
    let reader = Reader { app, key, first, missed, watch: Some(watch), over: Box::pin(until.over()) };
    Ok(sse::response(reader))
}

fn write(epoch: &str, frame: &HubFrame) -> Bytes {
    sse::event(&format!("id: {epoch}-{}\n", frame.seq), &Shown::of(frame))
}

struct Reader {
    app: AppState,
    key: SessionKey,
    first: VecDeque<Bytes>,
    /// Frames kept from before; written one by one, because a copy for each reader could be large.
    missed: VecDeque<Arc<HubFrame>>,
    /// Gone once the reader was told that it is behind.
    watch: Option<HubSubscription>,
    /// The server goes down, or the login ends.
    over: Pin<Box<dyn Future<Output = End> + Send>>,
}

impl sse::Source for Reader {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(bytes) = self.first.pop_front() {
            return Some(bytes);
        }
        if let Some(frame) = self.missed.pop_front() {
            return Some(write(&self.app.epoch, &frame));
        }
        let watch = self.watch.as_mut()?;
        tokio::select! {
            biased;
            frame = tokio::time::timeout(sse::QUIET, watch.recv()) => match frame {
                Err(_) => Some(sse::KEEP_ALIVE),
                Ok(Some(frame)) => Some(write(&self.app.epoch, &frame)),
                Ok(None) => {
                    self.watch = None;
                    tracing::info!(session.key = %self.key, "a reader of events fell too far behind");
                    Some(sse::data(&Notice::of(Some(self.key.clone()), Missed::Behind)))
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
    fn a_position_is_a_number_with_or_without_its_life() {
        assert_eq!(Position::parse("17").unwrap(), Position { after: Some(17), epoch: None });
        let of_a_life = Position { after: Some(17), epoch: Some("a-b".into()) };
        assert_eq!(Position::parse("a-b-17").unwrap(), of_a_life);
        assert!(
            Position::parse("x").is_err() && Position::parse("").is_err() && Position::parse("-").is_err()
        );
    }
}
