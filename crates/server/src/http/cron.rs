//! Cron jobs and heartbeats: those in the config, and jobs created at runtime.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_api::cron::{CronJobBody, CronJobList, CronJobView, CronRunResult};
use polyclaw_domain::cron_job::CronJobKind;
use polyclaw_engine::cron::CronJobStatus;
use serde_json::Value;

use crate::error::Result;
use crate::extract::{JsonBody, PathId, apply_merge_patch};
use crate::state::AppState;

fn cron_job_view(
    CronJobStatus { job, source, created_by: made_by, last_due: last, next_due: next }: CronJobStatus,
) -> CronJobView {
    CronJobView {
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
        source: source.as_str().to_owned(),
        created_by: made_by,
        last_due: last,
        next_due: next,
    }
}

/// Lists cron jobs: those of the config in their order, then the others by name.
#[utoipa::path(get, path = "/cron", tag = "agents", responses((status = 200, body = CronJobList)))]
pub async fn list_cron_jobs(State(app): State<AppState>) -> Result<Json<CronJobList>> {
    let jobs = app.engine.list_cron_jobs().await?;
    Ok(Json(CronJobList { cron: jobs.into_iter().map(cron_job_view).collect() }))
}

/// Creates a cron job in the database.
/// Its schedule starts now.
#[utoipa::path(post, path = "/cron", tag = "agents", request_body = CronJobBody, responses((status = 201, body = CronJobView)))]
pub async fn create_cron_job(
    State(app): State<AppState>,
    JsonBody(CronJobBody(job)): JsonBody<CronJobBody>,
) -> Result<(StatusCode, Json<CronJobView>)> {
    let made = app.engine.add_cron_job(job, None).await?;
    Ok((StatusCode::CREATED, Json(cron_job_view(made))))
}

/// Returns a cron job.
#[utoipa::path(get, path = "/cron/{id}", tag = "agents", params(("id" = String, Path)), responses((status = 200, body = CronJobView)))]
pub async fn show_cron_job(State(app): State<AppState>, PathId(id): PathId) -> Result<Json<CronJobView>> {
    Ok(Json(cron_job_view(app.engine.find_cron_job(&id).await?)))
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
    Ok(Json(cron_job_view(app.engine.update_cron_job(job).await?)))
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
