//! Delegation statistics: how often agents delegate to each other, with which results and latency.

use std::fmt::Write as _;

use axum::Json;
use axum::extract::State;
use polyclaw_api::delegations::{DelegationList, DelegationView};
use polyclaw_engine::subagents::{DelegationCounts, DelegationEdge};

use crate::error::Result;
use crate::metrics::render_metric_head;
use crate::state::AppState;

fn delegation_view(
    DelegationEdge { caller, target, active, counts, latency }: DelegationEdge,
) -> DelegationView {
    let DelegationCounts { completed, timeout, error, cancelled, rejected } = counts;
    let (p50_ms, p95_ms) = (latency.p50_ms, latency.p95_ms);
    DelegationView { caller, target, active, completed, timeout, error, cancelled, rejected, p50_ms, p95_ms }
}

/// Lists how agents delegate work to each other.
#[utoipa::path(get, path = "/delegations", tag = "agents", responses((status = 200, body = DelegationList)))]
pub async fn list_delegations(State(app): State<AppState>) -> Result<Json<DelegationList>> {
    let pairs = app.engine.list_delegations().await?;
    Ok(Json(DelegationList { delegations: pairs.into_iter().map(delegation_view).collect() }))
}

/// Renders the statistics as Prometheus metrics.
pub fn render_metrics(out: &mut String, pairs: &[DelegationEdge]) {
    render_metric_head(out, "polyclaw_delegations_total", "counter", "Delegations by result.");
    for (labels, pair) in labelled_pairs(pairs) {
        let DelegationCounts { completed, timeout, error, cancelled, rejected } = pair.counts;
        let ended = [
            ("completed", completed),
            ("timeout", timeout),
            ("error", error),
            ("cancelled", cancelled),
            ("rejected", rejected),
        ];
        for (status, count) in ended {
            let _ = writeln!(out, "polyclaw_delegations_total{{{labels},status=\"{status}\"}} {count}");
        }
    }
    render_metric_head(out, "polyclaw_delegations_active", "gauge", "Delegations in progress.");
    for (labels, pair) in labelled_pairs(pairs) {
        let _ = writeln!(out, "polyclaw_delegations_active{{{labels}}} {}", pair.active);
    }
    render_metric_head(
        out,
        "polyclaw_delegation_seconds",
        "gauge",
        "Duration of delegations in the last hour.",
    );
    for (labels, pair) in labelled_pairs(pairs) {
        for (quantile, took) in [("0.5", pair.latency.p50_ms), ("0.95", pair.latency.p95_ms)] {
            if let Some(took) = took {
                let seconds = std::time::Duration::from_millis(took.unsigned_abs()).as_secs_f64();
                let _ = writeln!(
                    out,
                    "polyclaw_delegation_seconds{{{labels},quantile=\"{quantile}\"}} {seconds}"
                );
            }
        }
    }
}

fn labelled_pairs(pairs: &[DelegationEdge]) -> impl Iterator<Item = (String, &DelegationEdge)> {
    pairs.iter().map(|pair| (format!("caller=\"{}\",target=\"{}\"", pair.caller, pair.target), pair))
}
