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

pub struct Wish<'a> {
    pub lines: usize,
    pub follow: bool,
    pub level: Option<&'a str>,
}

impl Wish<'_> {
    fn text(&self, answer: &Value) -> String {
        let lines = answer["lines"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let wanted = lines.filter(|line| self.level.is_none_or(|level| is_at_least(line, level)));
        wanted.map(safe).collect::<Vec<_>>().join("\n")
    }
}

pub async fn show(client: &Client, context: &Context, path: &str, wish: &Wish<'_>) -> anyhow::Result<()> {
    if wish.follow && context.output.json {
        return Err(Failure::usage("--json is one answer; leave out --follow").into());
    }
    let answer = client.get(&format!("{path}?lines={}", wish.lines)).await?;
    context.output.say(&answer, |_| wish.text(&answer))?;
    // The place where the log ends now: what comes behind it is new.
    let mut cursor = if wish.follow { end_of(client, path).await? } else { return Ok(()) };
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let page = client.get(&format!("{path}?mode=page&lines=1000&cursor={}", segment(&cursor))).await?;
        context.output.line(&wish.text(&page))?;
        cursor = page["next_cursor"].as_str().unwrap_or(&cursor).to_owned();
    }
}

async fn end_of(client: &Client, path: &str) -> anyhow::Result<String> {
    let mut cursor = String::new();
    loop {
        let page = client.get(&format!("{path}?mode=page&lines=10000&cursor={}", segment(&cursor))).await?;
        cursor = page["next_cursor"].as_str().unwrap_or_default().to_owned();
        if page["has_more"] != true {
            return Ok(cursor);
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
