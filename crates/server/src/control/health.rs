//! The health of all instances.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use polyclaw_api::control::health::{FleetHealth, InstanceHealth, LivenessView, VersionView};
use polyclaw_control::ControlCaller;
use polyclaw_domain::instance::InstanceStatus;

use super::state::ControlState;
use crate::error::Result;
use crate::metrics::{HttpMetrics, render_metric_head, resident_bytes};

const INSTANCE_STATUSES: [InstanceStatus; 9] = [
    InstanceStatus::Running,
    InstanceStatus::Unresponsive,
    InstanceStatus::Starting,
    InstanceStatus::Restarting,
    InstanceStatus::Stopped,
    InstanceStatus::Crashed,
    InstanceStatus::StalePid,
    InstanceStatus::Unknown,
    InstanceStatus::Error,
];

/// Returns the health of all instances that are not archived.
#[utoipa::path(get, path = "/health", tag = "health", responses((status = 200, body = FleetHealth)))]
pub async fn fleet_health(State(app): State<ControlState>) -> Result<Json<FleetHealth>> {
    let views = app.control.list_instances(false).await?;
    let fails = |status: InstanceStatus| {
        matches!(
            status,
            InstanceStatus::Crashed
                | InstanceStatus::Error
                | InstanceStatus::StalePid
                | InstanceStatus::Unresponsive
        )
    };
    let fails_at_once = views.iter().any(|view| fails(view.status));
    // All concurrently, so that a hanging instance does not delay the others.
    let asked = views.into_iter().map(|view| {
        let control = app.control.clone();
        async move {
            let reply = match view.status {
                InstanceStatus::Running => control.get_health(view.id.as_str()).await.ok().flatten(),
                _ => None,
            };
            let health = reply.as_ref().and_then(|reply| reply["status"].as_str().map(str::to_owned));
            let uptime_ms = reply.as_ref().and_then(|reply| reply["uptime_ms"].as_i64());
            let (id, name) = (view.id.to_string(), view.name.to_string());
            InstanceHealth {
                id,
                name,
                status: view.status.as_str().to_owned(),
                pid: view.pid,
                health,
                uptime_ms,
            }
        }
    });
    let instances: Vec<InstanceHealth> = futures_util::future::join_all(asked).await;
    let is_silent =
        |one: &InstanceHealth| one.status == InstanceStatus::Running.as_str() && one.health.is_none();
    let degraded = fails_at_once || instances.iter().any(is_silent);
    Ok(Json(FleetHealth {
        status: if degraded { "degraded" } else { "ok" }.to_owned(),
        version: app.version.clone(),
        uptime_ms: app.control.now().since(app.started),
        instances,
    }))
}

/// Returns whether the control plane is alive. Needs no token, because it reveals nothing.
pub async fn show_liveness() -> Json<LivenessView> {
    Json(LivenessView { status: "ok".to_owned() })
}

/// Returns the version of the control plane and the scope of the caller.
#[utoipa::path(get, path = "/version", tag = "health", responses((status = 200, body = VersionView)))]
pub async fn show_version(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
) -> Json<VersionView> {
    Json(VersionView { version: app.version.clone(), scope: by.access.as_str().to_owned() })
}

/// Returns the metrics of the control plane in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "health", responses((status = 200, description = "Prometheus text", body = String, content_type = "text/plain")))]
pub async fn control_metrics(
    State(app): State<ControlState>,
    Extension(metrics): Extension<Arc<HttpMetrics>>,
) -> Result<impl IntoResponse> {
    let views = app.control.list_instances(false).await?;
    let mut out = String::with_capacity(8 * 1024);
    render_metric_head(&mut out, "polyclaw_instances", "gauge", "Instances by status.");
    for status in INSTANCE_STATUSES {
        let count = views.iter().filter(|view| view.status == status).count();
        let _ = writeln!(out, "polyclaw_instances{{status=\"{}\"}} {count}", status.as_str());
    }
    render_metric_head(&mut out, "polyclaw_uptime_seconds", "gauge", "Seconds since the start.");
    let _ = writeln!(out, "polyclaw_uptime_seconds {}", app.control.now().since(app.started) / 1000);
    if let Some(bytes) = resident_bytes() {
        render_metric_head(&mut out, "process_resident_memory_bytes", "gauge", "Memory in use.");
        let _ = writeln!(out, "process_resident_memory_bytes {bytes}");
    }
    metrics.render_metrics(&mut out);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], out))
}
