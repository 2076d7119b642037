//! `polyclaw logs`: shows the log of this home's daemon.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use polyclaw_control::InstancePaths;
use polyclaw_control::log::{self, LogFollower};
use polyclaw_domain::redact::Redactor;
use serde_json::json;

use crate::cli::CommandContext;
use crate::failure::{CommandFailure, FailureExit};
use crate::home::{Home, access_failure};
use crate::log_level::{LOG_LEVELS, is_at_least};
use crate::output::visible_line;
use crate::redaction;

/// Interval between two polls for new lines.
const LOG_POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Show the last lines of the log of this home's daemon.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw logs
  polyclaw logs -f
  polyclaw logs -n 500 --level warn

A daemon that runs in a terminal or under a service manager logs there, not to a file. Logs of other instances:
`polyclaw instances logs <name>`.")]
pub struct Args {
    /// Number of lines.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    lines: usize,
    /// Keep printing new lines as they are written.
    #[arg(short, long)]
    follow: bool,
    /// Only lines of this level and above.
    #[arg(long, value_parser = LOG_LEVELS)]
    level: Option<String>,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    if context.global.url().is_some() {
        return Err(CommandFailure::usage("the log of a remote instance is not on this machine")
            .hint("`polyclaw instances logs <name>` reads it through its control plane")
            .into());
    }
    let path = newest_log_file(context)?;
    let log = LogReader { args, redactor: log_redactor(&context.home) };
    if args.follow {
        return log.follow_log(context, path).await;
    }
    let lines = log.last_lines(&path).map_err(|error| access_failure(&path, &error))?;
    Ok(context.output.print_value(&json!({ "lines": lines }), |_| lines.join("\n"))?)
}

/// Builds the redactor for log lines. They were redacted when written; this catches secrets that the daemon did not
/// know then, or that another program wrote.
fn log_redactor(home: &Home) -> Redactor {
    let config = home.read_unresolved_config().unwrap_or_default();
    redaction::build_redactor(&config, home)
}

struct LogReader<'a> {
    args: &'a Args,
    redactor: Redactor,
}

impl LogReader<'_> {
    fn filter_lines(&self, lines: Vec<String>) -> Vec<String> {
        let level = self.args.level.as_deref();
        let kept = lines.into_iter().filter(|line| level.is_none_or(|level| is_at_least(line, level)));
        kept.map(|line| visible_line(&self.redactor.redact_text(&line))).collect()
    }

    fn line_count(&self) -> usize {
        self.args.lines.min(log::MAX_LOG_LINES)
    }

    /// Returns the last matching lines, however far back they are.
    fn last_lines(&self, path: &Path) -> io::Result<Vec<String>> {
        if self.args.level.is_none() {
            return Ok(self.filter_lines(log::tail(path, self.line_count())?));
        }
        let near = self.filter_lines(log::tail(path, log::MAX_LOG_LINES)?);
        if near.len() >= self.line_count() {
            return Ok(newest_lines(near, self.line_count()));
        }
        self.last_lines_of_history(path)
    }

    /// Finds the last matching lines in the whole history. Pages run from oldest to newest.
    fn last_lines_of_history(&self, path: &Path) -> io::Result<Vec<String>> {
        let (mut last, mut cursor) = (Vec::new(), String::new());
        while let Some(page) = log::read_page(path, Some(&cursor), log::MAX_LOG_LINES)? {
            last.extend(self.filter_lines(page.lines));
            last = newest_lines(last, self.line_count());
            if !page.has_more {
                break;
            }
            cursor = page.next;
        }
        Ok(last)
    }

    async fn follow_log(&self, context: &CommandContext, path: PathBuf) -> anyhow::Result<()> {
        if context.output.json {
            return Err(CommandFailure::usage("--json cannot be combined with --follow").into());
        }
        // Lines of the requested level may be anywhere in the history.
        let looked_at = if self.args.level.is_some() { usize::MAX } else { self.line_count() };
        let (mut log, last) = LogFollower::with_backlog(path, looked_at)?;
        context.output.print_line(&newest_lines(self.filter_lines(last), self.line_count()).join("\n"))?;
        loop {
            let news = log.read_new()?;
            context.output.print_line(&self.filter_lines(news.lines).join("\n"))?;
            if !news.more {
                tokio::time::sleep(LOG_POLL_INTERVAL).await;
            }
        }
    }
}

fn newest_lines(mut lines: Vec<String>, count: usize) -> Vec<String> {
    lines.split_off(lines.len().saturating_sub(count))
}

/// Returns the log file that was written last. A control plane keeps instance logs in a folder of its own; a daemon
/// started by `polyclaw chat` writes next to its config.
fn newest_log_file(context: &CommandContext) -> Result<PathBuf, CommandFailure> {
    let known =
        [InstancePaths::from_folder(context.home.path().to_owned()).log_file(), context.home.log_file()];
    let changed = |path: &PathBuf| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let last = known.into_iter().filter_map(|path| Some((changed(&path)?, path))).max();
    last.map(|(_, path)| path).ok_or_else(|| {
        CommandFailure::new(FailureExit::NotFound, "no_log", "the daemon of this home has no log file")
            .hint("`polyclaw up` writes one; a daemon in a terminal or under a service manager logs there")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_of_a_level_are_found_behind_other_lines() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("daemon.log");
        let failed = |n: u32| format!("2026-11-17T03:00:0{n}Z ERROR failed {n}");
        let noise = "2026-11-17T03:00:09Z  INFO ready\n".repeat(log::MAX_LOG_LINES + 1);
        std::fs::write(dir.path().join("daemon.log.1"), format!("{}\n", failed(1))).unwrap();
        std::fs::write(&log, format!("{}\n{}\n{noise}{}\n", failed(2), failed(3), failed(4))).unwrap();
        for (lines, first) in [(1, 4), (2, 3), (3, 2), (4, 1), (50, 1)] {
            let args = Args { lines, follow: false, level: Some("error".to_owned()) };
            let reader = LogReader { args: &args, redactor: Redactor::default() };
            let expected: Vec<String> = (first..=4).map(failed).collect();
            assert_eq!(reader.last_lines(&log).unwrap(), expected, "{lines}");
        }
        let all = Args { lines: 2, follow: false, level: None };
        let all = LogReader { args: &all, redactor: Redactor::default() };
        assert_eq!(all.last_lines(&log).unwrap(), ["2026-11-17T03:00:09Z  INFO ready".to_owned(), failed(4)]);
    }

    #[test]
    fn secrets_in_log_lines_are_redacted() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("daemon.log");
        let key = ["sk-proj-", "abc1DEFghi2JKLmno3PQRstu4VWX"].concat();
        std::fs::write(&log, format!("ERROR key {key}, token 0123-the-token-of-this-home\n")).unwrap();
        let args = Args { lines: 5, follow: false, level: None };
        let reader = LogReader { args: &args, redactor: Redactor::new(["0123-the-token-of-this-home"]) };
        let shown = reader.last_lines(&log).unwrap().join("\n");
        assert!(shown.starts_with("ERROR key [redacted"), "{shown}");
        assert!(!shown.contains("the-token") && !shown.contains("PQRstu"), "{shown}");
    }
}
