//! Instances: list, create, start, stop, clone, archive and delete.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use polyclaw_api::control::instances::{
    InstanceList, InstanceView, ListInstancesQuery, NewClone, NewInstance, RestartPolicyBody, StopTimeout,
    UnarchiveBody,
};
use polyclaw_api::error::ErrorBody;
use polyclaw_control::{ControlCaller, DRAIN_TIMEOUT, InstanceSnapshot, NewInstanceSpec};

use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId, QueryParams};
use crate::paging::{PagePosition, PageRequest};

/// The longest time a stop may take before the process is killed.
const MAX_DRAIN_SECONDS: u64 = 300;

pub fn instance_view(view: InstanceSnapshot) -> InstanceView {
    InstanceView {
        id: view.id.to_string(),
        name: view.name.to_string(),
        status: view.status.as_str().to_owned(),
        port: view.port,
        pid: view.pid,
        desired_state: view.desired_state.as_str().to_owned(),
        restart: view.restart.as_str().to_owned(),
        error: view.error,
        archived_at: view.archived_at,
        created_at: view.created_at,
    }
}

fn stop_timeout(given: &StopTimeout) -> Result<Duration> {
    match given.timeout {
        None => Ok(DRAIN_TIMEOUT),
        Some(seconds) if seconds <= MAX_DRAIN_SECONDS => Ok(Duration::from_secs(seconds)),
        Some(_) => {
            Err(Error::invalid_field("timeout", format!("must be at most {MAX_DRAIN_SECONDS} seconds")))
        }
    }
}

type InstanceResponse = Result<Json<InstanceView>>;

fn instance_result(view: polyclaw_control::Result<InstanceSnapshot>) -> InstanceResponse {
    Ok(Json(instance_view(view?)))
}

/// Lists instances in order of creation.
#[utoipa::path(get, path = "/instances", tag = "instances", params(ListInstancesQuery), responses((status = 200, body = InstanceList)))]
pub async fn list_instances(
    State(app): State<ControlState>,
    QueryParams(which): QueryParams<ListInstancesQuery>,
) -> Result<Json<InstanceList>> {
    let paging = PageRequest::from_query("instances", which.limit, which.cursor.as_deref())?;
    let views = app.control.list_instances(which.include_archived).await?;
    let from = match &paging.after {
        Some(place) => {
            views.iter().position(|view| view.id.as_str() == place.id).map_or(views.len(), |at| at + 1)
        }
        None => 0,
    };
    let mut page: Vec<InstanceSnapshot> = views.into_iter().skip(from).take(paging.row_limit()).collect();
    let next_cursor = paging.cut_page(&mut page, |view| PagePosition { at: 0, id: view.id.to_string() });
    Ok(Json(InstanceList { instances: page.into_iter().map(instance_view).collect(), next_cursor }))
}

/// Creates an instance without starting it.
#[utoipa::path(post, path = "/instances", tag = "instances", request_body = NewInstance, responses((status = 201, body = InstanceView)))]
pub async fn create_instance(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    JsonBody(new): JsonBody<NewInstance>,
) -> Result<(StatusCode, Json<InstanceView>)> {
    let spec = NewInstanceSpec {
        name: new.name,
        port: new.port,
        provider: new.provider,
        model: new.model,
        restart: new.restart,
    };
    let made = app.control.create_instance(&by, &spec).await?;
    Ok((StatusCode::CREATED, Json(instance_view(made))))
}

/// Returns an instance by id or name.
#[utoipa::path(get, path = "/instances/{id}", tag = "instances", params(("id" = String, Path)), responses((status = 200, body = InstanceView)))]
pub async fn show_instance(State(app): State<ControlState>, PathId(id): PathId) -> InstanceResponse {
    instance_result(app.control.get(&id).await)
}

/// Changes when the instance is restarted automatically.
#[utoipa::path(patch, path = "/instances/{id}", tag = "instances", params(("id" = String, Path)), request_body = RestartPolicyBody, responses((status = 200, body = InstanceView)))]
pub async fn update_instance(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    JsonBody(policy): JsonBody<RestartPolicyBody>,
) -> InstanceResponse {
    instance_result(app.control.set_restart_policy(&by, &id, policy.restart).await)
}

/// Starts an instance and waits until it answers.
#[utoipa::path(post, path = "/instances/{id}/start", tag = "instances", params(("id" = String, Path)), responses((status = 200, body = InstanceView), (status = 502, description = "The instance did not start", body = ErrorBody)))]
pub async fn start_instance(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
) -> InstanceResponse {
    instance_result(app.control.start_instance(&by, &id).await)
}

/// Stops an instance after running work has reached a safe point.
#[utoipa::path(post, path = "/instances/{id}/stop", tag = "instances", params(("id" = String, Path), StopTimeout), responses((status = 200, body = InstanceView)))]
pub async fn stop_instance(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    QueryParams(timeout): QueryParams<StopTimeout>,
) -> InstanceResponse {
    instance_result(app.control.stop_instance(&by, &id, stop_timeout(&timeout)?).await)
}

/// Restarts an instance, or starts it if it is not running.
#[utoipa::path(post, path = "/instances/{id}/restart", tag = "instances", params(("id" = String, Path), StopTimeout), responses((status = 200, body = InstanceView), (status = 502, description = "The instance did not start", body = ErrorBody)))]
pub async fn restart_instance(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    QueryParams(timeout): QueryParams<StopTimeout>,
) -> InstanceResponse {
    instance_result(app.control.restart_instance(&by, &id, stop_timeout(&timeout)?).await)
}

/// Stops and archives an instance.
/// Its name and port become free for others.
#[utoipa::path(post, path = "/instances/{id}/archive", tag = "instances", params(("id" = String, Path), StopTimeout), responses((status = 200, body = InstanceView)))]
pub async fn archive_instance(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    QueryParams(timeout): QueryParams<StopTimeout>,
) -> InstanceResponse {
    instance_result(app.control.archive_instance(&by, &id, stop_timeout(&timeout)?).await)
}

/// Restores an archived instance.
/// It gets the requested port, else its previous one, or a free one if that is taken.
#[utoipa::path(post, path = "/instances/{id}/unarchive", tag = "instances", params(("id" = String, Path)), request_body = Option<UnarchiveBody>, responses((status = 200, body = InstanceView)))]
pub async fn unarchive_instance(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    JsonBody(wanted): JsonBody<UnarchiveBody>,
) -> InstanceResponse {
    instance_result(app.control.unarchive_instance(&by, &id, wanted.port).await)
}

/// Creates an instance with the same config, files and secrets, but without the conversations.
#[utoipa::path(post, path = "/instances/{id}/clone", tag = "instances", params(("id" = String, Path)), request_body = NewClone, responses((status = 201, body = InstanceView)))]
pub async fn clone_instance(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    JsonBody(wanted): JsonBody<NewClone>,
) -> Result<(StatusCode, Json<InstanceView>)> {
    let made = app.control.clone_instance(&by, &id, &wanted.new_name, wanted.port).await?;
    Ok((StatusCode::CREATED, Json(instance_view(made))))
}

/// Deletes an archived instance with all its data.
#[utoipa::path(delete, path = "/instances/{id}", tag = "instances", params(("id" = String, Path)), responses((status = 204)))]
pub async fn delete_instance(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
) -> Result<StatusCode> {
    app.control.delete_instance(&by, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
