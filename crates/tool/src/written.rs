//! Finds the files that a call would write, before it runs. They decide whether an owner is asked first.

use std::path::{Path, PathBuf};

use polyclaw_domain::tool::{ToolCall, ToolScope};

use crate::arguments::read_arguments;
use crate::error::Result;
use crate::{apply_patch, blocking, edit_file, workspace, write_file};

/// Returns paths relative to the workspace with links resolved, as the tool itself resolves them. Omits paths that
/// cannot be resolved, because the tool rejects them.
pub async fn written_files(scope: &ToolScope, call: &ToolCall) -> Vec<PathBuf> {
    let (workspace, call) = (scope.workspace.clone(), call.clone());
    let found = blocking::run_blocking(move |_| Ok(located(&workspace, &given_paths(&call)?)));
    found.await.unwrap_or_default()
}

fn located(workspace: &Path, paths: &[String]) -> Vec<PathBuf> {
    let places = paths.iter().filter_map(|path| workspace::resolve_path(workspace, path).ok());
    places.map(|place| place.relative_path().to_owned()).collect()
}

fn given_paths(call: &ToolCall) -> Result<Vec<String>> {
    let given = &call.arguments;
    match call.name.as_str() {
        write_file::TOOL_NAME => Ok(vec![read_arguments::<write_file::WriteFileArguments>(given)?.path]),
        edit_file::TOOL_NAME => Ok(vec![read_arguments::<edit_file::EditFileArguments>(given)?.path]),
        apply_patch::TOOL_NAME => apply_patch::paths(&read_arguments(given)?),
        _ => Ok(Vec::new()),
    }
}
