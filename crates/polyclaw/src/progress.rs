//! A bar for work that takes a while: redrawn on a terminal, a line for each quarter elsewhere, nothing for machines.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

pub struct Progress {
    style: Style,
    /// The last percent shown, so that nothing is drawn twice.
    shown: Cell<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Bar,
    Lines,
    Silent,
}

impl Progress {
    pub fn new(silent: bool) -> Self {
        let style = match (silent, io::stderr().is_terminal()) {
            (true, _) => Style::Silent,
            (false, true) => Style::Bar,
            (false, false) => Style::Lines,
        };
        Self { style, shown: Cell::new(u64::MAX) }
    }

    /// So many bytes of so many.
    pub fn show(&self, name: &str, done: u64, total: u64) {
        let megabytes = |bytes: u64| bytes / 1_000_000;
        self.draw(name, (done, total), &format!("{} of {} MB", megabytes(done), megabytes(total)));
    }

    /// So many things of so many.
    pub fn count(&self, name: &str, done: u64, total: u64) {
        self.draw(name, (done, total), &format!("{done} of {total}"));
    }

    fn draw(&self, name: &str, (done, total): (u64, u64), so_far: &str) {
        let percent = done * 100 / total.max(1);
        let step = if self.style == Style::Lines { percent / 25 * 25 } else { percent };
        if self.style == Style::Silent || self.shown.replace(step) == step {
            return;
        }
        let text = format!("{name}  {percent:>3} %  {so_far}");
        let mut out = io::stderr().lock();
        let _ = match self.style {
            Style::Bar => {
                let full = usize::try_from(percent / 4).unwrap_or(25);
                write!(out, "\r[{:<25}] {text}", "#".repeat(full))
            }
            _ => writeln!(out, "{text}"),
        };
        let _ = out.flush();
    }

    /// Work of which nobody knows how far it is: for how long it has gone on.
    pub async fn during<T>(&self, name: &str, work: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let mut ticks = tokio::time::interval(self.pace());
        // The first comes at once, and most work is done before there is anything to tell.
        ticks.tick().await;
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => {
                    self.end();
                    return done;
                }
                _ = ticks.tick() => self.tick(name, began.elapsed().as_secs()),
            }
        }
    }

    fn pace(&self) -> Duration {
        Duration::from_secs(if self.style == Style::Lines { 10 } else { 1 })
    }

    fn tick(&self, name: &str, seconds: u64) {
        self.shown.set(seconds);
        let mut out = io::stderr().lock();
        let _ = match self.style {
            Style::Silent => return,
            Style::Bar => write!(out, "\r{name}  {seconds} s"),
            Style::Lines => writeln!(out, "{name}  {seconds} s"),
        };
        let _ = out.flush();
    }

    pub fn end(&self) {
        if self.style == Style::Bar && self.shown.replace(u64::MAX) != u64::MAX {
            let _ = writeln!(io::stderr().lock());
        }
    }

    /// Something worth knowing on the way.
    pub fn note(&self, text: &str) {
        self.end();
        if self.style != Style::Silent {
            let _ = writeln!(io::stderr().lock(), "{text}");
        }
    }
}
