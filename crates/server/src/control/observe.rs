//! Details, turns and usage of an instance.

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
    /// The instance.
    instance: InstanceView,
    /// The program versions.
    build: BuildView,
    /// The effective config including defaults, with secrets masked. Null if the file cannot be read.
    #[schema(value_type = Object)]
    config: Value,
    /// Why the config cannot be read.
    config_error: Option<String>,
    /// Files that define the identity and instructions of agents.
    bootstrap_files: Vec<BootstrapFileView>,
    /// The configured accounts of each channel.
    #[schema(value_type = Object)]
    channels: Value,
    /// The default model, and the configured providers and models.
    #[schema(value_type = Object)]
    models: Value,
    /// Uptime and health of the running instance.
    runtime: RuntimeView,
}

#[derive(Serialize, ToSchema)]
pub struct BuildView {
    /// The version of the control plane, which is also the program it starts instances with.
    control_plane: String,
    /// The version of the running instance. Null if it is not running.
    instance: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct BootstrapFileView {
    /// The path relative to the workspace, or absolute.
    file: String,
    /// The size in bytes.
    bytes: u64,
}

#[derive(Serialize, ToSchema)]
pub struct RuntimeView {
    /// Milliseconds since it started. Null if it is not running.
    uptime_ms: Option<i64>,
    /// The health the instance reports: `ok`, `degraded` or `draining`.
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

/// Returns details of an instance: config, files, channels, models and health.
#[utoipa::path(get, path = "/instances/{id}/details", tag = "observe", params(("id" = String, Path)), responses((status = 200, body = InstanceDetailsView)))]
pub async fn show_details(
    State(app): State<ControlState>,
    PathId(id): PathId,
) -> Result<Json<InstanceDetailsView>> {
    Ok(Json(InstanceDetailsView::from_details(app.control.get_details(&id).await?, &app.version)))
}

/// Lists the past turns of an instance, newest first.
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
        // The instance's response has the same format, including cursors.
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
    /// The time window. Defaults to `24h`.
    #[serde(default)]
    #[param(inline, required = false)]
    window: UsageWindow,
}

/// Usage of an instance. Unknown numbers are null, never zero.
#[derive(Serialize, ToSchema)]
pub struct InstanceUsageView {
    /// The requested time window.
    window: UsageWindow,
    /// Input tokens.
    input_tokens: Option<i64>,
    /// Output tokens.
    output_tokens: Option<i64>,
    /// Input and output tokens.
    total_tokens: Option<i64>,
    /// Cost in US dollars.
    cost_usd: Option<f64>,
    /// The number of model calls.
    request_count: i64,
    /// Calls without reported usage. The sums do not include them.
    unknown_count: i64,
    /// Whether there was any usage.
    data_available: bool,
    /// Why usage is unavailable.
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

/// Returns the model usage of an instance.
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
