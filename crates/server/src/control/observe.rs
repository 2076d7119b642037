//! What an instance is and does.

use axum::Json;
use axum::extract::State;
use polyclaw_control::observe::{Details, Used};
use polyclaw_domain::budget::usd;
use polyclaw_domain::job::JobState;
use polyclaw_domain::time::Millis;
use polyclaw_store::history::{Filter, Past};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::instances::InstanceView;
use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{Id, Query};
use crate::http::usage::Window;
use crate::paging::{Paging, Place};

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
    /// Below the workspace.
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

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhichTasks {
    #[param(minimum = 1)]
    limit: Option<usize>,
    cursor: Option<String>,
    /// `queued`, `running`, `done`, `failed`, `cancelled` or `steered`.
    status: Option<String>,
    channel: Option<String>,
    /// Queued at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Millis>,
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<Millis>,
}

#[derive(Serialize, ToSchema)]
pub struct PastTurns {
    tasks: Vec<TaskView>,
    next_cursor: Option<String>,
    data_available: bool,
    /// Why there is nothing to be known.
    message: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = PastTurn)]
pub struct TaskView {
    id: String,
    session_key: String,
    agent_id: String,
    channel: Option<String>,
    status: &'static str,
    /// How the message began.
    summary: Option<String>,
    /// How the reply began, or what went wrong.
    outcome: Option<String>,
    error_code: Option<String>,
    model: Option<String>,
    duration_ms: Option<i64>,
    /// Follows one message through every turn it caused.
    trace_id: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

impl From<Past> for TaskView {
    fn from(past: Past) -> Self {
        let duration_ms = past.started_at.zip(past.ended_at).map(|(from, to)| to.since(from));
        Self {
            id: past.turn,
            session_key: past.session,
            agent_id: past.agent,
            channel: past.channel,
            status: past.state.as_str(),
            summary: past.asked,
            outcome: past.error.or(past.replied),
            error_code: past.error_code,
            model: past.model,
            duration_ms,
            trace_id: past.trace,
            created_at: past.queued_at,
        }
    }
}

/// What an instance did last, the newest first.
#[utoipa::path(get, path = "/instances/{id}/tasks", tag = "observe", params(("id" = String, Path), WhichTasks), responses((status = 200, body = PastTurns)))]
pub async fn tasks(
    State(app): State<ControlState>,
    Id(id): Id,
    Query(which): Query<WhichTasks>,
) -> Result<Json<PastTurns>> {
    let paging = Paging::of("tasks", which.limit.or(Some(20)), which.cursor.as_deref())?;
    let state = match which.status.as_deref() {
        Some(word) => Some(JobState::parse(word).ok_or_else(|| Error::invalid("status", "no such state"))?),
        None => None,
    };
    let filter = Filter {
        state,
        channel: which.channel,
        after: which.after,
        before: which.before,
        behind: paging.after.clone().map(|place| (Millis(place.at), place.id)),
        limit: paging.wanted(),
    };
    Ok(Json(match app.control.tasks(&id, filter).await? {
        Err(why) => {
            PastTurns { tasks: Vec::new(), next_cursor: None, data_available: false, message: Some(why) }
        }
        Ok(mut rows) => {
            let next_cursor =
                paging.cut(&mut rows, |past| Place { at: past.queued_at.0, id: past.turn.clone() });
            let tasks = rows.into_iter().map(TaskView::from).collect();
            PastTurns { tasks, next_cursor, data_available: true, message: None }
        }
    }))
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
            cost_usd: used.cost_nanos.map(usd),
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
    let since = app.control.now().minus(which.window.millis());
    Ok(Json(UsageView::of(app.control.usage(&id, since).await?, which.window)))
}
