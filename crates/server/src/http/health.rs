//! Liveness and readiness. Both need no token, because they reveal nothing sensitive.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use polyclaw_api::health::{HealthView, ReadinessView, StoreHealth, TaskHealth};
use polyclaw_engine::BackgroundTaskState;
use polyclaw_store::{Error as Fault, jobs};

use crate::error::{Error, Result};
use crate::state::AppState;

/// A database that does not answer a read within this time counts as unavailable.
const STORE_CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the health of the instance.
#[utoipa::path(get, path = "/health", tag = "instance", security(()), responses((status = 200, body = HealthView)))]
pub async fn show_health(State(app): State<AppState>) -> Json<HealthView> {
    let store = store_status(&app).await;
    let tasks = app.engine.background_task_states();
    let working = tasks.iter().all(is_working);
    let status = match (app.engine.is_draining(), store == "ok" && working) {
        (true, _) => "draining",
        (false, true) => "ok",
        (false, false) => "degraded",
    };
    Json(HealthView {
        status: status.to_owned(),
        version: app.version.clone(),
        uptime_ms: app.engine.now().since(app.started),
        store: StoreHealth { engine: app.engine.db().engine_name().to_owned(), status: store.to_owned() },
        channels: app.engine.channel_names().into_iter().map(str::to_owned).collect(),
        tasks: tasks.into_iter().map(task_health).collect(),
    })
}

fn task_health(task: BackgroundTaskState) -> TaskHealth {
    let (name, state) = (task.task.name().to_owned(), task.state.to_owned());
    TaskHealth { task: name, state, restarts: task.restarts }
}

/// Returns whether the instance accepts and answers messages.
#[utoipa::path(get, path = "/ready", tag = "instance", security(()), responses((status = 200, body = ReadinessView)))]
pub async fn show_readiness(State(app): State<AppState>) -> Result<Json<ReadinessView>> {
    if app.engine.is_draining() {
        return Err(Error::NotReady("shutting down"));
    }
    // Checked first, because restarting loops are often only a symptom of this.
    check_database_files(&app)?;
    if !is_store_reachable(&app).await {
        check_database_files(&app)?;
        return Err(Error::NotReady("the database does not respond"));
    }
    check_writes(&app).await.map_err(|fault| Error::NotReady(fault_reason(&fault)))?;
    if !app.engine.background_task_states().iter().all(is_working) {
        return Err(Error::NotReady("a background loop is restarting"));
    }
    Ok(Json(ReadinessView { ready: true }))
}

/// Reports database faults that only a person can fix.
fn check_database_files(app: &AppState) -> Result<()> {
    let db = app.engine.db();
    if let Err(fault) = db.check_files() {
        return Err(Error::StoreNotReady { code: fault.code(), reason: fault_reason(&fault) });
    }
    if db.is_corrupt() {
        let reason = "the database is damaged: stop the instance and restore a backup";
        return Err(Error::StoreNotReady { code: "store_corrupt", reason });
    }
    Ok(())
}

/// Whether a loop works. The listener loop is stopped if there can be no other node.
fn is_working(task: &BackgroundTaskState) -> bool {
    task.state != "restarting"
}

async fn is_store_reachable(app: &AppState) -> bool {
    let looked = tokio::time::timeout(STORE_CHECK_TIMEOUT, app.engine.db().read(jobs::count_by_state)).await;
    matches!(looked, Ok(Ok(_)))
}

async fn store_status(app: &AppState) -> &'static str {
    let is_reachable = is_store_reachable(app).await;
    if let Err(error) = check_database_files(app) {
        return error.store_code();
    }
    if !is_reachable {
        return "unavailable";
    }
    check_writes(app).await.map_or_else(|fault| fault.code(), |()| "ok")
}

/// Checks that writes work. Cheap as long as they do.
async fn check_writes(app: &AppState) -> std::result::Result<(), Fault> {
    let tried = tokio::time::timeout(STORE_CHECK_TIMEOUT, app.engine.db().check_writes()).await;
    tried.unwrap_or_else(|_| Err(Fault::Collided("a write timed out".into())))
}

fn fault_reason(fault: &Fault) -> &'static str {
    match fault {
        Fault::Full(_) => "the disk is full: no message can be stored",
        Fault::FilesReplaced(_) => {
            "the database's files were removed or replaced: no message can be stored; restart the instance"
        }
        Fault::ReadOnly(_) => "the database is not writable: no message can be stored",
        _ => "the database rejects writes: no message can be stored",
    }
}
