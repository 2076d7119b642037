//! Instances: list, create, start, stop, clone, archive and delete.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use polyclaw_control::{ControlCaller, DRAIN_TIMEOUT, InstanceSnapshot, NewInstanceSpec};
use polyclaw_domain::instance::RestartPolicy;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId, QueryParams};
use crate::paging::{PagePosition, PageRequest};

/// The longest time a stop may take before the process is killed.
const MAX_DRAIN_SECONDS: u64 = 300;

#[derive(Clone, Serialize, ToSchema)]
#[schema(as = Instance)]
pub struct InstanceView {
    /// The id of the instance.
    id: String,
    /// The name of the instance.
    name: String,
    /// The current status: `running`, `unresponsive`, `starting`, `restarting`, `stopped`, `crashed`, `stale-pid`,
    /// `unknown`, `error` or `archived`.
    status: &'static str,
    /// The port that the instance listens on.
    port: u16,
    /// The process id, if it is running.
    pid: Option<i32>,
    /// The last requested state: `running` or `stopped`.
    desired_state: &'static str,
    /// When the instance is restarted automatically: `never`, `on-failure` or `always`.
    restart: &'static str,
    /// Why the instance does not run although it should, or that it does not answer.
    error: Option<String>,
    /// When the instance was archived. Null if it is active.
    #[schema(value_type = Option<String>, format = DateTime)]
    archived_at: Option<Millis>,
    /// When the instance was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

impl From<InstanceSnapshot> for InstanceView {
    fn from(view: InstanceSnapshot) -> Self {
        Self {
            id: view.id.to_string(),
            name: view.name.to_string(),
            status: view.status.as_str(),
            port: view.port,
            pid: view.pid,
            desired_state: view.desired_state.as_str(),
            restart: view.restart.as_str(),
            error: view.error,
            archived_at: view.archived_at,
            created_at: view.created_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct InstanceList {
    /// The instances of this page.
    instances: Vec<InstanceView>,
    /// The cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListInstancesQuery {
    /// Include archived instances, after the active ones.
    #[serde(default)]
    #[param(required = false)]
    include_archived: bool,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInstance {
    /// The name: letters, digits and hyphens.
    #[schema(pattern = "^[a-zA-Z0-9][a-zA-Z0-9-]{0,63}$")]
    name: String,
    /// The port. Defaults to the first free port from 18801.
    port: Option<u16>,
    /// The model provider to configure, such as `openai`.
    provider: Option<String>,
    /// The default model of its agents.
    model: Option<String>,
    /// When the instance is restarted automatically: `never`, `on-failure` (default) or `always`.
    #[schema(value_type = Option<String>, pattern = "^(never|on-failure|always)$")]
    restart: Option<RestartPolicy>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClone {
    /// The name of the clone: letters, digits and hyphens.
    #[schema(pattern = "^[a-zA-Z0-9][a-zA-Z0-9-]{0,63}$")]
    new_name: String,
    /// The port of the clone. Defaults to the first free port from 18801.
    port: Option<u16>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UnarchiveBody {
    /// The port. Defaults to the previous port, or a free one if that is taken.
    port: Option<u16>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestartPolicyBody {
    /// When the instance is restarted automatically: `never`, `on-failure` or `always`.
    #[schema(value_type = String, pattern = "^(never|on-failure|always)$")]
    restart: RestartPolicy,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StopTimeout {
    /// How many seconds running work may take to reach a safe point before the process is killed. Default 30.
    #[param(maximum = 300)]
    timeout: Option<u64>,
}

impl StopTimeout {
    fn duration(&self) -> Result<Duration> {
        match self.timeout {
            None => Ok(DRAIN_TIMEOUT),
            Some(seconds) if seconds <= MAX_DRAIN_SECONDS => Ok(Duration::from_secs(seconds)),
            Some(_) => {
                Err(Error::invalid_field("timeout", format!("must be at most {MAX_DRAIN_SECONDS} seconds")))
            }
        }
    }
}

type InstanceResponse = Result<Json<InstanceView>>;

fn instance_result(view: polyclaw_control::Result<InstanceSnapshot>) -> InstanceResponse {
    Ok(Json(view?.into()))
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
    Ok(Json(InstanceList { instances: page.into_iter().map(InstanceView::from).collect(), next_cursor }))
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
    Ok((StatusCode::CREATED, Json(made.into())))
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
#[utoipa::path(post, path = "/instances/{id}/start", tag = "instances", params(("id" = String, Path)), responses((status = 200, body = InstanceView), (status = 502, description = "The instance did not start", body = crate::error::ErrorBody)))]
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
    instance_result(app.control.stop_instance(&by, &id, timeout.duration()?).await)
}

/// Restarts an instance, or starts it if it is not running.
#[utoipa::path(post, path = "/instances/{id}/restart", tag = "instances", params(("id" = String, Path), StopTimeout), responses((status = 200, body = InstanceView), (status = 502, description = "The instance did not start", body = crate::error::ErrorBody)))]
pub async fn restart_instance(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    QueryParams(timeout): QueryParams<StopTimeout>,
) -> InstanceResponse {
    instance_result(app.control.restart_instance(&by, &id, timeout.duration()?).await)
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
    instance_result(app.control.archive_instance(&by, &id, timeout.duration()?).await)
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
    Ok((StatusCode::CREATED, Json(made.into())))
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
