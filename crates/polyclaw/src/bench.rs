//! Benchmarks against the real binary and a scripted model, printed with the bar each has to meet.

use std::time::Duration;

use serde_json::{Value, json};

pub mod broker;
pub mod families;
pub mod growth;
pub mod ingress;
pub mod memory;
pub mod route;
pub mod size;
pub mod soak;
pub mod start;
pub mod store;
pub mod stream;
mod subject;
pub mod teams;
pub mod turns;

/// One measured number and what it should be.
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    bar: Option<Bar>,
}

#[derive(Clone, Copy)]
pub enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Default)]
pub struct Report(Vec<Figure>);

impl Report {
    pub fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str, bar: Option<Bar>) {
        self.0.push(Figure { name: name.into(), value, unit, bar });
    }

    pub fn to_json(&self) -> Value {
        let figure = |f: &Figure| json!({ "name": f.name, "value": f.value, "unit": f.unit, "met": f.met() });
        Value::Array(self.0.iter().map(figure).collect())
    }

    pub fn to_text(&self) -> String {
        let line = |f: &Figure| {
            let bar = match f.bar {
                Some(Bar::AtLeast(bar)) => format!("at least {bar}"),
                Some(Bar::AtMost(bar)) => format!("at most {bar}"),
                None => String::new(),
            };
            let mark = match f.met() {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "",
            };
            format!("{:52} {:>12.3} {:8} {bar:16} {mark}", f.name, f.value, f.unit).trim_end().to_owned()
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Figure {
    fn met(&self) -> Option<bool> {
        self.bar.map(|bar| match bar {
            Bar::AtLeast(bar) => self.value >= bar,
            Bar::AtMost(bar) => self.value <= bar,
        })
    }
}

/// Times of single operations.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The time below which this share of all operations stayed, in milliseconds.
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

/// Operations per second.
pub fn rate(count: usize, time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of operations are small")]
    let count = count as f64;
    count / time.as_secs_f64()
}
