//! Imports from other programs.

use std::path::PathBuf;

use axum::extract::State;
use axum::{Extension, Json};
use polyclaw_control::ControlCaller;
use polyclaw_control::import::{HomeImportReport, ImportOutcome, ImportRequest};
use polyclaw_domain::openclaw::TranslationNote;
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::imports::StoredImport;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::instances::InstanceView;
use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, QueryParams};
use crate::paging::{PagePosition, PageQuery};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewImport {
    /// The absolute path of an `openclaw.json` on the machine of the control plane, or of its folder.
    path: String,
    /// Only report what would be imported and change nothing.
    #[serde(default)]
    #[schema(required = false)]
    dry_run: bool,
    /// Move plain-text secrets to the instance's secret store.
    #[serde(default)]
    #[schema(required = false)]
    with_secrets: bool,
    /// Also copy workspaces outside the config's folder.
    #[serde(default)]
    #[schema(required = false)]
    allow_outside: bool,
    /// The name of the instance. Defaults to the name of the folder.
    name: Option<String>,
    /// The port of the instance. Defaults to the first free port from 18801.
    port: Option<u16>,
}

/// A remark about a key of the source config.
#[derive(Serialize, ToSchema)]
pub struct ImportNote {
    /// The path of the key.
    path: String,
    /// What it is about.
    reason: String,
}

fn note_views(notes: Vec<TranslationNote>) -> Vec<ImportNote> {
    notes.into_iter().map(|note| ImportNote { path: note.path, reason: note.reason }).collect()
}

#[derive(Serialize, ToSchema)]
pub struct ImportReport {
    /// The name of the instance.
    name: String,
    /// The imported agents.
    agents: Vec<String>,
    /// The imported model providers.
    providers: Vec<String>,
    /// The imported chat accounts as `channel:account`.
    channels: Vec<String>,
    /// The number of bindings.
    bindings: usize,
    /// The number of cron jobs.
    schedules: usize,
    /// The number of workspaces.
    workspaces: usize,
    /// Each copied folder with its destination.
    folders: Vec<String>,
    /// The number of conversations.
    sessions: usize,
    /// The number of messages in them.
    messages: usize,
    /// The names under which secrets are stored.
    secrets: Vec<String>,
    /// Keys that have no effect in Polyclaw.
    ignored: Vec<ImportNote>,
    /// Keys with a different meaning in Polyclaw.
    changed: Vec<ImportNote>,
    /// Secrets that were not imported, and what needs them.
    left: Vec<ImportNote>,
}

impl From<HomeImportReport> for ImportReport {
    fn from(report: HomeImportReport) -> Self {
        Self {
            name: report.name,
            agents: report.agents,
            providers: report.providers,
            channels: report.channels,
            bindings: report.bindings,
            schedules: report.schedules,
            workspaces: report.workspaces,
            folders: report.folders,
            sessions: report.sessions,
            messages: report.messages,
            secrets: report.secrets,
            ignored: note_views(report.notes.ignored),
            changed: note_views(report.notes.changed),
            left: note_views(report.notes.left),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ImportResult {
    /// The id of the import. Null for a dry run.
    run: Option<String>,
    /// The new instance. Null for a dry run.
    instance: Option<InstanceView>,
    /// Whether the same source was imported before, so that nothing was changed.
    already: bool,
    /// What was found and imported.
    report: ImportReport,
}

impl From<ImportOutcome> for ImportResult {
    fn from(outcome: ImportOutcome) -> Self {
        Self {
            run: outcome.run,
            instance: outcome.instance.map(InstanceView::from),
            already: outcome.already,
            report: outcome.report.into(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ImportRuns {
    /// The imports of this page.
    runs: Vec<ImportRun>,
    /// The cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct ImportRun {
    /// The id of the import.
    id: String,
    /// The path of the imported config.
    source: String,
    /// `running`, `done` or `rolled_back`.
    state: &'static str,
    /// The imported instance, if it still exists.
    instance_id: Option<String>,
    /// When the import started.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When the import ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Millis>,
}

impl From<StoredImport> for ImportRun {
    fn from(run: StoredImport) -> Self {
        Self {
            id: run.id,
            source: run.source,
            state: run.state.as_str(),
            instance_id: run.instance.map(|id| id.to_string()),
            created_at: run.created_at,
            ended_at: run.ended_at,
        }
    }
}

/// Lists imports, newest first.
#[utoipa::path(get, path = "/import/runs", tag = "import", params(PageQuery), responses((status = 200, body = ImportRuns)))]
pub async fn list_imports(
    State(app): State<ControlState>,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<ImportRuns>> {
    let paging = page.to_request("imports")?;
    let behind = paging.after.clone().map(|place| (Millis(place.at), place.id));
    let mut found = app.control.list_imports(behind, paging.row_limit()).await?;
    let next_cursor =
        paging.cut_page(&mut found, |run| PagePosition { at: run.created_at.0, id: run.id.clone() });
    Ok(Json(ImportRuns { runs: found.into_iter().map(ImportRun::from).collect(), next_cursor }))
}

/// Imports an OpenClaw home as a new instance.
/// The import succeeds completely or changes nothing. Importing the same source again changes nothing.
#[utoipa::path(post, path = "/import/openclaw", tag = "import", request_body = NewImport, responses((status = 200, body = ImportResult)))]
pub async fn import_openclaw(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    JsonBody(new): JsonBody<NewImport>,
) -> Result<Json<ImportResult>> {
    let path = PathBuf::from(&new.path);
    if !path.is_absolute() || new.path.contains('\0') {
        return Err(Error::invalid_field("path", "must be absolute"));
    }
    let NewImport { dry_run, with_secrets, allow_outside, name, port, .. } = new;
    let order = ImportRequest { path, name, port, dry_run, with_secrets, allow_outside };
    Ok(Json(app.control.import_home(&by, order).await?.into()))
}
