//! The `write_file` tool: writes a whole file atomically.

use std::sync::Arc;

use polyclaw_domain::tool::{ToolEffect, ToolOutcome, ToolScope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::blocking;
use crate::error::{Error, Result};
use crate::workspace::{self, WorkspaceWriteLock};

pub const TOOL_NAME: &str = "write_file";
pub const MAX_FILE_BYTES: usize = 10 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFileArguments {
    /// The file, relative to the workspace. Missing folders are created.
    pub path: String,
    /// The complete new content.
    content: String,
}

pub fn spec() -> ToolSpec {
    ToolSpec {
        effect: ToolEffect::Idempotent,
        ..arguments::build_tool_spec::<WriteFileArguments>(
            TOOL_NAME,
            "Writes a file, replacing its content. To change part of a file, use edit_file.",
        )
    }
}

pub async fn run(
    scope: &ToolScope,
    arguments: WriteFileArguments,
    write_lock: &Arc<WorkspaceWriteLock>,
) -> Result<ToolOutcome> {
    let workspace = scope.workspace.clone();
    let write_lock = Arc::clone(write_lock);
    let limit_mb = scope.sandbox.disk_limit_mb();
    let report = blocking::run_blocking(move |_| {
        check_size(&arguments.path, &arguments.content)?;
        let mut quotas = write_lock.lock();
        let place = workspace::resolve_path(&workspace, &arguments.path)?;
        quotas.admit_file(&place, arguments.content.len() as u64, limit_mb)?;
        let is_new = place.replace_file(arguments.content.as_bytes())?;
        let did = if is_new { "created" } else { "replaced" };
        Ok(format!("{did} {} ({} bytes)", place.display_path(), arguments.content.len()))
    });
    Ok(ToolOutcome::ok(report.await?))
}

pub fn check_size(path: &str, content: &str) -> Result<()> {
    if content.len() <= MAX_FILE_BYTES {
        return Ok(());
    }
    let (size, limit) = (content.len() as u64, MAX_FILE_BYTES as u64);
    Err(Error::TooLarge { path: path.to_owned(), size, limit })
}
