//! The files a call would write, found before it runs: they decide whether an owner is asked first.

use std::path::{Path, PathBuf};

use polyclaw_domain::tool::{ToolCall, ToolScope};

use crate::arguments::read;
use crate::error::Result;
use crate::{apply_patch, edit_file, work, workspace, write_file};

/// From the workspace, with every link resolved, as the tool itself finds them. A path that leads nowhere is left out:
/// the tool refuses it.
pub async fn written_files(scope: &ToolScope, call: &ToolCall) -> Vec<PathBuf> {
    let (workspace, call) = (scope.workspace.clone(), call.clone());
    let found = work::blocking(move |_| Ok(located(&workspace, &given_paths(&call)?)));
    found.await.unwrap_or_default()
}

fn located(workspace: &Path, paths: &[String]) -> Vec<PathBuf> {
    let places = paths.iter().filter_map(|path| workspace::locate(workspace, path).ok());
    places.map(|place| place.inside().to_owned()).collect()
}

fn given_paths(call: &ToolCall) -> Result<Vec<String>> {
    let given = &call.arguments;
    match call.name.as_str() {
        write_file::NAME => Ok(vec![read::<write_file::Arguments>(given)?.path]),
        edit_file::NAME => Ok(vec![read::<edit_file::Arguments>(given)?.path]),
        apply_patch::NAME => apply_patch::paths(&read(given)?),
        _ => Ok(Vec::new()),
    }
}
