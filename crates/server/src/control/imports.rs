//! What is brought in from other programs.

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
    /// An openclaw.json on the machine of the control plane, or the folder it is in; absolute.
    path: String,
    /// Nothing is changed: the report says what would be.
    #[serde(default)]
    #[schema(required = false)]
    dry_run: bool,
    /// Secrets that stand there in the open are kept in the instance's store of secrets.
    #[serde(default)]
    #[schema(required = false)]
    with_secrets: bool,
    /// Workspaces that are not in the folder of the config are copied too.
    #[serde(default)]
    #[schema(required = false)]
    allow_outside: bool,
    /// What the instance is called; the folder's name if not given.
    name: Option<String>,
    /// The first free one from 18801 on if not given.
    port: Option<u16>,
}

/// A place in the other files, and a sentence about it.
#[derive(Serialize, ToSchema)]
pub struct ImportNote {
    path: String,
    reason: String,
}

fn note_views(notes: Vec<TranslationNote>) -> Vec<ImportNote> {
    notes.into_iter().map(|note| ImportNote { path: note.path, reason: note.reason }).collect()
}

#[derive(Serialize, ToSchema)]
pub struct ImportReport {
    /// What the instance is called.
    name: String,
    agents: Vec<String>,
    providers: Vec<String>,
    /// As `channel:account`.
    channels: Vec<String>,
    bindings: usize,
    schedules: usize,
    workspaces: usize,
    /// Each folder that is copied, and where to.
    folders: Vec<String>,
    sessions: usize,
    messages: usize,
    /// The names under which secrets are kept.
    secrets: Vec<String>,
    /// Keys that have no effect here.
    ignored: Vec<ImportNote>,
    /// Keys that mean something else here than they did there.
    changed: Vec<ImportNote>,
    /// Secrets that stay where they are, and what waits for them.
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
    /// The run, as it is recorded; none for a dry run.
    run: Option<String>,
    instance: Option<InstanceView>,
    /// The same was brought in before: nothing was changed.
    already: bool,
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
    runs: Vec<ImportRun>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct ImportRun {
    id: String,
    source: String,
    /// `begun`, `done` or `undone`.
    state: &'static str,
    instance_id: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
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

/// The runs, the newest first.
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

/// Makes an instance of the home of an OpenClaw gateway: all of it or nothing. The same again changes nothing.
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
