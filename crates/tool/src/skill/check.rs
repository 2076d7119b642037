//! Checks skills for an operator: scans every file of a skill for suspicious instructions.

use std::ffi::OsStr;
use std::io::Read;

use polyclaw_domain::skill::{SkillFinding, is_lookalike, lint_skill};
use rustix::fs::FileType;

use super::{DiscoveredSkill, SkillFolder, discover_skills};
use crate::text;
use polyclaw_folder::FolderHandle;

/// Maximum size of a scanned file.
const MAX_FILE_BYTES: u64 = 256 * 1024;
const MAX_FILES: usize = 500;
const MAX_DEPTH: usize = 6;
/// Maximum findings per skill.
const MAX_FINDINGS: usize = 50;

/// Returns the skills of these folders with all findings.
pub fn check_skills(sources: &[SkillFolder]) -> Vec<DiscoveredSkill> {
    let mut found = discover_skills(sources);
    let names: Vec<Option<String>> =
        found.iter().map(|one| one.skill.as_ref().map(|skill| skill.name.clone())).collect();
    for (at, one) in found.iter_mut().enumerate() {
        if let Ok(folder) = FolderHandle::open_below(&one.base, &one.folder) {
            let mut left = MAX_FILES;
            check_files(&folder, "", MAX_DEPTH, &mut left, &mut one.findings);
        }
        if let Some(name) = &names[at] {
            one.findings.extend(find_name_conflict(name, at, &names));
        }
        one.findings.truncate(MAX_FINDINGS);
    }
    found
}

fn find_name_conflict(name: &str, at: usize, names: &[Option<String>]) -> Option<SkillFinding> {
    let others = names.iter().enumerate().filter(|(n, _)| *n != at);
    let mut others = others.filter_map(|(n, other)| other.as_deref().map(|other| (n, other)));
    others.find_map(|(n, other)| {
        if other == name && n < at {
            let what = "another skill of the same name takes precedence over it";
            return Some(SkillFinding::warning(
                "skill_shadowed",
                what,
                "rename one of them if this is not intended",
            ));
        }
        is_lookalike(name, other).then(|| {
            let what = format!("its name looks like the name of another skill, {other}");
            SkillFinding::warning("skill_lookalike", what, "make sure that this is the intended skill")
        })
    })
}

fn check_files(
    folder: &FolderHandle,
    above: &str,
    depth: usize,
    left: &mut usize,
    findings: &mut Vec<SkillFinding>,
) {
    let Ok(entries) = folder.read_entries() else { return };
    for entry in entries.found {
        let shown = format!("{above}{}", text::truncate_text(&text::name(&entry.name), 80));
        match entry.kind {
            FileType::Symlink => {
                let what = format!("{shown} is a symbolic link and cannot be read through the skill");
                findings.push(SkillFinding::warning(
                    "skill_link",
                    what,
                    "replace the link with the file itself",
                ));
            }
            FileType::RegularFile if *left == 0 => {
                let what = format!("it has more than {MAX_FILES} files; the rest was not checked");
                findings.push(SkillFinding::warning(
                    "skill_large",
                    what,
                    "a skill is usually a few pages; check what the other files are",
                ));
                return;
            }
            FileType::RegularFile => {
                *left -= 1;
                findings.extend(check_file(folder, &entry.name, entry.size, &shown));
            }
            FileType::Directory if depth == 0 => {
                findings.push(SkillFinding::warning(
                    "skill_large",
                    format!("{shown} is nested too deeply and was not checked"),
                    "use a flat folder",
                ));
            }
            FileType::Directory => {
                if let Ok(child) = folder.open_child(&entry.name) {
                    check_files(&child, &format!("{shown}/"), depth - 1, left, findings);
                }
            }
            _ => {}
        }
    }
}

fn check_file(folder: &FolderHandle, name: &OsStr, size: u64, shown: &str) -> Vec<SkillFinding> {
    if size > MAX_FILE_BYTES {
        let what = format!("{shown} has {size} bytes; files over {MAX_FILE_BYTES} bytes are not checked");
        return vec![SkillFinding::warning("skill_large", what, "check what it is")];
    }
    let mut bytes = Vec::new();
    let read =
        folder.open_regular_file(name).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
    if read.is_err() || bytes.contains(&0) {
        let what = format!("{shown} is not a text file and cannot be checked");
        return vec![SkillFinding::warning("skill_program", what, "use it only if you trust its author")];
    }
    let findings = lint_skill(&String::from_utf8_lossy(&bytes));
    findings
        .into_iter()
        .map(|finding| SkillFinding { message: format!("{shown}: {}", finding.message), ..finding })
        .collect()
}
