//! What an instance is and does.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use polyclaw_control::observe::{InstanceDetails, UsageSummary};
use polyclaw_domain::budget::nanos_to_usd;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::instances::InstanceView;
use super::state::ControlState;
use crate::error::Result;
use crate::extract::{PathId, QueryParams};
use crate::http::history::{ListHistoryQuery as WhichTasks, PastTurnList};
use crate::http::usage::UsageWindow;

#[derive(Serialize, ToSchema)]
pub struct InstanceDetailsView {
    instance: InstanceView,
    build: BuildView,
    /// In force, defaults included, secrets hidden; null where the file can not be read.
    #[schema(value_type = Object)]
    config: Value,
    config_error: Option<String>,
    /// The files that tell agents who they are.
    bootstrap_files: Vec<BootstrapFileView>,
    /// The accounts of each channel.
    #[schema(value_type = Object)]
    channels: Value,
    #[schema(value_type = Object)]
    models: Value,
    runtime: RuntimeView,
}

#[derive(Serialize, ToSchema)]
pub struct BuildView {
    /// Of the control plane, which is the program it starts instances with.
    control_plane: String,
    /// Of the running instance; null where it does not run.
    instance: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct BootstrapFileView {
    /// Below the workspace, or absolute.
    file: String,
    bytes: u64,
}

#[derive(Serialize, ToSchema)]
pub struct RuntimeView {
    uptime_ms: Option<i64>,
    /// The instance's own word: `ok`, `degraded` or `draining`.
    health: Option<String>,
}

impl InstanceDetailsView {
    fn from_details(details: InstanceDetails, version: &str) -> Self {
        let health = details.health.unwrap_or_default();
        let part = |name: &str| details.config.get(name).cloned().unwrap_or(Value::Null);
        let models = json!({
            "default": details.config["agents"]["defaults"]["model"],
            "providers": part("providers"),
            "models": part("models"),
        });
        Self {
            instance: details.instance.into(),
            build: BuildView {
                control_plane: version.to_owned(),
                instance: health["version"].as_str().map(str::to_owned),
            },
            channels: part("channels"),
            models,
            config: details.config,
            config_error: details.config_error,
            bootstrap_files: details
                .bootstrap_files
                .into_iter()
                .map(|one| BootstrapFileView { file: one.file, bytes: one.bytes })
                .collect(),
            runtime: RuntimeView {
                uptime_ms: health["uptime_ms"].as_i64(),
                health: health["status"].as_str().map(str::to_owned),
            },
        }
    }
}

/// All there is to know about an instance.
#[utoipa::path(get, path = "/instances/{id}/details", tag = "observe", params(("id" = String, Path)), responses((status = 200, body = InstanceDetailsView)))]
pub async fn show_details(
    State(app): State<ControlState>,
    PathId(id): PathId,
) -> Result<Json<InstanceDetailsView>> {
    Ok(Json(InstanceDetailsView::from_details(app.control.get_details(&id).await?, &app.version)))
}

/// What an instance did last, the newest first.
#[utoipa::path(get, path = "/instances/{id}/tasks", tag = "observe", params(("id" = String, Path), WhichTasks), responses((status = 200, body = PastTurnList)))]
pub async fn list_instance_tasks(
    State(app): State<ControlState>,
    PathId(id): PathId,
    RawQuery(asked): RawQuery,
    QueryParams(which): QueryParams<WhichTasks>,
) -> Result<Response> {
    let (filter, paging) = which.into_filter()?;
    let path = format!("/api/v1/history?{}", asked.unwrap_or_default());
    Ok(match app.control.fetch_unless_local(&id, &path).await? {
        // Its own words have the same shape, cursors included.
        Some(Ok(response)) => Json(response).into_response(),
        Some(Err(why)) => Json(PastTurnList::unavailable(why)).into_response(),
        None => Json(match app.control.list_turns(&id, filter).await? {
            Ok(rows) => PastTurnList::from_rows(rows, &paging),
            Err(why) => PastTurnList::unavailable(why),
        })
        .into_response(),
    })
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InstanceUsageQuery {
    /// `24h` if not given.
    #[serde(default)]
    #[param(inline, required = false)]
    window: UsageWindow,
}

/// Null where nothing is known: never a zero that nobody counted.
#[derive(Serialize, ToSchema)]
pub struct InstanceUsageView {
    window: UsageWindow,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    total_tokens: Option<i64>,
    cost_usd: Option<f64>,
    request_count: i64,
    /// Requests whose provider did not say what they took: the sums leave them out.
    unknown_count: i64,
    data_available: bool,
    message: Option<String>,
}

impl InstanceUsageView {
    fn from_usage(used: UsageSummary, window: UsageWindow) -> Self {
        Self {
            window,
            input_tokens: used.input,
            output_tokens: used.output,
            total_tokens: used.input.zip(used.output).map(|(input, output)| input + output),
            cost_usd: used.cost_nanos.map(nanos_to_usd),
            request_count: used.requests,
            unknown_count: used.unknown,
            data_available: used.requests > 0,
            message: used.unavailable,
        }
    }
}

/// What an instance used.
#[utoipa::path(get, path = "/instances/{id}/usage", tag = "observe", params(("id" = String, Path), InstanceUsageQuery), responses((status = 200, body = InstanceUsageView)))]
pub async fn show_instance_usage(
    State(app): State<ControlState>,
    PathId(id): PathId,
    QueryParams(which): QueryParams<InstanceUsageQuery>,
) -> Result<Json<InstanceUsageView>> {
    let window = serde_json::to_value(which.window).unwrap_or_default();
    let path = format!("/api/v1/usage?window={}", window.as_str().unwrap_or_default());
    let since = app.control.now().minus(which.window.as_millis());
    let used = app.control.summarize_usage(&id, since, &path).await?;
    Ok(Json(InstanceUsageView::from_usage(used, which.window)))
}
