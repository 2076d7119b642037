//! The folder of an agent's files: `{dir, overlay}`, or only the folder as text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AgentSpec;
use crate::id::AgentId;

/// The folder of an agent's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentWorkspace {
    /// Absolute, or relative to the instance's workspace, which is `.` itself. If omitted, the default agent uses the
    /// instance's workspace and every other agent a folder of its own next to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// Whether files in `agents/<id>/` of the instance's workspace replace those of the same name in the folder.
    pub overlay: bool,
}

impl Default for AgentWorkspace {
    fn default() -> Self {
        Self { dir: None, overlay: true }
    }
}

impl AgentSpec {
    /// Returns the folder of the agent's files. Unless configured otherwise, only the default agent uses the
    /// instance's workspace, because that folder contains the instructions of other agents.
    pub fn workspace_folder(&self, instance: &Path, default: &AgentId) -> PathBuf {
        match &self.workspace.dir {
            Some(dir) => instance.join(dir),
            None if self.agent_id == *default => instance.to_owned(),
            None => default_agent_folder(instance, &self.agent_id),
        }
    }
}

/// Returns the default folder of an agent: next to the instance's workspace, so that it is not among the files of
/// another agent.
pub fn default_agent_folder(instance: &Path, id: &AgentId) -> PathBuf {
    let name = instance.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    instance.with_file_name(format!("{name}s")).join(id.as_str())
}

/// What to do about an overlap.
pub const OVERLAP_HINT: &str = "omit workspace to give the agent its own folder in workspaces/; or use a folder \
                                that is not inside the other; or use the same folder for both to share it";

/// Two agents of which one has the other's workspace inside its own. Programs of the outer one could put a link to any
/// folder in the place of the inner one's workspace, and the inner one would then work there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceOverlap {
    pub outer: AgentId,
    pub outer_folder: PathBuf,
    pub inner: AgentId,
    pub inner_folder: PathBuf,
}

impl std::fmt::Display for WorkspaceOverlap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (inner, outer) = (self.inner_folder.display(), self.outer_folder.display());
        write!(
            f,
            "the workspace of agent \"{}\" ({inner}) is inside that of agent \"{}\" ({outer}), whose programs could \
             replace it with a link to any folder",
            self.inner, self.outer
        )
    }
}

/// Returns every agent whose workspace is inside another agent's workspace, with the innermost of these. Agents with the
/// same folder share it, which is not an overlap.
pub fn find_overlaps(folders: &BTreeMap<AgentId, PathBuf>) -> Vec<WorkspaceOverlap> {
    // Sorted by components, so the contents of a folder follow it.
    let mut sorted: Vec<(PathBuf, &AgentId)> =
        folders.iter().map(|(id, folder)| (folder.components().collect(), id)).collect();
    sorted.sort();
    let mut around: Vec<&(PathBuf, &AgentId)> = Vec::new();
    let mut found = Vec::new();
    for one in &sorted {
        around.retain(|(folder, _)| one.0.starts_with(folder));
        if let Some((outer_folder, outer)) = around.iter().rev().find(|(folder, _)| *folder != one.0) {
            found.push(WorkspaceOverlap {
                outer: (*outer).clone(),
                outer_folder: outer_folder.clone(),
                inner: one.1.clone(),
                inner_folder: one.0.clone(),
            });
        }
        around.push(one);
    }
    found
}

impl AgentWorkspace {
    /// Returns an error and a hint if the folder contains `..` or starts with `~`.
    pub fn find_problem(&self) -> Option<(String, String)> {
        let dir = self.dir.as_deref()?;
        if dir.split('/').any(|part| part == "..") {
            let message = format!("{dir:?} leads outside its base folder");
            return Some((message, "use the absolute path of the folder".to_owned()));
        }
        let is_home = dir == "~" || dir.starts_with("~/");
        is_home.then(|| {
            (format!("{dir:?}: ~ is not supported here"), "use the absolute path of the folder".to_owned())
        })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WorkspaceInput {
    Folder(String),
    Whole(WorkspaceTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkspaceTable {
    dir: Option<String>,
    #[serde(default = "default_overlay")]
    overlay: bool,
}

fn default_overlay() -> bool {
    true
}

impl<'de> Deserialize<'de> for AgentWorkspace {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = WorkspaceInput::deserialize(deserializer);
        let written =
            written.map_err(|_| serde::de::Error::custom("workspace must be a folder, or {dir, overlay}"))?;
        Ok(match written {
            WorkspaceInput::Folder(dir) => Self { dir: Some(dir), overlay: true },
            WorkspaceInput::Whole(WorkspaceTable { dir, overlay }) => Self { dir, overlay },
        })
    }
}

impl JsonSchema for AgentWorkspace {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Workspace".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "The agent's files: a folder (absolute, or relative to the instance's workspace), or a \
                            table with these settings:",
            "type": ["string", "object"],
            "properties": {
                "dir": {
                    "type": "string",
                    "description": "Absolute, or relative to the instance's workspace; `.` is that workspace \
                                    itself. If omitted, the default agent uses the instance's workspace, and every \
                                    other agent gets its own folder.",
                },
                "overlay": {
                    "type": "boolean",
                    "default": true,
                    "description": "Whether files in agents/<id>/ of the instance's workspace take precedence over \
                                    files of the same name in the instance's workspace.",
                },
            },
            "additionalProperties": false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_except_default_has_own_workspace_folder() {
        let (root, main) = (Path::new("/home/x/workspace"), AgentId::main());
        let at = |id: &str, dir: Option<&str>| {
            let mut spec = AgentSpec::with_id(AgentId::parse(id).unwrap());
            spec.workspace.dir = dir.map(str::to_owned);
            spec.workspace_folder(root, &main)
        };
        assert_eq!(at("main", None), root);
        assert_eq!(at("ops", None), Path::new("/home/x/workspaces/ops"));
        assert_eq!(at("ops", Some(".")), root, "shared because it says so");
        assert_eq!(at("ops", Some("ops")), Path::new("/home/x/workspace/ops"));
        assert_eq!(at("main", Some("/srv/x")), Path::new("/srv/x"));
        assert!(!at("ops", None).starts_with(root));
    }

    #[test]
    fn nested_workspaces_are_reported_but_shared_ones_are_not() {
        let overlaps = |list: &[(&str, &str)]| {
            let folder = |(id, folder): &(&str, &str)| (AgentId::parse(id).unwrap(), PathBuf::from(folder));
            let found = find_overlaps(&list.iter().map(folder).collect());
            found.iter().map(|one| format!("{} in {}", one.inner, one.outer)).collect::<Vec<_>>()
        };
        assert_eq!(overlaps(&[("a", "/x/ws"), ("b", "/x/ws/."), ("c", "/x/ws-c"), ("d", "/x/wss")]), [""; 0]);
        assert_eq!(overlaps(&[("a", "/x/ws"), ("b", "/x/ws/b"), ("c", "/x/ws/c")]), ["b in a", "c in a"]);
        assert_eq!(
            overlaps(&[("a", "/"), ("b", "/x"), ("c", "/x/y"), ("d", "/x-y")]),
            ["b in a", "c in b", "d in a"]
        );
        assert_eq!(overlaps(&[("a", "/x/y/"), ("b", "/x")]), ["a in b"]);
    }

    #[test]
    fn workspace_path_cannot_escape() {
        let problem =
            |dir: &str| AgentWorkspace { dir: Some(dir.into()), overlay: true }.find_problem().is_some();
        for bad in ["..", "../../etc", "a/../..", "/srv/../etc", "~", "~/x"] {
            assert!(problem(bad), "{bad}");
        }
        for good in [".", "ops", "/srv/x", "a..b", "~x"] {
            assert!(!problem(good), "{good}");
        }
    }
}
