//! HTTP counters of this process in the Prometheus format. A request touches only atomics.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{Method, StatusCode};

/// Upper bounds of the latency histogram, in microseconds.
const LATENCY_BOUNDS_MICROS: [u64; 12] =
    [500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000, 30_000_000];
const COUNTED_METHODS: [Method; 4] = [Method::GET, Method::POST, Method::PATCH, Method::DELETE];
/// Statuses that this server uses. Any other is counted in the last slot.
const COUNTED_STATUSES: [u16; 21] =
    [101, 200, 201, 202, 204, 303, 400, 401, 403, 404, 405, 408, 409, 413, 415, 429, 500, 501, 502, 503, 504];

pub struct HttpMetrics {
    routes: HashMap<String, [RouteCounters; COUNTED_METHODS.len() + 1]>,
    /// Calls to unknown routes.
    unknown_route: RouteCounters,
    pub store_errors: AtomicU64,
    pub sockets: AtomicU64,
}

#[derive(Default)]
pub struct RouteCounters {
    statuses: [AtomicU64; COUNTED_STATUSES.len() + 1],
    buckets: [AtomicU64; LATENCY_BOUNDS_MICROS.len() + 1],
    micros: AtomicU64,
}

impl HttpMetrics {
    /// Takes the routes once when the router is built, so that counting needs no lock.
    pub fn new(routes: impl IntoIterator<Item = String>) -> Self {
        Self {
            routes: routes.into_iter().map(|path| (path, Default::default())).collect(),
            unknown_route: RouteCounters::default(),
            store_errors: AtomicU64::new(0),
            sockets: AtomicU64::new(0),
        }
    }

    pub fn route_counters(&self, path: Option<&str>, method: &Method) -> &RouteCounters {
        let Some(found) = path.and_then(|path| self.routes.get(path)) else { return &self.unknown_route };
        let at = COUNTED_METHODS.iter().position(|known| known == method).unwrap_or(COUNTED_METHODS.len());
        &found[at]
    }

    pub fn render_metrics(&self, out: &mut String) {
        let mut lines = Vec::new();
        let sorted: BTreeMap<_, _> = self.routes.iter().collect();
        for (path, methods) in sorted {
            for (at, route) in methods.iter().enumerate() {
                let method = COUNTED_METHODS.get(at).map_or("OTHER", Method::as_str);
                lines.push((format!("route=\"{path}\",method=\"{method}\""), route));
            }
        }
        lines.push(("route=\"other\",method=\"OTHER\"".to_owned(), &self.unknown_route));
        render_metric_head(
            out,
            "polyclaw_http_requests_total",
            "counter",
            "Calls by route, method and status.",
        );
        lines.iter().for_each(|(labels, route)| route.render_statuses(out, labels));
        render_metric_head(
            out,
            "polyclaw_http_request_seconds",
            "histogram",
            "Time to the first byte of the answer.",
        );
        lines.iter().for_each(|(labels, route)| route.render_times(out, labels));
    }
}

impl RouteCounters {
    pub fn count_response(&self, status: StatusCode, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let status = COUNTED_STATUSES.binary_search(&status.as_u16()).unwrap_or(COUNTED_STATUSES.len());
        let bucket = LATENCY_BOUNDS_MICROS
            .iter()
            .position(|bound| micros <= *bound)
            .unwrap_or(LATENCY_BOUNDS_MICROS.len());
        self.statuses[status].fetch_add(1, Ordering::Relaxed);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn render_statuses(&self, out: &mut String, labels: &str) {
        for (at, count) in self.statuses.iter().enumerate() {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let status = COUNTED_STATUSES.get(at).map_or("other".to_owned(), u16::to_string);
                let _ = writeln!(out, "polyclaw_http_requests_total{{{labels},status=\"{status}\"}} {count}");
            }
        }
    }

    fn render_times(&self, out: &mut String, labels: &str) {
        let counts: Vec<u64> = self.buckets.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        if counts.iter().sum::<u64>() == 0 {
            return;
        }
        let mut total = 0;
        for (at, count) in counts.iter().enumerate() {
            total += count;
            let bound =
                LATENCY_BOUNDS_MICROS.get(at).map_or("+Inf".to_owned(), |micros| format_seconds(*micros));
            let _ = writeln!(out, "polyclaw_http_request_seconds_bucket{{{labels},le=\"{bound}\"}} {total}");
        }
        let sum = format_seconds(self.micros.load(Ordering::Relaxed));
        let _ = writeln!(out, "polyclaw_http_request_seconds_sum{{{labels}}} {sum}");
        let _ = writeln!(out, "polyclaw_http_request_seconds_count{{{labels}}} {total}");
    }
}

fn format_seconds(micros: u64) -> String {
    format!("{}", Duration::from_micros(micros).as_secs_f64())
}

pub fn render_metric_head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Returns the resident memory of this process, if the system reports it.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_statuses_are_sorted_for_binary_search() {
        assert!(COUNTED_STATUSES.is_sorted());
    }

    #[test]
    fn metrics_render_only_counted_requests() {
        let metrics = HttpMetrics::new(["/a".to_owned(), "/b".to_owned()]);
        metrics
            .route_counters(Some("/a"), &Method::GET)
            .count_response(StatusCode::OK, Duration::from_micros(800));
        metrics
            .route_counters(Some("/a"), &Method::PUT)
            .count_response(StatusCode::IM_A_TEAPOT, Duration::from_secs(60));
        metrics.route_counters(None, &Method::GET).count_response(StatusCode::NOT_FOUND, Duration::ZERO);
        let mut text = String::new();
        metrics.render_metrics(&mut text);
        for line in [
            r#"polyclaw_http_requests_total{route="/a",method="GET",status="200"} 1"#,
            r#"polyclaw_http_requests_total{route="/a",method="OTHER",status="other"} 1"#,
            r#"polyclaw_http_requests_total{route="other",method="OTHER",status="404"} 1"#,
            r#"polyclaw_http_request_seconds_bucket{route="/a",method="GET",le="0.0005"} 0"#,
            r#"polyclaw_http_request_seconds_bucket{route="/a",method="GET",le="0.001"} 1"#,
            r#"polyclaw_http_request_seconds_sum{route="/a",method="GET"} 0.0008"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(!text.contains("/b"));
    }
}
