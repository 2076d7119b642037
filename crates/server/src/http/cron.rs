//! Cron jobs and heartbeats: those in the config, and jobs created at runtime.

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
    /// All cron jobs.
    cron: Vec<CronJobView>,
}

#[derive(Serialize, ToSchema)]
pub struct CronJobView {
    /// The name of the job.
    id: String,
    /// When the job runs: a cron expression, `every 10m` or `at 2026-12-01 09:00`.
    schedule: String,
    /// The time zone of the schedule, such as `Europe/Berlin`. Null means UTC.
    timezone: Option<String>,
    /// The agent that the job runs for.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// The session that the job runs in.
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The message the agent gets. Null for a heartbeat.
    message: Option<String>,
    /// The conversation that the answer is sent to. Null if it only stays in the session.
    #[schema(value_type = Option<Object>)]
    deliver_to: Option<ChatAddress>,
    /// How missed runs are handled: `skip` drops them, `once` makes up for all of them with one run.
    #[schema(value_type = String)]
    catch_up: CatchUp,
    /// Whether the job runs on its schedule.
    enabled: bool,
    /// Where the job is defined. `config`: the config file, where it must also be changed. `api`: the database.
    source: &'static str,
    /// The agent that created the job. Null if a person did.
    #[schema(value_type = Option<String>)]
    created_by: Option<AgentId>,
    /// The last scheduled time that was run or skipped. Null if there was none.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_due: Option<Millis>,
    /// The next scheduled time. Null if there is none or the job is disabled.
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

/// A job as in `[[cron]]`. Its schema is that of the domain type.
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
    /// The session of the started turn. Null if there was nothing to do, as for a heartbeat of an agent that has no
    /// task or is busy.
    #[schema(value_type = Option<String>)]
    session_key: Option<SessionKey>,
    /// The started turn. Null if there was nothing to do.
    #[schema(value_type = Option<String>)]
    turn_id: Option<TurnId>,
}

/// Lists cron jobs: those of the config in their order, then the others by name.
#[utoipa::path(get, path = "/cron", tag = "agents", responses((status = 200, body = CronJobList)))]
pub async fn list_cron_jobs(State(app): State<AppState>) -> Result<Json<CronJobList>> {
    let jobs = app.engine.list_cron_jobs().await?;
    Ok(Json(CronJobList { cron: jobs.into_iter().map(CronJobView::from).collect() }))
}

/// Creates a cron job in the database.
/// Its schedule starts now.
#[utoipa::path(post, path = "/cron", tag = "agents", request_body = CronJobBody, responses((status = 201, body = CronJobView)))]
pub async fn create_cron_job(
    State(app): State<AppState>,
    JsonBody(CronJobBody(job)): JsonBody<CronJobBody>,
) -> Result<(StatusCode, Json<CronJobView>)> {
    let made = app.engine.add_cron_job(job, None).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// Returns a cron job.
#[utoipa::path(get, path = "/cron/{id}", tag = "agents", params(("id" = String, Path)), responses((status = 200, body = CronJobView)))]
pub async fn show_cron_job(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<CronJobView>> {
    Ok(Json(app.engine.find_cron_job(&id).await?.into()))
}

/// Changes a cron job with a JSON merge patch.
/// Named fields are set, null removes one. Jobs of the config can only be changed there.
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

/// Deletes a cron job.
/// Its conversation stays readable.
#[utoipa::path(delete, path = "/cron/{id}", tag = "agents", params(("id" = String, Path)), responses((status = 204)))]
pub async fn delete_cron_job(State(app): State<AppState>, PathId(id): PathId) -> Result<StatusCode> {
    app.engine.remove_cron_job(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Runs a job now, in addition to its schedule.
#[utoipa::path(
    post, path = "/cron/{id}/run", tag = "agents",
    params(("id" = String, Path, description = "ID of the job, as `GET /cron` lists it")),
    responses((status = 200, body = CronRunResult)),
)]
pub async fn run_cron_job(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<CronRunResult>> {
    let accepted = app.engine.run_cron_job(&id).await?;
    let (session_key, turn_id) = accepted.map(|started| (started.session_key, started.turn_id)).unzip();
    Ok(Json(CronRunResult { session_key, turn_id }))
}
