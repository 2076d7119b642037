//! Artifacts of a child: the files that its calls wrote, and the commit that its workspace moved to.

use std::collections::HashSet;

use polyclaw_domain::message::{MessagePart, tool_calls};
use polyclaw_domain::run::{Artifact, COMMIT, SubagentRun};
use polyclaw_domain::sanitize;
use polyclaw_domain::tool::ToolCall;
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{Tx, messages, runs, sessions};

/// How many of a child's newest messages are scanned. The limits below keep the list readable for the owner.
const MAX_SCANNED_MESSAGES: usize = 200;
const MAX_ARTIFACTS: usize = 20;
const MAX_PATH_CHARS: usize = 300;
/// Patch headings of files that exist after the patch.
const PATCH_FILE_HEADINGS: [&str; 2] = ["*** Add File:", "*** Update File:"];

pub(super) fn collect_artifacts(
    tx: &mut Tx<'_>,
    run: &SubagentRun,
    commit: Option<&str>,
) -> polyclaw_store::Result<Vec<Artifact>> {
    let Some(session) = sessions::get(tx, &run.child)? else { return Ok(Vec::new()) };
    let mut stored = messages::list_newest(tx, &run.child, &session.id, MAX_SCANNED_MESSAGES)?;
    stored.retain(|message| message.created_at >= run.created_at);
    let mut found = written_files(&stored);
    let before = runs::get_commit_before(tx, &run.id)?;
    // The runtime itself has seen the workspace move: a child's claim is no proof.
    if let Some(commit) = commit.filter(|commit| before.is_some_and(|before| before != *commit)) {
        found.push(Artifact { kind: COMMIT.to_owned(), path: commit.to_owned() });
    }
    Ok(found)
}

/// Returns each written file once, in the order of the first writes.
fn written_files(stored: &[SessionMessage]) -> Vec<Artifact> {
    // A failed call wrote nothing.
    let done: HashSet<&str> =
        stored.iter().flat_map(|message| &message.parts).filter_map(succeeded_call_id).collect();
    let written = stored.iter().flat_map(|message| tool_calls(&message.parts));
    let mut files: Vec<Artifact> = Vec::new();
    for path in written.filter(|call| done.contains(call.id.as_str())).flat_map(paths_in_call) {
        let file = Artifact { kind: "file".to_owned(), path: sanitize::to_single_line(path, MAX_PATH_CHARS) };
        if files.len() < MAX_ARTIFACTS && !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

fn succeeded_call_id(part: &MessagePart) -> Option<&str> {
    match part {
        MessagePart::ToolResult { call_id, is_error: false, .. } => Some(call_id),
        _ => None,
    }
}

fn paths_in_call(call: &ToolCall) -> Vec<&str> {
    let given = |name: &str| call.arguments.get(name).and_then(|value| value.as_str());
    match call.name.as_str() {
        "write_file" | "edit_file" => given("path").into_iter().collect(),
        "apply_patch" => {
            let lines = given("patch").unwrap_or_default().lines();
            let named =
                |line| PATCH_FILE_HEADINGS.iter().find_map(|heading| str::strip_prefix(line, heading));
            lines.filter_map(named).map(str::trim).collect()
        }
        _ => Vec::new(),
    }
}
