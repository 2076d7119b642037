//! Live frames of a session as server-sent events: `GET /sessions/{key}/stream`.

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
