//! Discovers skills: folders with a `SKILL.md`. Reads only the front matter.

mod check;

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::PathBuf;

use polyclaw_domain::skill::{SKILL_FILE, Skill, SkillFinding, SkillLocation, front_matter, is_folder_name};
use rustix::fs::FileType;

use crate::briefing::{PathStamp, path_stamp};
use crate::text;
use polyclaw_folder::FolderHandle;

pub use check::check_skills;

/// Maximum bytes read of a file to find its front matter.
const MAX_HEAD_BYTES: u64 = 16 * 1024;
/// Maximum skills per source folder.
const MAX_SKILLS_PER_SOURCE: usize = 500;

/// A folder of skills.
pub struct SkillFolder {
    pub place: SkillLocation,
    /// A folder that no agent can replace; `folder` is opened from there down without following a link.
    pub base: PathBuf,
    pub folder: PathBuf,
    /// Restricts the source to one skill.
    pub only: Option<OsString>,
}

/// A folder that is, or should be, a skill.
pub struct DiscoveredSkill {
    pub place: SkillLocation,
    /// As that of its source.
    pub base: PathBuf,
    pub folder: PathBuf,
    pub stamp: PathStamp,
    /// The skill, if it is usable.
    pub skill: Option<Skill>,
    pub findings: Vec<SkillFinding>,
}

/// Returns all skills of these folders, in order.
pub fn discover_skills(sources: &[SkillFolder]) -> Vec<DiscoveredSkill> {
    sources.iter().flat_map(discover_in_source).collect()
}

fn discover_in_source(source: &SkillFolder) -> Vec<DiscoveredSkill> {
    let Ok(folder) = FolderHandle::open_below(&source.base, &source.folder) else { return Vec::new() };
    let Ok(entries) = folder.read_entries() else { return Vec::new() };
    let shown = entries.found.iter().filter(|entry| !entry.name.as_encoded_bytes().starts_with(b"."));
    let shown = shown.filter(|entry| source.only.as_ref().is_none_or(|only| *only == entry.name));
    let found = shown.filter_map(|entry| match entry.kind {
        FileType::Directory => Some(discover_in_folder(&folder, source, &entry.name)),
        FileType::Symlink => Some(linked_skill(source, &entry.name)),
        _ => None,
    });
    found.take(MAX_SKILLS_PER_SOURCE).collect()
}

fn linked_skill(source: &SkillFolder, name: &OsStr) -> DiscoveredSkill {
    let what = format!("{} is a symbolic link; links are not followed", text::name(name));
    let finding = SkillFinding::error("skill_link", what, "replace the link with the folder itself");
    let folder = source.folder.join(name);
    DiscoveredSkill {
        place: source.place,
        base: source.base.clone(),
        stamp: path_stamp(&folder.join(SKILL_FILE)),
        folder,
        skill: None,
        findings: vec![finding],
    }
}

fn discover_in_folder(parent: &FolderHandle, source: &SkillFolder, name: &OsStr) -> DiscoveredSkill {
    let (place, base, folder) = (source.place, source.base.clone(), source.folder.join(name));
    let stamp = path_stamp(&folder.join(SKILL_FILE));
    let head = check_folder_name(name).and_then(|()| read_head(parent, name));
    let (skill, findings) = match head {
        Err(finding) => (None, vec![finding]),
        Ok(text) => {
            let (front, mut findings) = front_matter::parse_front_matter(&text);
            findings.extend(front.as_ref().and_then(|front| check_name_matches_folder(&front.name, name)));
            let skill = front.map(|front| Skill {
                name: front.name,
                description: front.description,
                place,
                base: base.clone(),
                folder: folder.clone(),
            });
            (skill, findings)
        }
    };
    DiscoveredSkill { place, base, folder, stamp, skill, findings }
}

fn check_folder_name(folder: &OsStr) -> std::result::Result<(), SkillFinding> {
    if folder.to_str().is_some_and(is_folder_name) {
        return Ok(());
    }
    let what = format!(
        "its folder name {:?} contains special characters",
        text::truncate_text(&folder.to_string_lossy(), 80)
    );
    Err(SkillFinding::error("skill_folder_name", what, "use only letters, digits, '-', '_' and '.'"))
}

fn check_name_matches_folder(own: &str, folder: &OsStr) -> Option<SkillFinding> {
    let folder = text::name(folder);
    (folder != own).then(|| {
        let what = format!("its name is {own}, but its folder is {}", text::truncate_text(&folder, 80));
        SkillFinding::warning("skill_folder_name", what, "use the same name for both")
    })
}

fn read_head(parent: &FolderHandle, folder: &OsStr) -> std::result::Result<String, SkillFinding> {
    let unreadable = |error: std::io::Error| {
        SkillFinding::error(
            "skill_unreadable",
            format!("cannot read {SKILL_FILE}: {error}"),
            "check its owner and permissions",
        )
    };
    let child = parent.open_child(folder).map_err(unreadable)?;
    let Some(stat) = child.stat(OsStr::new(SKILL_FILE)).map_err(unreadable)? else {
        return Err(SkillFinding::error(
            "skill_file_missing",
            format!("it has no {SKILL_FILE}"),
            "create one, or move the folder elsewhere",
        ));
    };
    let kind = polyclaw_folder::file_type(&stat);
    if kind != FileType::RegularFile {
        let what = format!("{SKILL_FILE} is {}", polyclaw_folder::describe_file_type(kind));
        return Err(SkillFinding::error("skill_link", what, "replace it with a regular file"));
    }
    let mut bytes = Vec::new();
    let file = child.open_regular_file(OsStr::new(SKILL_FILE)).map_err(unreadable)?;
    file.take(MAX_HEAD_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
