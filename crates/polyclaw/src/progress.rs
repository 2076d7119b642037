//! A bar for work that takes a while: redrawn on a terminal, a line for each quarter elsewhere, nothing for machines.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};

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

    pub fn show(&self, name: &str, done: u64, total: u64) {
        let percent = done * 100 / total.max(1);
        let step = if self.style == Style::Lines { percent / 25 * 25 } else { percent };
        if self.style == Style::Silent || self.shown.replace(step) == step {
            return;
        }
        let megabytes = |bytes: u64| bytes / 1_000_000;
        let text = format!("{name}  {percent:>3} %  {} of {} MB", megabytes(done), megabytes(total));
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
