//! The `read_skill` tool: reads a skill's instructions and other files. The only access to skills outside the
//! workspace.

use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use polyclaw_domain::briefing::{BriefingReader, BriefingSource};
use polyclaw_domain::skill::{READ_SKILL_TOOL, SKILL_FILE, Skill};
use polyclaw_domain::tool::{ToolOutcome, ToolScope, ToolSpec};
use polyclaw_folder::FolderHandle;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::briefing::FileBriefings;
use crate::error::{Error, Result};
use crate::read_file::{self, OpenedText};
use crate::{text, workspace};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadSkillArguments {
    /// The name of the skill, as in the list of skills.
    name: String,
    /// A file of the skill, relative to its folder. Default: SKILL.md.
    path: Option<String>,
    /// The first line to read, counted from 1. Default: 1.
    offset_line: Option<u64>,
}

pub fn spec() -> ToolSpec {
    arguments::build_tool_spec::<ReadSkillArguments>(
        READ_SKILL_TOOL,
        "Reads the instructions of a skill, or another file in its folder. Use it before a task that matches a \
         skill.",
    )
}

/// Whether the agent may use any skill. Otherwise the tool is unavailable.
pub fn has_allowed_skill(briefings: &FileBriefings, scope: &ToolScope) -> bool {
    briefings.load_briefing(&skill_reader(scope)).allowed_skills(&scope.skills).next().is_some()
}

pub async fn run(
    briefings: &Arc<FileBriefings>,
    scope: &ToolScope,
    arguments: ReadSkillArguments,
) -> Result<ToolOutcome> {
    let briefing = briefings.load_briefing(&skill_reader(scope));
    // A skill that is not allowed gets the same error as one that does not exist.
    let skill = briefing.allowed_skills(&scope.skills).find(|skill| skill.name == arguments.name);
    let skill = skill.ok_or_else(|| Error::UnknownSkill(text::truncate_text(&arguments.name, 80)))?.clone();
    let path = arguments.path.unwrap_or_else(|| SKILL_FILE.to_owned());
    let open = move || Ok(OpenedText { file: open_skill_file(&skill, &path)?, display: path });
    read_file::read_opened(open, (arguments.offset_line, None)).await
}

fn skill_reader(scope: &ToolScope) -> BriefingReader<'_> {
    let ToolScope { agent, workspace, skills, overlay, .. } = scope;
    BriefingReader { agent, workspace, skills, overlay: *overlay, is_sub_agent: false }
}

/// Opens a file of a skill, starting from the folder that no agent can replace, without following links. The skill's folder
/// is not opened by name, because an agent may have replaced it since it was found.
fn open_skill_file(skill: &Skill, path: &str) -> Result<File> {
    workspace::check_path_text(path)?;
    let inside = plain_path(skill, Path::new(path)).ok_or_else(|| Error::Outside(path.to_owned()))?;
    let folder = FolderHandle::open_below(&skill.base, &skill.folder)
        .map_err(|_| Error::UnknownSkill(skill.name.clone()))?;
    let (Some(above), Some(name)) = (inside.parent(), inside.file_name()) else {
        return Err(Error::path(path, "is the folder of the skill, not a file"));
    };
    let opened = folder.open_relative(above).and_then(|folder| folder.open_regular_file(name));
    opened.map_err(|error| match polyclaw_folder::is_link_refusal(&error) {
        true => Error::Outside(path.to_owned()),
        false => Error::io(path, error),
    })
}

/// A path in a skill's folder, without `.` and `..`. No link is followed, so that what `..` means is in the text alone.
fn plain_path(skill: &Skill, path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.strip_prefix(&skill.folder).unwrap_or(path).components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            _ => return None,
        }
    }
    Some(plain)
}
