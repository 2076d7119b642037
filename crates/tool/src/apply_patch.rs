//! The `apply_patch` tool: changes several files with one patch. Nothing is written unless all of it applies.

mod patch;

use std::sync::Arc;

use polyclaw_domain::tool::{ToolEffect, ToolOutcome, ToolScope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::blocking;
use crate::edit_file::read_text;
use crate::error::{Error, Result};
use crate::workspace::{self, WorkspacePath, WorkspaceWriteLock};
use crate::write_file::check_size;
use patch::FileChange;

pub const TOOL_NAME: &str = "apply_patch";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyPatchArguments {
    /// The patch, from "*** Begin Patch" to "*** End Patch". It contains any of: "*** Add File: path", followed by
    /// lines prefixed with +; "*** Update File: path", followed by hunks, each after a line "@@" or "@@ a line to find
    /// first", with lines prefixed with a space (kept), - (removed) or + (added); "*** Delete File: path".
    patch: String,
}

pub fn spec() -> ToolSpec {
    ToolSpec {
        effect: ToolEffect::Effect,
        ..arguments::build_tool_spec::<ApplyPatchArguments>(
            TOOL_NAME,
            "Adds, changes and deletes files with one patch. If any part of the patch does not apply, no file is \
             changed.",
        )
    }
}

/// The planned change of one file.
struct PlannedChange {
    place: WorkspacePath,
    /// `None`: the file is deleted.
    content: Option<String>,
    did: &'static str,
}

/// Returns the files that a patch changes, as written in it.
pub fn paths(arguments: &ApplyPatchArguments) -> Result<Vec<String>> {
    let changes = patch::parse(&arguments.patch).map_err(Error::Edit)?;
    Ok(changes.into_iter().map(|(path, _)| path).collect())
}

pub async fn run(
    scope: &ToolScope,
    arguments: ApplyPatchArguments,
    write_lock: &Arc<WorkspaceWriteLock>,
) -> Result<ToolOutcome> {
    let workspace = scope.workspace.clone();
    let write_lock = Arc::clone(write_lock);
    let limit_mb = scope.sandbox.disk_limit_mb();
    let report = blocking::run_blocking(move |budget| {
        let changes = patch::parse(&arguments.patch).map_err(Error::Edit)?;
        let mut quotas = write_lock.lock();
        let mut planned: Vec<PlannedChange> = Vec::with_capacity(changes.len());
        for (path, change) in changes {
            budget.check_budget()?;
            let place = workspace::resolve_path(&workspace, &path)?;
            if planned.iter().any(|other| other.place.relative_path() == place.relative_path()) {
                return Err(Error::Edit(format!("{path} occurs twice in the patch; combine its hunks")));
            }
            planned.push(plan_change(place, change)?);
        }
        for PlannedChange { place, content, .. } in &planned {
            quotas.admit_file(place, content.as_ref().map_or(0, String::len) as u64, limit_mb)?;
        }
        write_changes(planned)
    });
    Ok(ToolOutcome::ok(report.await?))
}

fn plan_change(place: WorkspacePath, change: FileChange) -> Result<PlannedChange> {
    let (content, did) = match change {
        FileChange::Add(content) => match place.file_type() {
            Ok(_) => return Err(Error::path(place.display_path(), "already exists; update it instead")),
            Err(_) => (Some(content), "added"),
        },
        FileChange::Update(hunks) => {
            let edited = patch::apply_hunks(&read_text(&place)?, &hunks)
                .map_err(|why| Error::Edit(format!("{}: {why}", place.display_path())))?;
            (Some(edited), "changed")
        }
        FileChange::Delete => {
            place.open_file()?;
            (None, "deleted")
        }
    };
    if let Some(content) = &content {
        check_size(place.display_path(), content)?;
    }
    Ok(PlannedChange { place, content, did })
}

fn write_changes(planned: Vec<PlannedChange>) -> Result<String> {
    let mut done: Vec<String> = Vec::new();
    for PlannedChange { place, content, did } in planned {
        let written = match &content {
            Some(content) => place.replace_file(content.as_bytes()).map(drop),
            None => place.remove_file(),
        };
        match written {
            Ok(()) => done.push(format!("{did} {}", place.display_path())),
            Err(error) if done.is_empty() => return Err(error),
            // All parts were valid, but a write failed: report what was written before.
            Err(error) => {
                return Err(Error::Edit(format!("{error}. Completed before the error: {}", done.join(", "))));
            }
        }
    }
    Ok(done.join("\n"))
}
