//! Progress display for long work: a bar on a terminal, a line for each quarter elsewhere, nothing with `--json`.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

const BYTES_TEMPLATE: &str = "{msg} [{bar:25}] {bytes} of {total_bytes} ({bytes_per_sec}, {eta} left)";
const COUNT_TEMPLATE: &str = "{msg} [{bar:25}] {pos} of {len} ({eta} left)";
const SPINNER_TEMPLATE: &str = "{spinner} {msg} {elapsed}";
const REDRAW_INTERVAL: Duration = Duration::from_millis(120);
/// Interval of the lines about work whose progress is unknown.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

pub struct ProgressDisplay {
    mode: ProgressMode,
    /// The bar of the work in progress.
    bar: RefCell<Option<ProgressBar>>,
    /// The last quarter for which a line was written.
    shown: Cell<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgressMode {
    Bar,
    Lines,
    Silent,
}

impl ProgressDisplay {
    pub fn new(silent: bool) -> Self {
        let mode = match (silent, io::stderr().is_terminal()) {
            (true, _) => ProgressMode::Silent,
            (false, true) => ProgressMode::Bar,
            (false, false) => ProgressMode::Lines,
        };
        Self { mode, bar: RefCell::default(), shown: Cell::new(u64::MAX) }
    }

    /// Shows how many bytes of a total are done.
    pub fn show_bytes(&self, name: &str, done: u64, total: u64) {
        let megabytes = |bytes: u64| bytes / 1_000_000;
        self.show(BYTES_TEMPLATE, name, (done, total), || {
            format!("{} of {} MB", megabytes(done), megabytes(total))
        });
    }

    /// Shows how many items of a total are done.
    pub fn show_count(&self, name: &str, done: u64, total: u64) {
        self.show(COUNT_TEMPLATE, name, (done, total), || format!("{done} of {total}"));
    }

    fn show(&self, template: &str, name: &str, (done, total): (u64, u64), text: impl FnOnce() -> String) {
        match self.mode {
            ProgressMode::Silent => {}
            ProgressMode::Bar => {
                let mut current = self.bar.borrow_mut();
                let bar = current.get_or_insert_with(|| styled_bar(template));
                bar.set_length(total);
                bar.set_message(name.to_owned());
                bar.set_position(done);
            }
            ProgressMode::Lines => {
                let quarter = done.saturating_mul(4) / total.max(1);
                if self.shown.replace(quarter) != quarter {
                    write_line(&format!("{name}  {:>3} %  {}", quarter * 25, text()));
                }
            }
        }
    }

    /// Shows the elapsed time of work whose progress is unknown.
    pub async fn show_while_running<T>(&self, name: &str, work: impl Future<Output = T>) -> T {
        match self.mode {
            ProgressMode::Silent => work.await,
            ProgressMode::Bar => {
                let spinner = styled_bar(SPINNER_TEMPLATE).with_message(name.to_owned());
                spinner.enable_steady_tick(REDRAW_INTERVAL);
                let done = work.await;
                spinner.finish_and_clear();
                done
            }
            ProgressMode::Lines => write_lines_while_running(name, work).await,
        }
    }

    pub fn finish_line(&self) {
        if let Some(bar) = self.bar.take() {
            bar.abandon();
        }
        self.shown.set(u64::MAX);
    }

    /// Prints a note between progress updates.
    pub fn print_note(&self, text: &str) {
        match self.bar.borrow().as_ref() {
            _ if self.mode == ProgressMode::Silent => {}
            Some(bar) => bar.println(text),
            None => write_line(text),
        }
    }
}

fn styled_bar(template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style.progress_chars("##-"))
}

async fn write_lines_while_running<T>(name: &str, work: impl Future<Output = T>) -> T {
    let started_at = Instant::now();
    let mut ticks = tokio::time::interval(LINE_INTERVAL);
    // The first tick is immediate; most work ends before there is anything to show.
    ticks.tick().await;
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => write_line(&format!("{name}  {} s", started_at.elapsed().as_secs())),
        }
    }
}

fn write_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for template in [BYTES_TEMPLATE, COUNT_TEMPLATE, SPINNER_TEMPLATE] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
