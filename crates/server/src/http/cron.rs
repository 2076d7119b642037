//! What agents do at set times: jobs and heartbeats of the config, and jobs made while the instance runs.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::config::{CatchUp, CronJobConfig as Job};
use polyclaw_domain::cron_job::CronJobKind;
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_engine::cron::CronJobStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::error::Result;
use crate::extract::{JsonBody, PathId, apply_merge_patch};
use crate::http::document;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct CronJobList {
    cron: Vec<CronJobView>,
}

#[derive(Serialize, ToSchema)]
pub struct CronJobView {
    id: String,
    /// A cron expression, `every 10m` or `at 2026-12-01 09:00`.
    schedule: String,
    /// Null is UTC.
    timezone: Option<String>,
    #[schema(value_type = String)]
    agent_id: AgentId,
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// What the agent is told; null is a heartbeat.
    message: Option<String>,
    /// Null where the answer is kept in the conversation only.
    #[schema(value_type = Option<Object>)]
    deliver_to: Option<ChatAddress>,
    /// `skip` or `once`.
    #[schema(value_type = String)]
    catch_up: CatchUp,
    /// Whether it comes by itself.
    enabled: bool,
    /// `config`: the file has it, and only there it is changed. `api`: the database has it.
    source: &'static str,
    /// The agent that made it; null where a person did.
    #[schema(value_type = Option<String>)]
    created_by: Option<AgentId>,
    /// The last due time that was run or left out; null where there was none yet.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_due: Option<Millis>,
    /// Null where it never comes again, or not by itself.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_due: Option<Millis>,
}

impl From<CronJobStatus> for CronJobView {
    fn from(
        CronJobStatus { job, source, created_by: made_by, last_due: last, next_due: next }: CronJobStatus,
    ) -> Self {
        Self {
            id: job.id,
            schedule: job.written,
            timezone: job.timezone,
            agent_id: job.agent,
            session_key: job.session,
            message: match job.kind {
                CronJobKind::Message(text) => Some(text),
                CronJobKind::Heartbeat => None,
            },
            deliver_to: job.address,
            catch_up: job.catch_up,
            enabled: job.enabled,
            source: source.as_str(),
            created_by: made_by,
            last_due: last,
            next_due: next,
        }
    }
}

/// A job as `[[cron]]` has it; its schema is that of the domain's own type.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct CronJobBody(Job);

impl PartialSchema for CronJobBody {
    fn schema() -> RefOr<Schema> {
        document::schema_of::<Job>()
    }
}

impl ToSchema for CronJobBody {
    fn name() -> std::borrow::Cow<'static, str> {
        "Job".into()
    }
}

#[derive(Serialize, ToSchema)]
pub struct CronRunResult {
    /// Null where there is nothing to do: a heartbeat of an agent without a task, or that is busy.
    #[schema(value_type = Option<String>)]
    session_key: Option<SessionKey>,
    #[schema(value_type = Option<String>)]
    turn_id: Option<TurnId>,
}

/// Those of the config in its order, then the others by name.
#[utoipa::path(get, path = "/cron", tag = "agents", responses((status = 200, body = CronJobList)))]
pub async fn list_cron_jobs(State(app): State<AppState>) -> Result<Json<CronJobList>> {
    let jobs = app.engine.list_cron_jobs().await?;
    Ok(Json(CronJobList { cron: jobs.into_iter().map(CronJobView::from).collect() }))
}

/// A job that is kept in the database. It begins from now.
#[utoipa::path(post, path = "/cron", tag = "agents", request_body = CronJobBody, responses((status = 201, body = CronJobView)))]
pub async fn create_cron_job(
    State(app): State<AppState>,
    JsonBody(CronJobBody(job)): JsonBody<CronJobBody>,
) -> Result<(StatusCode, Json<CronJobView>)> {
    let made = app.engine.add_cron_job(job, None).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

#[utoipa::path(get, path = "/cron/{id}", tag = "agents", params(("id" = String, Path)), responses((status = 200, body = CronJobView)))]
pub async fn show_cron_job(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<CronJobView>> {
    Ok(Json(app.engine.find_cron_job(&id).await?.into()))
}

/// A JSON merge patch: named fields are set, null removes one. One of the config is changed there alone.
#[utoipa::path(patch, path = "/cron/{id}", tag = "agents", params(("id" = String, Path)), request_body = Object, responses((status = 200, body = CronJobView)))]
pub async fn update_cron_job(
    State(app): State<AppState>,
    PathId(id): PathId,
    JsonBody(patch): JsonBody<Value>,
) -> Result<Json<CronJobView>> {
    let stored = app.engine.find_runtime_cron_job(&id).await?;
    let job = apply_merge_patch(&stored.job, "id", patch)?;
    Ok(Json(app.engine.update_cron_job(job).await?.into()))
}

/// Its conversation stays readable.
#[utoipa::path(delete, path = "/cron/{id}", tag = "agents", params(("id" = String, Path)), responses((status = 204)))]
pub async fn delete_cron_job(State(app): State<AppState>, PathId(id): PathId) -> Result<StatusCode> {
    app.engine.remove_cron_job(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Runs one now, beside its schedule.
#[utoipa::path(
    post, path = "/cron/{id}/run", tag = "agents",
    params(("id" = String, Path, description = "as `GET /cron` lists it")),
    responses((status = 200, body = CronRunResult)),
)]
pub async fn run_cron_job(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<CronRunResult>> {
    let accepted = app.engine.run_cron_job(&id).await?;
    let (session_key, turn_id) = accepted.map(|started| (started.session_key, started.turn_id)).unzip();
    Ok(Json(CronRunResult { session_key, turn_id }))
}
