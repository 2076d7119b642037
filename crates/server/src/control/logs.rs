//! Logs of instances: the last lines, pages, and the whole log as a download.

use std::io::SeekFrom;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use polyclaw_api::control::logs::{LogLines, LogReadMode, LogRetention, ReadLogQuery};
use polyclaw_control::log;
use polyclaw_domain::redact::RedactionStream;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{PathId, QueryParams};

const DEFAULT_LINES: usize = 50;
const DOWNLOAD_CHUNK_BYTES: usize = 64 * 1024;

const LOG_RETENTION: LogRetention =
    LogRetention { file_bytes: log::MAX_LOG_BYTES, files_kept: log::RETAINED_LOGS };

pub fn blocking_task_failed(error: impl ToString) -> Error {
    Error::Control(polyclaw_control::Error::Files { what: "the log".to_owned(), why: error.to_string() })
}

/// Runs blocking file access on a thread for it.
async fn run_blocking<T: Send + 'static>(
    read: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(read).await.map_err(blocking_task_failed)?.map_err(blocking_task_failed)
}

/// Returns lines of an instance's log.
#[utoipa::path(get, path = "/instances/{id}/logs", tag = "observe", params(("id" = String, Path), ReadLogQuery), responses((status = 200, body = LogLines)))]
pub async fn read_log_lines(
    State(app): State<ControlState>,
    PathId(id): PathId,
    QueryParams(which): QueryParams<ReadLogQuery>,
) -> Result<Json<LogLines>> {
    let path = app.control.log_path(&id).await?;
    let count = which.lines.unwrap_or(DEFAULT_LINES).min(log::MAX_LOG_LINES);
    if count == 0 {
        return Err(Error::invalid_field("lines", "must be at least 1"));
    }
    if matches!(which.mode, LogReadMode::Tail) {
        let lines = redact_lines(&app, run_blocking(move || log::tail(&path, count)).await?);
        return Ok(Json(LogLines {
            lines,
            next_cursor: None,
            has_more: false,
            gap: false,
            retention: LOG_RETENTION,
        }));
    }
    let page = run_blocking(move || log::read_page(&path, which.cursor.as_deref(), count)).await?;
    let page =
        page.ok_or_else(|| Error::invalid_field("cursor", "must be the next_cursor of a page of this log"))?;
    let next_cursor = Some(page.next).filter(|next| !next.is_empty());
    Ok(Json(LogLines {
        lines: redact_lines(&app, page.lines),
        next_cursor,
        has_more: page.has_more,
        gap: page.gap,
        retention: LOG_RETENTION,
    }))
}

/// Redacts lines. Our own log is already redacted, but other programs may write to the file.
pub fn redact_lines(app: &ControlState, mut lines: Vec<String>) -> Vec<String> {
    let redactor = app.control.redactor();
    lines.iter_mut().for_each(|line| redactor.redact_in_place(line));
    lines
}

/// Downloads the whole log, oldest lines first.
#[utoipa::path(get, path = "/instances/{id}/logs/download", tag = "observe", params(("id" = String, Path)), responses((status = 200, description = "The log as a file", body = String, content_type = "text/plain")))]
pub async fn download_log(State(app): State<ControlState>, PathId(id): PathId) -> Result<Response> {
    let path = app.control.log_path(&id).await?;
    let mut files = Vec::new();
    // All files are opened before the first byte is sent, so that a rotation meanwhile does not matter.
    for path in log::list_log_files(&path) {
        let file = File::open(&path).await.map_err(blocking_task_failed)?;
        let size = file.metadata().await.map_err(blocking_task_failed)?.len();
        files.push((file, size));
    }
    files.reverse();
    let cleaner = RedactionStream::new(app.control.redactor());
    let chunks = stream::unfold((files, 0, cleaner), |(mut files, mut at, mut cleaner)| async move {
        loop {
            let (file, size) = files.last_mut()?;
            match read_chunk(file, at, *size).await {
                Ok(bytes) if bytes.is_empty() => {
                    files.pop();
                    at = 0;
                    let rest = Bytes::from(cleaner.finish());
                    if !rest.is_empty() {
                        return Some((Ok(rest), (files, at, cleaner)));
                    }
                }
                Ok(bytes) => {
                    let text = whole_chars(&bytes);
                    at += text.len() as u64;
                    return Some((
                        Ok(cleaner.push(&String::from_utf8_lossy(text)).into()),
                        (files, at, cleaner),
                    ));
                }
                Err(error) => return Some((Err(error), (Vec::new(), 0, cleaner))),
            }
        }
    });
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (CONTENT_DISPOSITION, "attachment; filename=\"daemon.log\"".to_owned()),
    ];
    Ok((headers, Body::from_stream(chunks)).into_response())
}

/// Cuts off an incomplete character at the end, which the next chunk continues.
fn whole_chars(bytes: &[u8]) -> &[u8] {
    let open = (1..=3.min(bytes.len())).find(|back| {
        let byte = bytes[bytes.len() - back];
        let width = match byte {
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            _ => 0,
        };
        width > *back
    });
    match open {
        Some(back) if back < bytes.len() => &bytes[..bytes.len() - back],
        _ => bytes,
    }
}

async fn read_chunk(file: &mut File, at: u64, size: u64) -> std::io::Result<Bytes> {
    let wanted = size.saturating_sub(at).min(DOWNLOAD_CHUNK_BYTES as u64);
    let mut bytes = Vec::with_capacity(usize::try_from(wanted).unwrap_or(DOWNLOAD_CHUNK_BYTES));
    file.seek(SeekFrom::Start(at)).await?;
    file.take(wanted).read_to_end(&mut bytes).await?;
    Ok(bytes.into())
}
