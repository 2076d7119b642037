//! Imports from other programs.

use std::path::PathBuf;

use axum::extract::State;
use axum::{Extension, Json};
use polyclaw_api::control::imports::{
    ImportNote, ImportReport, ImportResult, ImportRun, ImportRuns, NewImport,
};
use polyclaw_api::paging::PageQuery;
use polyclaw_control::ControlCaller;
use polyclaw_control::import::{HomeImportReport, ImportOutcome, ImportRequest};
use polyclaw_domain::openclaw::TranslationNote;
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::imports::StoredImport;

use super::instances::instance_view;
use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, QueryParams};
use crate::paging::{PagePosition, PageRequest};

fn note_views(notes: Vec<TranslationNote>) -> Vec<ImportNote> {
    notes.into_iter().map(|note| ImportNote { path: note.path, reason: note.reason }).collect()
}

fn import_report(report: HomeImportReport) -> ImportReport {
    ImportReport {
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

pub fn import_result(outcome: ImportOutcome) -> ImportResult {
    ImportResult {
        run: outcome.run,
        instance: outcome.instance.map(instance_view),
        already: outcome.already,
        report: import_report(outcome.report),
    }
}

fn import_run(run: StoredImport) -> ImportRun {
    ImportRun {
        id: run.id,
        source: run.source,
        state: run.state.as_str().to_owned(),
        instance_id: run.instance.map(|id| id.to_string()),
        created_at: run.created_at,
        ended_at: run.ended_at,
    }
}

/// Lists imports, newest first.
#[utoipa::path(get, path = "/import/runs", tag = "import", params(PageQuery), responses((status = 200, body = ImportRuns)))]
pub async fn list_imports(
    State(app): State<ControlState>,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<ImportRuns>> {
    let paging = PageRequest::from_page_query("imports", &page)?;
    let behind = paging.after.clone().map(|place| (Millis(place.at), place.id));
    let mut found = app.control.list_imports(behind, paging.row_limit()).await?;
    let next_cursor =
        paging.cut_page(&mut found, |run| PagePosition { at: run.created_at.0, id: run.id.clone() });
    Ok(Json(ImportRuns { runs: found.into_iter().map(import_run).collect(), next_cursor }))
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
    Ok(Json(import_result(app.control.import_home(&by, order).await?)))
}
