//! Progress display for long work: a redrawn bar on a terminal, a line for each quarter elsewhere, nothing with
//! `--json`.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

pub struct ProgressDisplay {
    style: ProgressStyle,
    /// The last step shown, so that nothing is drawn twice.
    shown: Cell<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgressStyle {
    Bar,
    Lines,
    Silent,
}

impl ProgressDisplay {
    pub fn new(silent: bool) -> Self {
        let style = match (silent, io::stderr().is_terminal()) {
            (true, _) => ProgressStyle::Silent,
            (false, true) => ProgressStyle::Bar,
            (false, false) => ProgressStyle::Lines,
        };
        Self { style, shown: Cell::new(u64::MAX) }
    }

    /// Shows how many bytes of a total are done.
    pub fn show_bytes(&self, name: &str, done: u64, total: u64) {
        let megabytes = |bytes: u64| bytes / 1_000_000;
        self.draw_progress(name, (done, total), &format!("{} of {} MB", megabytes(done), megabytes(total)));
    }

    /// Shows how many items of a total are done.
    pub fn show_count(&self, name: &str, done: u64, total: u64) {
        self.draw_progress(name, (done, total), &format!("{done} of {total}"));
    }

    fn draw_progress(&self, name: &str, (done, total): (u64, u64), so_far: &str) {
        let percent = done * 100 / total.max(1);
        let step = if self.style == ProgressStyle::Lines { percent / 25 * 25 } else { percent };
        if self.style == ProgressStyle::Silent || self.shown.replace(step) == step {
            return;
        }
        let text = format!("{name}  {percent:>3} %  {so_far}");
        let mut out = io::stderr().lock();
        let _ = match self.style {
            ProgressStyle::Bar => {
                let full = usize::try_from(percent / 4).unwrap_or(25);
                write!(out, "\r[{:<25}] {text}", "#".repeat(full))
            }
            _ => writeln!(out, "{text}"),
        };
        let _ = out.flush();
    }

    /// Shows the elapsed time of work whose progress is unknown.
    pub async fn show_while_running<T>(&self, name: &str, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let mut ticks = tokio::time::interval(self.tick_interval());
        // The first tick is immediate; most work ends before there is anything to show.
        ticks.tick().await;
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => {
                    self.finish_line();
                    return done;
                }
                _ = ticks.tick() => self.draw_tick(name, began.elapsed().as_secs()),
            }
        }
    }

    fn tick_interval(&self) -> Duration {
        Duration::from_secs(if self.style == ProgressStyle::Lines { 10 } else { 1 })
    }

    fn draw_tick(&self, name: &str, seconds: u64) {
        self.shown.set(seconds);
        let mut out = io::stderr().lock();
        let _ = match self.style {
            ProgressStyle::Silent => return,
            ProgressStyle::Bar => write!(out, "\r{name}  {seconds} s"),
            ProgressStyle::Lines => writeln!(out, "{name}  {seconds} s"),
        };
        let _ = out.flush();
    }

    pub fn finish_line(&self) {
        if self.style == ProgressStyle::Bar && self.shown.replace(u64::MAX) != u64::MAX {
            let _ = writeln!(io::stderr().lock());
        }
    }

    /// Prints a note between progress updates.
    pub fn print_note(&self, text: &str) {
        self.finish_line();
        if self.style != ProgressStyle::Silent {
            let _ = writeln!(io::stderr().lock(), "{text}");
        }
    }
}
