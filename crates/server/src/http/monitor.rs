//! `GET /metrics`: metrics in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use polyclaw_engine::hub::HubCounters;
use polyclaw_engine::{AgentTurns, TURN_BUCKETS_MS};
use polyclaw_store::jobs;

use super::delegations;
use crate::metrics::{HttpMetrics, render_metric_head, resident_bytes};
use crate::state::AppState;

/// Returns the metrics of this process in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "instance", responses((status = 200, description = "Prometheus text", body = String, content_type = "text/plain")))]
pub async fn show_metrics(
    State(app): State<AppState>,
    Extension(metrics): Extension<Arc<HttpMetrics>>,
) -> impl IntoResponse {
    let mut out = String::with_capacity(16 * 1024);
    render_turns(&mut out, &app.engine.hub.counters());
    render_agents(&mut out, &app.engine.agent_turns());
    // Without the database the queue depth is unknown and omitted.
    if let Ok(depth) = app.engine.db().read(jobs::count_by_state).await {
        render_metric_head(&mut out, "polyclaw_turns", "gauge", "Queued and running turns, on all nodes.");
        for state in ["queued", "running"] {
            let count = depth.iter().find(|(name, _)| name == state).map_or(0, |(_, count)| *count);
            let _ = writeln!(out, "polyclaw_turns{{state=\"{state}\"}} {count}");
        }
    }
    if let Ok(pairs) = app.engine.list_delegations().await {
        delegations::render_metrics(&mut out, &pairs);
    }
    let store_errors = metrics.store_errors.load(Ordering::Relaxed);
    render_metric(&mut out, "polyclaw_store_errors_total", "counter", "Failed database calls.", store_errors);
    let sockets = metrics.sockets.load(Ordering::Relaxed);
    render_metric(&mut out, "polyclaw_sockets", "gauge", "Open WebSockets.", sockets);
    let dropped = app.engine.settings().telemetry.dropped_spans();
    render_metric(
        &mut out,
        "polyclaw_spans_dropped_total",
        "counter",
        "Spans that no collector accepted.",
        dropped,
    );
    let uptime = app.engine.now().since(app.started) / 1000;
    render_metric(&mut out, "polyclaw_uptime_seconds", "gauge", "Seconds since the start.", uptime);
    if let Some(bytes) = resident_bytes() {
        render_metric(&mut out, "process_resident_memory_bytes", "gauge", "Memory in use.", bytes);
    }
    metrics.render_metrics(&mut out);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], out)
}

fn render_turns(out: &mut String, counters: &HubCounters) {
    render_metric(
        out,
        "polyclaw_messages_accepted_total",
        "counter",
        "Durably stored messages.",
        counters.accepted,
    );
    render_metric_head(out, "polyclaw_turns_ended_total", "counter", "Ended turns by state.");
    let ended = [
        ("done", counters.done),
        ("failed", counters.failed),
        ("cancelled", counters.cancelled),
        ("steered", counters.steered),
    ];
    for (state, count) in ended {
        let _ = writeln!(out, "polyclaw_turns_ended_total{{state=\"{state}\"}} {count}");
    }
    render_metric_head(
        out,
        "polyclaw_tokens_total",
        "counter",
        "Tokens of ended turns, as reported by providers.",
    );
    let _ = writeln!(out, "polyclaw_tokens_total{{kind=\"input\"}} {}", counters.input_tokens);
    let _ = writeln!(out, "polyclaw_tokens_total{{kind=\"output\"}} {}", counters.output_tokens);
    render_metric(out, "polyclaw_watchers", "gauge", "Readers of live frames.", counters.watchers);
}

/// Renders latency and throughput by agent.
fn render_agents(out: &mut String, agents: &BTreeMap<String, AgentTurns>) {
    const TURNS_ENDED_METRIC: &str = "polyclaw_agent_turns_ended_total";
    const TURN_SECONDS_METRIC: &str = "polyclaw_agent_turn_seconds";
    render_metric_head(out, TURNS_ENDED_METRIC, "counter", "Ended turns by agent and state.");
    for (agent, turns) in agents {
        let ended = [
            ("done", turns.done),
            ("failed", turns.failed),
            ("cancelled", turns.cancelled),
            ("steered", turns.steered),
        ];
        for (state, count) in ended {
            let _ = writeln!(out, "{TURNS_ENDED_METRIC}{{agent=\"{agent}\",state=\"{state}\"}} {count}");
        }
    }
    render_metric_head(out, TURN_SECONDS_METRIC, "histogram", "Duration of turns by agent.");
    for (agent, turns) in agents {
        let mut within = 0;
        for (bound, count) in TURN_BUCKETS_MS.iter().zip(turns.buckets) {
            within += count;
            let (whole, rest) = (bound / 1_000, bound % 1_000);
            let _ = writeln!(
                out,
                "{TURN_SECONDS_METRIC}_bucket{{agent=\"{agent}\",le=\"{whole}.{rest:03}\"}} {within}"
            );
        }
        let _ =
            writeln!(out, "{TURN_SECONDS_METRIC}_bucket{{agent=\"{agent}\",le=\"+Inf\"}} {}", turns.count);
        let _ = writeln!(
            out,
            "{TURN_SECONDS_METRIC}_sum{{agent=\"{agent}\"}} {}.{:03}",
            turns.sum_ms / 1_000,
            turns.sum_ms % 1_000
        );
        let _ = writeln!(out, "{TURN_SECONDS_METRIC}_count{{agent=\"{agent}\"}} {}", turns.count);
    }
}

fn render_metric(out: &mut String, name: &str, kind: &str, help: &str, value: impl Display) {
    render_metric_head(out, name, kind, help);
    let _ = writeln!(out, "{name} {value}");
}
