//! `polyclaw instances logs`: reads the log of one instance through the control plane.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use polyclaw_api::control::logs::LogLines;
use serde_json::json;

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::CommandFailure;
use crate::home::access_failure;
use crate::log_level::is_at_least;
use crate::output::visible_line;
use crate::progress::ProgressDisplay;

/// Interval between two polls for new log lines.
const LOG_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of lines in one response.
const MAX_LOG_LINES: usize = 10_000;

pub struct LogQuery<'a> {
    pub lines: usize,
    pub follow: bool,
    pub level: Option<&'a str>,
}

impl LogQuery<'_> {
    /// Keeps the lines of the requested level and above.
    fn filter_lines(&self, mut lines: Vec<String>) -> Vec<String> {
        lines.retain(|line| self.level.is_none_or(|level| is_at_least(line, level)));
        lines
    }

    /// Returns how many lines to request. With a level filter, matching lines may be anywhere, so the maximum is
    /// scanned.
    fn scanned_lines(&self) -> usize {
        if self.level.is_some() && self.lines > 0 { MAX_LOG_LINES } else { self.lines }
    }
}

fn newest_lines(mut lines: Vec<String>, count: usize) -> Vec<String> {
    lines.split_off(lines.len().saturating_sub(count))
}

fn join_lines(lines: &[String]) -> String {
    lines.iter().map(|line| visible_line(line)).collect::<Vec<_>>().join("\n")
}

pub async fn show_logs(
    client: &ApiClient,
    context: &CommandContext,
    path: &str,
    query: &LogQuery<'_>,
) -> anyhow::Result<()> {
    if query.follow && context.output.json {
        return Err(CommandFailure::usage("--json cannot be combined with --follow").into());
    }
    if query.follow {
        return follow_logs(client, context, path, query).await;
    }
    let mut answer: LogLines = client.get_as(&format!("{path}?lines={}", query.scanned_lines())).await?;
    answer.lines = newest_lines(query.filter_lines(answer.lines), query.lines);
    if query.level.is_some() && answer.lines.len() < query.lines {
        (answer.lines, _) = read_tail(client, path, query).await?;
    }
    Ok(context.output.print_value(&answer, |_| join_lines(&answer.lines))?)
}

async fn follow_logs(
    client: &ApiClient,
    context: &CommandContext,
    path: &str,
    query: &LogQuery<'_>,
) -> anyhow::Result<()> {
    let (last, mut cursor) = read_tail(client, path, query).await?;
    context.output.print_line(&join_lines(&last))?;
    loop {
        tokio::time::sleep(LOG_POLL_INTERVAL).await;
        let page: LogLines =
            client.get_as(&format!("{path}?mode=page&lines=1000&cursor={}", encode_segment(&cursor))).await?;
        context.output.print_line(&join_lines(&query.filter_lines(page.lines)))?;
        cursor = page.next_cursor.unwrap_or(cursor);
    }
}

/// Returns the last matching lines and the cursor behind them. Both come from the same pages, so no line is lost
/// between them.
async fn read_tail(
    client: &ApiClient,
    path: &str,
    query: &LogQuery<'_>,
) -> Result<(Vec<String>, String), CommandFailure> {
    let (mut last, mut cursor) = (Vec::new(), String::new());
    loop {
        let page: LogLines = client
            .get_as(&format!("{path}?mode=page&lines={MAX_LOG_LINES}&cursor={}", encode_segment(&cursor)))
            .await?;
        last.extend(query.filter_lines(page.lines));
        last = newest_lines(last, query.lines);
        cursor = page.next_cursor.unwrap_or_default();
        if !page.has_more {
            return Ok((last, cursor));
        }
    }
}

/// Saves the whole stored log to a file.
pub async fn save_logs(
    client: &ApiClient,
    context: &CommandContext,
    path: &str,
    file: &Path,
) -> anyhow::Result<()> {
    let mut response = client.download(path).await?;
    let total = response.content_length().unwrap_or(0);
    let mut out = std::fs::File::create(file).map_err(|error| access_failure(file, &error))?;
    let (progress, mut done) = (ProgressDisplay::new(context.output.json), 0_u64);
    while let Some(chunk) = response.chunk().await? {
        out.write_all(&chunk).map_err(|error| access_failure(file, &error))?;
        done += chunk.len() as u64;
        progress.show_bytes("log", done, total.max(done));
    }
    progress.finish_line();
    let body = json!({ "file": file, "bytes": done });
    Ok(context.output.print_value(&body, |_| format!("Saved {done} bytes to {}.", file.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_query_filters_by_level_and_limits_lines() {
        let query = LogQuery { lines: 9, follow: false, level: Some("warn") };
        let lines =
            ["2026-11-17T03:00:00Z  INFO ready", "2026-11-17T03:00:01Z  WARN careful"].map(str::to_owned);
        assert_eq!(query.filter_lines(lines.to_vec()), ["2026-11-17T03:00:01Z  WARN careful"]);
        assert_eq!(newest_lines(["1", "2", "3"].map(str::to_owned).to_vec(), 2), ["2", "3"]);
        assert_eq!(
            (query.scanned_lines(), LogQuery { level: None, ..query }.scanned_lines()),
            (MAX_LOG_LINES, 9)
        );
    }
}
