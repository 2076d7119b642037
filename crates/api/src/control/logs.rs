//! Logs of instances: the last lines, pages, and the whole log as a download.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogReadMode {
    /// The last lines of the log.
    #[default]
    Tail,
    /// All lines, page by page, oldest first.
    Page,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReadLogQuery {
    /// `tail` returns the last lines. `page` returns all lines page by page, oldest first.
    #[serde(default)]
    #[param(inline, required = false)]
    pub mode: LogReadMode,
    /// The number of lines. Default 50, at most 10,000.
    #[param(minimum = 1)]
    pub lines: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct LogLines {
    /// The lines, oldest first.
    pub lines: Vec<String>,
    /// The cursor of the next page, even if that is still empty. Null for `tail`.
    pub next_cursor: Option<String>,
    /// Whether more lines are available now.
    pub has_more: bool,
    /// Whether the file of the cursor was deleted, so that the page starts with the oldest line.
    pub gap: bool,
    /// How much of the log is kept.
    pub retention: LogRetention,
}

/// The log rotation: a full file is set aside, and the oldest one is deleted.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct LogRetention {
    /// The size at which a file is rotated, in bytes.
    pub file_bytes: u64,
    /// The number of rotated files that are kept.
    pub files_kept: usize,
}
