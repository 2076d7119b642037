//! Details, turns and usage of an instance.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use polyclaw_api::control::observe::{
    BootstrapFileView, BuildView, InstanceDetailsView, InstanceUsageQuery, InstanceUsageView, RuntimeView,
};
use polyclaw_api::history::{ListHistoryQuery as WhichTasks, PastTurnList};
use polyclaw_api::usage::UsageWindow;
use polyclaw_control::observe::{InstanceDetails, UsageSummary};
use polyclaw_domain::budget::nanos_to_usd;
use serde_json::{Value, json};

use super::instances::instance_view;
use super::state::ControlState;
use crate::error::Result;
use crate::extract::{PathId, QueryParams};
use crate::http::history::{history_filter, past_turn_list, unavailable_history};

fn instance_details_view(details: InstanceDetails, version: &str) -> InstanceDetailsView {
    let health = details.health.unwrap_or_default();
    let part = |name: &str| details.config.get(name).cloned().unwrap_or(Value::Null);
    let models = json!({
        "default": details.config["agents"]["defaults"]["model"],
        "providers": part("providers"),
        "models": part("models"),
    });
    InstanceDetailsView {
        instance: instance_view(details.instance),
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

/// Returns details of an instance: config, files, channels, models and health.
#[utoipa::path(get, path = "/instances/{id}/details", tag = "observe", params(("id" = String, Path)), responses((status = 200, body = InstanceDetailsView)))]
pub async fn show_details(
    State(app): State<ControlState>,
    PathId(id): PathId,
) -> Result<Json<InstanceDetailsView>> {
    Ok(Json(instance_details_view(app.control.get_details(&id).await?, &app.version)))
}

/// Lists the past turns of an instance, newest first.
#[utoipa::path(get, path = "/instances/{id}/tasks", tag = "observe", params(("id" = String, Path), WhichTasks), responses((status = 200, body = PastTurnList)))]
pub async fn list_instance_tasks(
    State(app): State<ControlState>,
    PathId(id): PathId,
    RawQuery(asked): RawQuery,
    QueryParams(which): QueryParams<WhichTasks>,
) -> Result<Response> {
    let (filter, paging) = history_filter(which)?;
    let path = format!("/api/v1/history?{}", asked.unwrap_or_default());
    Ok(match app.control.fetch_unless_local(&id, &path).await? {
        // The instance's response has the same format, including cursors.
        Some(Ok(response)) => Json(response).into_response(),
        Some(Err(why)) => Json(unavailable_history(why)).into_response(),
        None => Json(match app.control.list_turns(&id, filter).await? {
            Ok(rows) => past_turn_list(rows, &paging),
            Err(why) => unavailable_history(why),
        })
        .into_response(),
    })
}

fn instance_usage_view(used: UsageSummary, window: UsageWindow) -> InstanceUsageView {
    InstanceUsageView {
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
    Ok(Json(instance_usage_view(used, which.window)))
}
