//! `[skills]`: where skills are found, and limits of the list in a prompt.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ConfigReport;
use crate::skill::SkillListLimits;

/// Where skills are found besides the workspaces and `<home>/skills`, and limits of the list in a prompt. Each agent's
/// `skills` selects which of them it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillsConfig {
    /// More skill folders for all agents: absolute, or relative to the home. They are searched after `<home>/skills`,
    /// in this order; the first skill of a name is used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// Maximum number of skills listed in a prompt. Skills that are not listed are not used.
    #[schemars(range(min = 1, max = 500))]
    pub max_listed: u32,
    /// Maximum characters of the listed names and descriptions.
    #[schemars(range(min = 1000, max = 100_000))]
    pub max_listed_chars: u32,
}

impl Default for SkillsConfig {
    fn default() -> Self {
        Self { folders: Vec::new(), max_listed: 64, max_listed_chars: 12_000 }
    }
}

impl SkillsConfig {
    /// Returns the folders that are searched after `<home>/skills`.
    pub fn skill_folders(&self, home: &Path) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| home.join(folder)).collect()
    }

    pub fn list_limits(&self) -> SkillListLimits {
        let whole = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        SkillListLimits { skills: whole(self.max_listed), chars: whole(self.max_listed_chars) }
    }

    pub(super) fn report_errors(&self, report: &mut ConfigReport) {
        for (at, folder) in self.folders.iter().enumerate() {
            let path = format!("skills.folders[{at}]");
            if folder.trim().is_empty() {
                report.add_error(&path, "the path is empty", "set a path, or remove the entry");
            } else if folder.starts_with('~') {
                report.add_error(
                    &path,
                    "~ is not supported here",
                    "use an absolute path, or one relative to the home folder",
                );
            }
        }
    }
}
