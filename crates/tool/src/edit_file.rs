//! The `edit_file` tool: replaces an exact piece of text.

use std::io::Read;
use std::sync::Arc;

use polyclaw_domain::tool::{ToolEffect, ToolOutcome, ToolScope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::blocking;
use crate::error::{Error, Result};
use crate::workspace::{self, WorkspacePath, WorkspaceWriteLock};
use crate::write_file::MAX_FILE_BYTES;

pub const TOOL_NAME: &str = "edit_file";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFileArguments {
    /// The file, relative to the workspace.
    pub path: String,
    /// The text to replace, exactly as in the file, with enough context to occur only once.
    old_text: String,
    /// The replacement.
    new_text: String,
    /// Replace every match instead of exactly one.
    replace_all: Option<bool>,
}

pub fn spec() -> ToolSpec {
    ToolSpec {
        effect: ToolEffect::Effect,
        ..arguments::build_tool_spec::<EditFileArguments>(
            TOOL_NAME,
            "Replaces text in a file. The old text must occur exactly once in the file, unless replace_all is set.",
        )
    }
}

pub async fn run(
    scope: &ToolScope,
    arguments: EditFileArguments,
    write_lock: &Arc<WorkspaceWriteLock>,
) -> Result<ToolOutcome> {
    let workspace = scope.workspace.clone();
    let write_lock = Arc::clone(write_lock);
    let limit_mb = scope.sandbox.disk_limit_mb();
    let report = blocking::run_blocking(move |_| {
        let mut quotas = write_lock.lock();
        let place = workspace::resolve_path(&workspace, &arguments.path)?;
        let (edited, count) = apply_edit(&read_text(&place)?, &arguments)?;
        quotas.admit_file(&place, edited.len() as u64, limit_mb)?;
        place.replace_file(edited.as_bytes())?;
        Ok(format!("edited {}: {count} replaced", place.display_path()))
    });
    Ok(ToolOutcome::ok(report.await?))
}

pub fn read_text(place: &WorkspacePath) -> Result<String> {
    let (file, size) = place.open_file()?;
    let limit = MAX_FILE_BYTES as u64;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|source| place.io_error(source))?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(Error::TooLarge {
            path: place.display_path().to_owned(),
            size: size.max(limit + 1),
            limit,
        });
    }
    String::from_utf8(bytes)
        .map_err(|_| Error::path(place.display_path(), "is not UTF-8 text and cannot be edited"))
}

/// Returns the edited text and the number of replaced matches.
fn apply_edit(text: &str, arguments: &EditFileArguments) -> Result<(String, usize)> {
    let EditFileArguments { old_text, new_text, .. } = arguments;
    if old_text.is_empty() {
        return Err(Error::Edit("old_text is empty; use write_file to write a whole file".to_owned()));
    }
    if old_text == new_text {
        return Err(Error::Edit("old_text and new_text are identical: nothing to change".to_owned()));
    }
    let count = text.matches(old_text.as_str()).count();
    match (count, arguments.replace_all.unwrap_or(false)) {
        (0, _) => Err(Error::Edit(not_found_hint(text, old_text))),
        (1, _) | (_, true) => {
            let grown =
                (text.len() - count * old_text.len()).saturating_add(count.saturating_mul(new_text.len()));
            if grown > MAX_FILE_BYTES {
                let (size, limit) = (grown as u64, MAX_FILE_BYTES as u64);
                return Err(Error::TooLarge { path: arguments.path.clone(), size, limit });
            }
            Ok((text.replace(old_text.as_str(), new_text), count))
        }
        (count, false) => Err(Error::Edit(format!(
            "old_text occurs {count} times in the file; add surrounding text so that it occurs once, or set \
             replace_all"
        ))),
    }
}

fn not_found_hint(text: &str, old_text: &str) -> String {
    let hint = if text.contains("\r\n") && old_text.contains('\n') && !old_text.contains("\r\n") {
        "the lines of this file end with \\r\\n"
    } else {
        "read the file again and copy the text exactly, including whitespace"
    };
    format!("old_text was not found in the file (0 matches); {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(
        text: &str,
        old: &str,
        new: &str,
        replace_all: Option<bool>,
    ) -> std::result::Result<String, String> {
        let (path, old_text, new_text) = ("f".to_owned(), old.to_owned(), new.to_owned());
        let arguments = EditFileArguments { path, old_text, new_text, replace_all };
        apply_edit(text, &arguments).map(|(text, _)| text).map_err(|error| error.to_string())
    }

    #[test]
    fn exactly_one_match_is_replaced() {
        assert_eq!(edited("one two", "two", "three", None).unwrap(), "one three");
        assert!(edited("a a a", "a", "b", None).unwrap_err().contains("3 times"));
        assert_eq!(edited("a a a", "a", "b", Some(true)).unwrap(), "b b b");
    }

    #[test]
    fn edit_errors_name_the_reason() {
        assert!(edited("abc", "x", "y", None).unwrap_err().contains("0 matches"));
        assert!(edited("abc", "x", "y", Some(true)).unwrap_err().contains("0 matches"));
        assert!(edited("a\r\nb", "a\nb", "y", None).unwrap_err().contains("\\r\\n"));
        assert!(edited("abc", "", "y", None).unwrap_err().contains("empty"));
        assert!(edited("abc", "a", "a", None).unwrap_err().contains("identical"));
    }

    #[test]
    fn edit_result_size_is_limited() {
        let text = "a".repeat(1_000_000);
        assert!(edited(&text, "a", &"b".repeat(1_000_000), Some(true)).unwrap_err().contains("limit"));
    }
}
