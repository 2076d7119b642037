//! Benchmarks of the real binary with a scripted model. Each result is printed with its target.

use std::time::Duration;

use serde_json::{Value, json};

mod bench_daemon;
pub mod broker;
pub mod growth;
pub mod ingress;
pub mod memory;
pub mod route;
pub mod size;
pub mod soak;
pub mod start;
pub mod store;
pub mod stream;
pub mod subagents;
pub mod teams;
pub mod turns;

/// A measured value and its target.
struct BenchFigure {
    name: String,
    value: f64,
    unit: &'static str,
    bar: Option<FigureTarget>,
}

#[derive(Clone, Copy)]
pub enum FigureTarget {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Default)]
pub struct BenchmarkReport(Vec<BenchFigure>);

impl BenchmarkReport {
    pub fn add(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        bar: Option<FigureTarget>,
    ) {
        self.0.push(BenchFigure { name: name.into(), value, unit, bar });
    }

    pub fn to_json(&self) -> Value {
        let figure = |f: &BenchFigure| json!({ "name": f.name, "value": f.value, "unit": f.unit, "met": f.meets_targets() });
        Value::Array(self.0.iter().map(figure).collect())
    }

    pub fn to_text(&self) -> String {
        let line = |f: &BenchFigure| {
            let bar = match f.bar {
                Some(FigureTarget::AtLeast(bar)) => format!("at least {bar}"),
                Some(FigureTarget::AtMost(bar)) => format!("at most {bar}"),
                None => String::new(),
            };
            let mark = match f.meets_targets() {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "",
            };
            format!("{:52} {:>12.3} {:8} {bar:16} {mark}", f.name, f.value, f.unit).trim_end().to_owned()
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl BenchFigure {
    fn meets_targets(&self) -> Option<bool> {
        self.bar.map(|bar| match bar {
            FigureTarget::AtLeast(bar) => self.value >= bar,
            FigureTarget::AtMost(bar) => self.value <= bar,
        })
    }
}

/// Durations of single operations.
#[derive(Default)]
pub struct OperationTimes(Vec<Duration>);

impl OperationTimes {
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns a percentile of the durations in milliseconds; `share` is from 0 to 1.
    pub fn percentile(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts of operations are small"
        )]
        let at = (last as f64 * share).round() as usize;
        self.0.get(at).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    }
}

/// Returns operations per second.
pub fn per_second(count: usize, time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of operations are small")]
    let count = count as f64;
    count / time.as_secs_f64()
}
