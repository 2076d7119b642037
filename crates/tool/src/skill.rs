//! Finds skills: folders with a `SKILL.md`. Only their heads are read here.

mod check;

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

use polyclaw_domain::skill::{SKILL_FILE, Skill, SkillFinding, SkillLocation, front_matter, is_folder_name};
use rustix::fs::FileType;

use crate::briefing::{Stamp, stamp};
use crate::folder::{self, Folder};
use crate::text;

pub use check::check;

/// A head is longer than this only by mistake or ill will.
const LONGEST_HEAD: u64 = 16 * 1024;
/// Folders looked at in one place.
const MOST: usize = 500;

/// A folder of skills. It is opened from `base` down without following a link.
pub struct Source {
    pub place: SkillLocation,
    pub base: PathBuf,
    pub folder: PathBuf,
    /// One skill of the folder, where only that is meant.
    pub only: Option<OsString>,
}

/// A folder that is, or should be, a skill.
pub struct Found {
    pub place: SkillLocation,
    pub folder: PathBuf,
    pub stamp: Stamp,
    /// What it is, where nothing keeps it from being used.
    pub skill: Option<Skill>,
    pub findings: Vec<SkillFinding>,
}

/// All skills of these folders, in their order.
pub fn discover(sources: &[Source]) -> Vec<Found> {
    sources.iter().flat_map(in_source).collect()
}

fn in_source(source: &Source) -> Vec<Found> {
    let Ok(folder) = Folder::below(&source.base, &source.folder) else { return Vec::new() };
    let Ok(entries) = folder.entries() else { return Vec::new() };
    // The real place, so that a folder that is later put behind a link is known to be another.
    let at = source.folder.canonicalize().unwrap_or_else(|_| source.folder.clone());
    let shown = entries.found.iter().filter(|entry| !entry.name.as_encoded_bytes().starts_with(b"."));
    let shown = shown.filter(|entry| source.only.as_ref().is_none_or(|only| *only == entry.name));
    let found = shown.filter_map(|entry| match entry.kind {
        FileType::Directory => Some(in_folder(&folder, source.place, at.join(&entry.name))),
        FileType::Symlink => Some(linked(source.place, at.join(&entry.name))),
        _ => None,
    });
    found.take(MOST).collect()
}

fn linked(place: SkillLocation, folder: PathBuf) -> Found {
    let what = format!("{} is a symbolic link; links are not followed", text::name(name(&folder)));
    let finding = SkillFinding::error("skill_link", what, "put the folder itself here");
    Found { place, stamp: stamp(&folder.join(SKILL_FILE)), folder, skill: None, findings: vec![finding] }
}

fn name(folder: &Path) -> &OsStr {
    folder.file_name().unwrap_or_default()
}

fn in_folder(parent: &Folder, place: SkillLocation, folder: PathBuf) -> Found {
    let stamp = stamp(&folder.join(SKILL_FILE));
    let head = check_folder_name(name(&folder)).and_then(|()| head(parent, name(&folder)));
    let (skill, findings) = match head {
        Err(finding) => (None, vec![finding]),
        Ok(text) => {
            let (front, mut findings) = front_matter::parse_front_matter(&text);
            findings.extend(front.as_ref().and_then(|front| misnamed(&front.name, &folder)));
            let skill = front.map(|front| Skill {
                name: front.name,
                description: front.description,
                place,
                folder: folder.clone(),
            });
            (skill, findings)
        }
    };
    Found { place, folder, stamp, skill, findings }
}

fn check_folder_name(folder: &OsStr) -> std::result::Result<(), SkillFinding> {
    if folder.to_str().is_some_and(is_folder_name) {
        return Ok(());
    }
    let what = format!("its folder {:?} is not named plainly", text::cut(&folder.to_string_lossy(), 80));
    Err(SkillFinding::error("skill_folder_name", what, "use letters, digits, '-', '_' and '.' only"))
}

fn misnamed(own: &str, folder: &Path) -> Option<SkillFinding> {
    let folder = text::name(name(folder));
    (folder != own).then(|| {
        let what = format!("it is named {own}, its folder {}", text::cut(&folder, 80));
        SkillFinding::warning("skill_folder_name", what, "give both the same name")
    })
}

fn head(parent: &Folder, folder: &OsStr) -> std::result::Result<String, SkillFinding> {
    let unreadable = |error: std::io::Error| {
        SkillFinding::error(
            "skill_unreadable",
            format!("{SKILL_FILE} can not be read: {error}"),
            "check its owner and mode",
        )
    };
    let child = parent.child(folder).map_err(unreadable)?;
    let Some(stat) = child.stat(OsStr::new(SKILL_FILE)).map_err(unreadable)? else {
        return Err(SkillFinding::error(
            "skill_file_missing",
            format!("there is no {SKILL_FILE} in it"),
            "write one, or move the folder elsewhere",
        ));
    };
    let kind = folder::kind(&stat);
    if kind != FileType::RegularFile {
        let what = format!("{SKILL_FILE} is {}", folder::describe(kind));
        return Err(SkillFinding::error("skill_link", what, "put the file itself here"));
    }
    let mut bytes = Vec::new();
    let file = child.file(OsStr::new(SKILL_FILE)).map_err(unreadable)?;
    file.take(LONGEST_HEAD).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
