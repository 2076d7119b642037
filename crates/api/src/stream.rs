//! Live frames of a session, as `GET /sessions/{key}/stream` and the socket send them.

use polyclaw_domain::frame::HubFrame;
use polyclaw_domain::session_key::SessionKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// Continue after this frame: its number, or the `id` of an event of this stream. The header `Last-Event-ID` does
    /// the same.
    pub after: Option<String>,
    /// A one-time code from `POST /logins`, for clients that cannot send headers.
    pub code: Option<String>,
}

/// What the reader of a stream gets.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum StreamEvent {
    Opened(StreamOpened),
    Notice(ReaderNotice),
    Frame(Box<HubFrame>),
}

/// The first event of a stream. It names the position from which the stream continues.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct StreamOpened {
    /// Always `event`.
    pub r#type: String,
    pub session_key: SessionKey,
    pub event: StreamOpenedName,
    /// The server process. Frame numbers of another process are unrelated.
    pub epoch: String,
    /// The number of the last frame.
    pub seq: u64,
}

/// The value of `event` in [`StreamOpened`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum StreamOpenedName {
    #[serde(rename = "stream.opened")]
    Opened,
}

/// A notice to a reader about missed frames.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ReaderNotice {
    pub r#type: String,
    /// The watched session. Absent if all sessions are watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    pub event: MissedFrames,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum MissedFrames {
    #[serde(rename = "replay.gap")]
    Gap,
    #[serde(rename = "reader.behind")]
    Behind,
}
