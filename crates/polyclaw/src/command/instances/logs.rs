//! `polyclaw instances logs`: the log of one instance, through the control plane.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::home::refused;
use crate::level::is_at_least;
use crate::output::safe;
use crate::progress::Progress;

/// How often new log lines are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Most lines of one answer.
const MOST: usize = 10_000;

pub struct Wish<'a> {
    pub lines: usize,
    pub follow: bool,
    pub level: Option<&'a str>,
}

impl Wish<'_> {
    /// Lines of the level and above.
    fn wanted(&self, mut lines: Value) -> Vec<Value> {
        let mut lines = lines.as_array_mut().map(std::mem::take).unwrap_or_default();
        let is_wanted = |line: &str| self.level.is_none_or(|level| is_at_least(line, level));
        lines.retain(|line| line.as_str().is_some_and(is_wanted));
        lines
    }

    /// Those of a level may be anywhere in what is looked at.
    fn looked_at(&self) -> usize {
        if self.level.is_some() && self.lines > 0 { MOST } else { self.lines }
    }
}

fn newest(mut lines: Vec<Value>, count: usize) -> Vec<Value> {
    lines.split_off(lines.len().saturating_sub(count))
}

fn text(lines: &[Value]) -> String {
    lines.iter().filter_map(Value::as_str).map(safe).collect::<Vec<_>>().join("\n")
}

pub async fn show(client: &Client, context: &Context, path: &str, wish: &Wish<'_>) -> anyhow::Result<()> {
    if wish.follow && context.output.json {
        return Err(Failure::usage("--json is one answer; leave out --follow").into());
    }
    if wish.follow {
        return follow(client, context, path, wish).await;
    }
    let mut answer = client.get(&format!("{path}?lines={}", wish.looked_at())).await?;
    let mut lines = newest(wish.wanted(answer["lines"].take()), wish.lines);
    if wish.level.is_some() && lines.len() < wish.lines {
        (lines, _) = end_of(client, path, wish).await?;
    }
    let shown = text(&lines);
    answer["lines"] = lines.into();
    Ok(context.output.say(&answer, |_| shown)?)
}

async fn follow(client: &Client, context: &Context, path: &str, wish: &Wish<'_>) -> anyhow::Result<()> {
    let (last, mut cursor) = end_of(client, path, wish).await?;
    context.output.line(&text(&last))?;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let mut page =
            client.get(&format!("{path}?mode=page&lines=1000&cursor={}", segment(&cursor))).await?;
        context.output.line(&text(&wish.wanted(page["lines"].take())))?;
        cursor = page["next_cursor"].as_str().unwrap_or(&cursor).to_owned();
    }
}

/// The last lines that are wanted and the place behind them, from the same pages: no line is in between.
async fn end_of(client: &Client, path: &str, wish: &Wish<'_>) -> Result<(Vec<Value>, String), Failure> {
    let (mut last, mut cursor) = (Vec::new(), String::new());
    loop {
        let mut page =
            client.get(&format!("{path}?mode=page&lines={MOST}&cursor={}", segment(&cursor))).await?;
        last.extend(wish.wanted(page["lines"].take()));
        last = newest(last, wish.lines);
        cursor = page["next_cursor"].as_str().unwrap_or_default().to_owned();
        if page["has_more"] != true {
            return Ok((last, cursor));
        }
    }
}

/// Everything that is kept, into a file.
pub async fn save(client: &Client, context: &Context, path: &str, file: &Path) -> anyhow::Result<()> {
    let mut response = client.download(path).await?;
    let total = response.content_length().unwrap_or(0);
    let mut out = std::fs::File::create(file).map_err(|error| refused(file, &error))?;
    let (progress, mut done) = (Progress::new(context.output.json), 0_u64);
    while let Some(chunk) = response.chunk().await? {
        out.write_all(&chunk).map_err(|error| refused(file, &error))?;
        done += chunk.len() as u64;
        progress.show("log", done, total.max(done));
    }
    progress.end();
    let told = json!({ "file": file, "bytes": done });
    Ok(context.output.say(&told, |_| format!("{done} bytes are in {}.", file.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_and_people_get_the_lines_of_the_level_that_is_asked_for() {
        let wish = Wish { lines: 9, follow: false, level: Some("warn") };
        let lines = json!(["2026-11-17T03:00:00Z  INFO ready", "2026-11-17T03:00:01Z  WARN careful"]);
        assert_eq!(wish.wanted(lines), ["2026-11-17T03:00:01Z  WARN careful"]);
        assert_eq!(newest(vec![1.into(), 2.into(), 3.into()], 2), [2, 3]);
        assert_eq!((wish.looked_at(), Wish { level: None, ..wish }.looked_at()), (MOST, 9));
    }
}
