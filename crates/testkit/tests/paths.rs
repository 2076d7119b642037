//! Below a folder that agents can write, nothing is opened by a path: between a look and the opening an agent can put a link
//! or a pipe there. Such folders are reached through `polyclaw_folder`. These are the only files of the crates that have to
//! do with workspaces which may use paths; a new one needs a row here, and with it a reason.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const SCANNED_CRATES: [&str; 5] = ["engine", "tool", "control", "polyclaw", "server"];

/// Files of a home but for its workspaces: config, databases, logs, tokens, notes of processes. Programs of agents can not
/// write there.
const HOME: &str = "files of a home that no agent can write";
const KERNEL: &str = "/proc, /dev or /sys";
const PLACES: &str =
    "places are compared or their state is looked at; nothing below them is opened by that path";
const PERSON: &str = "a path that a person gave on the command line";
const EMPTY: &str = "a folder that was just made, in which no program runs yet";

/// A file below `crates`, or a folder that ends with `/`.
const ALLOWED: &[(&str, &str)] = &[
    ("control/src/audit.rs", HOME),
    ("control/src/backup.rs", PERSON),
    (
        "control/src/backup/",
        "the finished copy, and files of the home itself; folders of agents go through FolderCopy",
    ),
    ("control/src/child.rs", HOME),
    ("control/src/clone.rs", HOME),
    ("control/src/create.rs", HOME),
    ("control/src/file.rs", HOME),
    (
        "control/src/import/",
        "the home of another program, named by a person; folders of agents go through FolderCopy",
    ),
    ("control/src/instance_paths.rs", HOME),
    ("control/src/lifecycle.rs", HOME),
    ("control/src/lock.rs", HOME),
    ("control/src/log.rs", HOME),
    ("control/src/log/", HOME),
    ("control/src/process.rs", KERNEL),
    ("control/src/remove.rs", HOME),
    ("control/src/supervise.rs", HOME),
    ("engine/src/agent.rs", "makes folders beside the instance's workspace"),
    ("engine/src/agent/export.rs", "makes the instance's workspace itself"),
    ("engine/src/maintenance/archive.rs", HOME),
    ("engine/src/team/files.rs", HOME),
    ("engine/src/turn/tool.rs", PLACES),
    ("polyclaw/src/attachment.rs", PERSON),
    ("polyclaw/src/bench/", "homes of measurements"),
    ("polyclaw/src/chat/history.rs", HOME),
    ("polyclaw/src/client.rs", HOME),
    ("polyclaw/src/command/guard.rs", KERNEL),
    ("polyclaw/src/command/instances/", PERSON),
    ("polyclaw/src/command/logs.rs", HOME),
    ("polyclaw/src/command/memory.rs", PERSON),
    ("polyclaw/src/command/service.rs", "units of the person's service manager"),
    ("polyclaw/src/command/skills.rs", PERSON),
    ("polyclaw/src/config_edit.rs", HOME),
    ("polyclaw/src/confinement.rs", HOME),
    ("polyclaw/src/control.rs", HOME),
    ("polyclaw/src/daemon.rs", KERNEL),
    ("polyclaw/src/daemon_start.rs", HOME),
    ("polyclaw/src/health.rs", HOME),
    ("polyclaw/src/health/workspace.rs", PLACES),
    ("polyclaw/src/home.rs", HOME),
    ("polyclaw/src/secrets.rs", HOME),
    ("polyclaw/src/secrets/", HOME),
    ("polyclaw/src/tools.rs", HOME),
    ("polyclaw/src/weights.rs", HOME),
    ("polyclaw/src/weights/", HOME),
    ("server/src/control/logs.rs", HOME),
    ("server/src/metrics.rs", KERNEL),
    ("tool/src/agent_folders.rs", PLACES),
    ("tool/src/briefing/stamp.rs", PLACES),
    ("tool/src/mcp/launch.rs", PLACES),
    ("tool/src/sandbox/confine.rs", KERNEL),
    ("tool/src/sandbox/facts.rs", "tries, inside the sandbox, what must not open"),
    ("tool/src/sandbox/namespaces.rs", EMPTY),
    ("tool/src/sandbox/plan.rs", PLACES),
    ("tool/src/sandbox/proc.rs", EMPTY),
    ("tool/src/sandbox/start.rs", "the folder of a run, in the home"),
    ("tool/src/sandbox/supervise.rs", KERNEL),
    ("tool/src/sandbox/survey.rs", "lists what an MCP server may read, for rules of landlock"),
    ("tool/src/sandbox/usage.rs", KERNEL),
    ("tool/src/sandbox/watch.rs", KERNEL),
    ("tool/src/workspace.rs", "resolves a path; what it leads to is then opened by handles"),
];

/// Words of calls that reach a file by its path.
const PATH_CALLS: &[&str] = &[
    "fs::read",
    "fs::write",
    "fs::copy",
    "fs::rename",
    "fs::remove_",
    "fs::create_dir",
    "fs::hard_link",
    "fs::canonicalize",
    "fs::metadata",
    "fs::symlink_metadata",
    "fs::set_permissions",
    "fs::open",
    "fs::stat",
    "fs::File",
    "fs::OpenOptions",
    "fs::DirBuilder",
    "unix::fs::symlink",
    "File::open(",
    "File::create",
    "OpenOptions::new",
    "DirBuilder::new",
    ".canonicalize()",
    ".read_dir()",
    ".read_link()",
    ".symlink_metadata()",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" && !name.ends_with("_tests.rs") {
            found.push(path);
        }
    }
}

/// What comes before the tests of a file.
fn reaches_paths(text: &str) -> bool {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default().lines().map(str::trim_start);
    let mut code = code.filter(|line| !line.starts_with("//") && !line.starts_with("use "));
    code.any(|line| PATH_CALLS.iter().any(|call| line.contains(call)))
}

#[test]
fn only_listed_files_reach_files_by_path() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for name in SCANNED_CRATES {
        sources(&crates.join(name).join("src"), &mut found);
    }
    let mut used: BTreeSet<&str> = BTreeSet::new();
    let mut unlisted = Vec::new();
    for path in found {
        if !reaches_paths(&std::fs::read_to_string(&path).expect("a source file")) {
            continue;
        }
        let inside = path.strip_prefix(&crates).expect("below crates").to_string_lossy().into_owned();
        let is_row = |(place, _): &&(&str, &str)| {
            *place == inside || (place.ends_with('/') && inside.starts_with(place))
        };
        match ALLOWED.iter().find(is_row) {
            Some((place, _)) => drop(used.insert(place)),
            None => unlisted.push(inside),
        }
    }
    assert!(
        unlisted.is_empty(),
        "{unlisted:?} reach files by path: use polyclaw_folder where agents can write, or add a row with the reason"
    );
    let unused: Vec<_> = ALLOWED.iter().filter(|(place, _)| !used.contains(place)).collect();
    assert!(unused.is_empty(), "rows that nothing needs any more: {unused:?}");
}
