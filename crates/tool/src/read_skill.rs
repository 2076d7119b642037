//! The `read_skill` tool: reads a skill's instructions and other files. The only access to skills outside the
//! workspace.

use std::sync::Arc;

use polyclaw_domain::briefing::{BriefingReader, BriefingSource};
use polyclaw_domain::skill::{READ_SKILL_TOOL, SKILL_FILE, Skill};
use polyclaw_domain::tool::{ToolOutcome, ToolScope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::briefing::FileBriefings;
use crate::error::{Error, Result};
use crate::{read_file, text};

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
        "Reads the instructions of a skill, or another file of its folder. Use it before a task that a skill fits.",
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
    let skill = skill.ok_or_else(|| Error::UnknownSkill(text::truncate_text(&arguments.name, 80)))?;
    check_skill_folder(skill)?;
    let path = arguments.path.unwrap_or_else(|| SKILL_FILE.to_owned());
    read_file::read_below(skill.folder.clone(), path, arguments.offset_line, None).await
}

fn skill_reader(scope: &ToolScope) -> BriefingReader<'_> {
    let ToolScope { agent, workspace, skills, overlay, .. } = scope;
    BriefingReader { agent, workspace, skills, overlay: *overlay, is_sub_agent: false }
}

/// Checks that the skill's folder has not been replaced by a link since it was found.
fn check_skill_folder(skill: &Skill) -> Result<()> {
    match skill.folder.canonicalize() {
        Ok(real) if real == skill.folder => Ok(()),
        _ => Err(Error::UnknownSkill(skill.name.clone())),
    }
}
