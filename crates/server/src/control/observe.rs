//! What an instance is and does.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use polyclaw_control::observe::{Details, Used};
use polyclaw_domain::budget::nanos_to_usd;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::instances::InstanceView;
use super::state::ControlState;
use crate::error::Result;
use crate::extract::{Id, Query};
use crate::http::history::{PastTurns, Which as WhichTasks};
use crate::http::usage::Window;

#[derive(Serialize, ToSchema)]
pub struct DetailsView {
    instance: InstanceView,
    build: Build,
    /// In force, defaults included, secrets hidden; null where the file can not be read.
    #[schema(value_type = Object)]
    config: Value,
    config_error: Option<String>,
    /// The files that tell agents who they are.
    persona: Vec<PersonaView>,
    /// The accounts of each channel.
    #[schema(value_type = Object)]
    channels: Value,
    #[schema(value_type = Object)]
    models: Value,
    runtime: Runtime,
}

#[derive(Serialize, ToSchema)]
pub struct Build {
    /// Of the control plane, which is the program it starts instances with.
    control_plane: String,
    /// Of the running instance; null where it does not run.
    instance: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct PersonaView {
    /// Below the workspace, or absolute.
    file: String,
    bytes: u64,
}

#[derive(Serialize, ToSchema)]
pub struct Runtime {
    uptime_ms: Option<i64>,
    /// The instance's own word: `ok`, `degraded` or `draining`.
    health: Option<String>,
}

impl DetailsView {
    fn of(details: Details, version: &str) -> Self {
        let health = details.health.unwrap_or_default();
        let part = |name: &str| details.config.get(name).cloned().unwrap_or(Value::Null);
        let models = json!({
            "default": details.config["agents"]["defaults"]["model"],
            "providers": part("providers"),
            "models": part("models"),
        });
        Self {
            instance: details.instance.into(),
            build: Build {
                control_plane: version.to_owned(),
                instance: health["version"].as_str().map(str::to_owned),
            },
            channels: part("channels"),
            models,
            config: details.config,
            config_error: details.config_error,
            persona: details
                .persona
                .into_iter()
                .map(|one| PersonaView { file: one.file, bytes: one.bytes })
                .collect(),
            runtime: Runtime {
                uptime_ms: health["uptime_ms"].as_i64(),
                health: health["status"].as_str().map(str::to_owned),
            },
        }
    }
}

/// All there is to know about an instance.
#[utoipa::path(get, path = "/instances/{id}/details", tag = "observe", params(("id" = String, Path)), responses((status = 200, body = DetailsView)))]
pub async fn details(State(app): State<ControlState>, Id(id): Id) -> Result<Json<DetailsView>> {
    Ok(Json(DetailsView::of(app.control.details(&id).await?, &app.version)))
}

/// What an instance did last, the newest first.
#[utoipa::path(get, path = "/instances/{id}/tasks", tag = "observe", params(("id" = String, Path), WhichTasks), responses((status = 200, body = PastTurns)))]
pub async fn tasks(
    State(app): State<ControlState>,
    Id(id): Id,
    RawQuery(asked): RawQuery,
    Query(which): Query<WhichTasks>,
) -> Result<Response> {
    let (filter, paging) = which.read()?;
    let path = format!("/api/v1/history?{}", asked.unwrap_or_default());
    Ok(match app.control.told(&id, &path).await? {
        // Its own words have the same shape, cursors included.
        Some(Ok(told)) => Json(told).into_response(),
        Some(Err(why)) => Json(PastTurns::unknown(why)).into_response(),
        None => Json(match app.control.tasks(&id, filter).await? {
            Ok(rows) => PastTurns::of(rows, &paging),
            Err(why) => PastTurns::unknown(why),
        })
        .into_response(),
    })
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhichUsage {
    /// `24h` if not given.
    #[serde(default)]
    #[param(inline, required = false)]
    window: Window,
}

/// Null where nothing is known: never a zero that nobody counted.
#[derive(Serialize, ToSchema)]
pub struct UsageView {
    window: Window,
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

impl UsageView {
    fn of(used: Used, window: Window) -> Self {
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
#[utoipa::path(get, path = "/instances/{id}/usage", tag = "observe", params(("id" = String, Path), WhichUsage), responses((status = 200, body = UsageView)))]
pub async fn usage(
    State(app): State<ControlState>,
    Id(id): Id,
    Query(which): Query<WhichUsage>,
) -> Result<Json<UsageView>> {
    let window = serde_json::to_value(which.window).unwrap_or_default();
    let path = format!("/api/v1/usage?window={}", window.as_str().unwrap_or_default());
    let since = app.control.now().minus(which.window.millis());
    let used = app.control.usage(&id, since, &path).await?;
    Ok(Json(UsageView::of(used, which.window)))
}
