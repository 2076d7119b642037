//! Copies the workspaces of agents.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use polyclaw_domain::openclaw::{OpenclawAgentFiles, TranslationNotes};
use polyclaw_folder::{FolderHandle, WalkedEntry, file_size, file_type, walk_folder};
use rustix::fs::FileType;

use crate::error::{Error, Result};
use crate::file;

/// The size limit of a workspace. A larger folder is probably somebody's whole disk.
const MAX_WORKSPACE_BYTES: u64 = 4 * 1024 * 1024 * 1024;
const MAX_WORKSPACE_FILES: u64 = 200_000;

/// Whether workspaces outside the imported home are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutsideWorkspaces {
    Refused,
    Allowed,
}

/// A folder to copy, and its name below the new workspace.
pub struct WorkspaceFolder {
    from: PathBuf,
    dir: Option<String>,
    /// Links that lead out of the folder, each with its target in the copy, or `None` to remove it.
    links: Vec<(PathBuf, Option<PathBuf>)>,
    /// Folders inside it that belong to other agents and are copied to those.
    without: Vec<PathBuf>,
}

impl WorkspaceFolder {
    pub fn copy_to(&self, workspace: &Path) -> Result<()> {
        let to = self.dir.as_ref().map_or_else(|| workspace.to_owned(), |dir| workspace.join(dir));
        file::copy_whole_folder(&self.from, &to, &self.without)
            .map_err(|error| Error::from_io(&self.from, &error))?;
        let copy = FolderHandle::open_base(&to).map_err(|error| Error::from_io(&to, &error))?;
        self.links.iter().try_for_each(|(link, target)| {
            replace_link(&copy, link, target.as_deref()).map_err(|error| Error::from_io(link, &error))
        })
    }

    /// Describes source and destination for the report.
    pub fn describe_copy(&self) -> String {
        let to = self.dir.as_ref().map_or_else(|| "workspace".to_owned(), |dir| format!("workspace/{dir}"));
        format!("{} -> {to}", self.from.display())
    }
}

/// Finds each existing workspace once.
pub fn find_workspaces(
    root: &Path,
    user_home: Option<&Path>,
    agents: &[OpenclawAgentFiles],
    (own_home, outside): (&Path, OutsideWorkspaces),
    notes: &mut TranslationNotes,
) -> Result<Vec<WorkspaceFolder>> {
    let mut found: Vec<WorkspaceFolder> = Vec::new();
    for files in agents {
        let Some(from) = candidate_paths(root, user_home, files).find(|path| path.is_dir()) else {
            if files.workspace.is_some() {
                notes
                    .note_ignored(&format!("agents.{}.workspace", files.called), "the folder does not exist");
            }
            continue;
        };
        let from = fs::canonicalize(&from).map_err(|error| Error::from_io(&from, &error))?;
        if found.iter().any(|other| other.from == from && other.dir == files.dir) {
            continue;
        }
        if outside == OutsideWorkspaces::Refused && !from.starts_with(root) {
            return Err(Error::OutsideImport {
                agent: files.called.clone(),
                folder: from.display().to_string(),
            });
        }
        check_workspace(&from, own_home)?;
        let links = find_leaving_links(&from, notes);
        found.push(WorkspaceFolder { from, dir: files.dir.clone(), links, without: Vec::new() });
    }
    let all: Vec<PathBuf> = found.iter().map(|folder| folder.from.clone()).collect();
    for folder in &mut found {
        let inside = |other: &&PathBuf| **other != folder.from && other.starts_with(&folder.from);
        folder.without = all.iter().filter(inside).cloned().collect();
    }
    Ok(found)
}

/// Returns the configured path and then the usual paths.
fn candidate_paths(
    root: &Path,
    user_home: Option<&Path>,
    files: &OpenclawAgentFiles,
) -> impl Iterator<Item = PathBuf> {
    let stated = files.workspace.as_ref().map(|text| match (text.strip_prefix('~'), user_home) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => root.join(text),
    });
    stated.into_iter().chain(files.usual.iter().map(|name| root.join(name)))
}

/// Checks the size, and that the folder does not contain our own home, which would be copied into itself.
fn check_workspace(from: &Path, own_home: &Path) -> Result<()> {
    let bad = |why: &str| Error::BadImport { what: from.display().to_string(), why: why.to_owned() };
    let own_home = fs::canonicalize(own_home).unwrap_or_else(|_| own_home.to_owned());
    if own_home.starts_with(from) {
        return Err(bad("this workspace contains the home of Polyclaw"));
    }
    let root = FolderHandle::open_base(from).map_err(|error| Error::from_io(from, &error))?;
    let (mut bytes, mut count) = (0_u64, 0_u64);
    let counted = walk_folder(root, &mut |entry| {
        count += 1;
        if file_type(&entry.stat) != FileType::Directory {
            bytes = bytes.saturating_add(file_size(&entry.stat));
        }
        if bytes > MAX_WORKSPACE_BYTES || count > MAX_WORKSPACE_FILES {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(())
        }
    });
    counted.map_err(|_| bad("this workspace is too large to be copied"))
}

/// Finds links that would lead into the old home. A link to a file in the same folder is redirected to its copy; any
/// other is removed.
fn find_leaving_links(from: &Path, notes: &mut TranslationNotes) -> Vec<(PathBuf, Option<PathBuf>)> {
    let mut found = Vec::new();
    let mut look = |entry: WalkedEntry<'_>| {
        if file_type(&entry.stat) != FileType::Symlink {
            return Ok(());
        }
        let Ok(target) = entry.folder.read_link(entry.name).map(PathBuf::from) else { return Ok(()) };
        let (place, path) = (entry.inside.clone(), from.join(&entry.inside));
        let leads = normalize_path(&path.parent().unwrap_or(from).join(&target));
        match leads.strip_prefix(from) {
            Ok(_) if target.is_relative() => {}
            Ok(inside) => {
                let up: PathBuf =
                    place.parent().into_iter().flat_map(Path::components).map(|_| "..").collect();
                found.push((place, Some(up.join(inside))));
            }
            Err(_) => {
                let why = "this link leads out of the workspace and was skipped";
                notes.note_ignored(&path.display().to_string(), why);
                found.push((place, None));
            }
        }
        Ok(())
    };
    if let Ok(root) = FolderHandle::open_base(from) {
        // The callback never fails.
        let _ = walk_folder(root, &mut look);
    }
    found
}

/// Resolves `.` and `..` lexically.
fn normalize_path(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(found.pop()),
            std::path::Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

/// Replaces a link in the copy. A link that is missing there was in the folder of another agent, which has its own copy.
fn replace_link(copy: &FolderHandle, link: &Path, target: Option<&Path>) -> io::Result<()> {
    let (Some(above), Some(name)) = (link.parent(), link.file_name()) else { return Ok(()) };
    let removed = copy.open_relative(above).and_then(|folder| folder.remove_file(name).map(|()| folder));
    match (removed, target) {
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        (Err(error), _) => Err(error),
        (Ok(folder), Some(target)) => folder.create_link(target.as_os_str(), name),
        (Ok(_), None) => Ok(()),
    }
}
