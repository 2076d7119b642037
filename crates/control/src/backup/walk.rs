//! Walks through a home and copies what belongs in a backup.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use polyclaw_folder::{CopiedEntry, FolderCopy, FolderHandle, SkippedEntry};
use polyclaw_store::registry::InstanceRecord;
use rustix::fs::{Mode, OFlags};

use super::manifest::{
    BackupEntry, LeftOutEntry, MANIFEST_FILE, describe_content, describe_file, describe_link,
};
use super::{SECRETS_KEY_FILE, SecretKeys};
use crate::error::{Error, Result};
use crate::file;
use crate::instance_paths::HOME_FOLDER;
use crate::remove::REMOVED_PREFIX;

const REGISTRY_PATH: &str = "cp/registry.db";
/// Not copied: model files can be downloaded again; logs and temporary files are not needed.
const EXCLUDED_FOLDERS: [&str; 4] = ["models", "tmp", "logs", "cp"];
/// Notes of running processes, side files of databases and partial files.
const TRANSIENT_SUFFIXES: [&str; 11] = [
    ".lock",
    ".pid",
    ".url",
    "-wal",
    "-shm",
    "-journal",
    ".log",
    ".writing",
    ".keeping",
    ".copying",
    ".creating",
];
/// Copied before the sessions database. An event that an older team database relays twice is deduplicated there; one
/// that a newer team database has marked as relayed would be lost.
const FOLDER_COPIED_FIRST: &str = "teams";

pub(super) struct BackupWalk<'a> {
    home: &'a Path,
    to: &'a Path,
    keys: SecretKeys,
    pub entries: Vec<BackupEntry>,
    pub left_out: Vec<LeftOutEntry>,
}

impl<'a> BackupWalk<'a> {
    pub fn new(home: &'a Path, to: &'a Path, keys: SecretKeys) -> Self {
        Self { home, to, keys, entries: Vec::new(), left_out: Vec::new() }
    }

    /// Copies the registry first. Every instance it lists is then copied, and one created meanwhile is left out
    /// completely.
    pub fn copy_home(&mut self) -> Result<()> {
        let instances = self.copy_registry()?;
        self.copy_instance(Path::new(""))?;
        for one in instances.iter().filter(|one| one.folder != HOME_FOLDER) {
            let folder = Path::new(&one.folder);
            if !self.home.join(folder).is_dir() {
                return Err(Error::Busy(one.name.to_string()));
            }
            self.copy_instance(folder)?;
        }
        for name in ["cp/token", "cp/node"] {
            if self.home.join(name).is_file() {
                self.copy_file(Path::new(name))?;
            }
        }
        Ok(())
    }

    fn copy_registry(&mut self) -> Result<Vec<InstanceRecord>> {
        let path = Path::new(REGISTRY_PATH);
        if !self.home.join(path).exists() {
            return Ok(Vec::new());
        }
        self.make_folder(Path::new("cp"))?;
        let instances = polyclaw_store::copy_registry(&self.home.join(path), &self.to.join(path))?;
        self.add_entry(path)?;
        Ok(instances)
    }

    fn copy_instance(&mut self, folder: &Path) -> Result<()> {
        self.make_folder(folder)?;
        let mut names = self.list_names(folder)?;
        names.sort_by_key(|name| (name != FOLDER_COPIED_FIRST, name.clone()));
        let leaves_out = |name: &OsStr| {
            let is_key = name == SECRETS_KEY_FILE && self.keys == SecretKeys::LeftOut;
            is_key || EXCLUDED_FOLDERS.contains(&name.to_string_lossy().as_ref())
        };
        names.retain(|name| !leaves_out(name));
        for name in &names {
            self.copy_entry(&folder.join(name))?;
        }
        Ok(())
    }

    fn copy_entry(&mut self, path: &Path) -> Result<()> {
        let from = self.home.join(path);
        let Ok(kind) = fs::symlink_metadata(&from).map(|found| found.file_type()) else {
            // Its owner removed it again.
            return Ok(());
        };
        if kind.is_dir() && (is_agent_content(path) || is_of_servers(path)) {
            return self.copy_foreign_folder(path);
        }
        if kind.is_dir() {
            self.make_folder(path)?;
            return self.list_names(path)?.iter().try_for_each(|name| self.copy_entry(&path.join(name)));
        }
        if kind.is_file() || kind.is_symlink() { self.copy_file(path) } else { Ok(()) }
    }

    fn list_names(&self, folder: &Path) -> Result<Vec<std::ffi::OsString>> {
        let at = self.home.join(folder);
        let listed = fs::read_dir(&at).map_err(|error| Error::from_io(&at, &error))?;
        let names = listed.flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names.filter(|name| !is_transient(name)).collect();
        names.sort();
        Ok(names)
    }

    fn make_folder(&self, folder: &Path) -> Result<()> {
        let at = self.to.join(folder);
        file::make_private(&at).map_err(|error| Error::from_io(&at, &error))
    }

    fn copy_file(&mut self, path: &Path) -> Result<()> {
        let (from, to) = (self.home.join(path), self.to.join(path));
        if path.extension().is_some_and(|end| end == "db") && is_database(&from) {
            polyclaw_store::copy_sqlite_file(&from, &to)?;
        } else {
            match copy_plain_file(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                copied => copied.map_err(|error| Error::from_io(&from, &error))?,
            }
        }
        self.add_entry(path)
    }

    /// Copies a folder that agents or MCP servers write, as plain files. They may replace any entry with a link at any
    /// time. Entries that cannot be copied are listed and left out, so that they do not prevent a backup.
    fn copy_foreign_folder(&mut self, path: &Path) -> Result<()> {
        let (from, to) = (self.home.join(path), self.to.join(path));
        let Ok(source) = FolderHandle::open_below(self.home, &from) else { return Ok(()) };
        self.make_folder(path)?;
        let failed = |error: io::Error| Error::from_io(&to, &error);
        let target = FolderHandle::open_base(&to).map_err(failed)?;
        let is_excluded = |inside: &Path| is_of_servers(path) && is_cache(&path.join(inside));
        let mut entries = Vec::new();
        let mut add_entry = |inside: &Path, copied: CopiedEntry<'_>| {
            let place = path.join(inside).to_string_lossy().into_owned();
            entries.push(match copied {
                CopiedEntry::Link(target) => describe_link(place, target),
                CopiedEntry::File(file) => {
                    file.rewind()?;
                    describe_content(place, file)?
                }
            });
            Ok(())
        };
        let skipped = FolderCopy::new(&is_excluded, &mut add_entry)
            .below(path)
            .run(&source, &target)
            .map_err(failed)?;
        self.entries.append(&mut entries);
        self.left_out.extend(skipped.into_iter().map(|SkippedEntry { path: inside, reason }| LeftOutEntry {
            path: path.join(inside).to_string_lossy().into_owned(),
            reason,
        }));
        Ok(())
    }

    /// Adds a copied file to the list.
    fn add_entry(&mut self, path: &Path) -> Result<()> {
        let to = self.to.join(path);
        let entry = describe_file(path.to_string_lossy().into_owned(), &to);
        self.entries.push(entry.map_err(|error| Error::from_io(&to, &error))?);
        Ok(())
    }
}

/// Copies a file of the home that agents cannot write. A link there was created by the operator and stays a link.
fn copy_plain_file(from: &Path, to: &Path) -> io::Result<()> {
    let name = from.file_name().ok_or(io::ErrorKind::NotFound)?;
    let parent = FolderHandle::open_base(from.parent().ok_or(io::ErrorKind::NotFound)?)?;
    let target = FolderHandle::open_base(to.parent().ok_or(io::ErrorKind::NotFound)?)?;
    polyclaw_folder::copy_entry((&parent, name), &target)
}

/// Whether the path belongs to agents. Their files are copied whatever their name.
fn is_agent_content(path: &Path) -> bool {
    path.iter().any(|part| part == "workspace" || part == "workspaces" || part == "skills")
}

/// Whether the path belongs to MCP servers. Their files are copied as plain files, including the side files of
/// databases: opening one as a database would follow a link that the server put there, and could lock it.
fn is_of_servers(path: &Path) -> bool {
    path.iter().any(|part| part == "mcp")
}

fn is_transient(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == MANIFEST_FILE
        || name.starts_with(REMOVED_PREFIX)
        || TRANSIENT_SUFFIXES.iter().any(|end| name.ends_with(end))
}

/// Downloads of an MCP server in its own folder can be downloaded again.
fn is_cache(folder: &Path) -> bool {
    let above = folder.parent().and_then(Path::parent).and_then(Path::file_name);
    above.is_some_and(|above| above == "mcp")
        && folder.file_name().is_some_and(|name| name == ".npm" || name == ".cache")
}

fn is_database(path: &Path) -> bool {
    let mut head = [0; 16];
    // Opening a pipe must not block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(mut file) = rustix::fs::open(path, flags, Mode::empty()).map(fs::File::from) else { return false };
    let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
    is_file && io::Read::read_exact(&mut file, &mut head).is_ok() && head == *b"SQLite format 3\0"
}

/// Lists every file of a backup except the manifest.
pub(super) fn list_entries(folder: &Path) -> Result<Vec<BackupEntry>> {
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(below) = open.pop() {
        let at = folder.join(&below);
        for entry in fs::read_dir(&at).map_err(|error| Error::from_io(&at, &error))?.flatten() {
            let path = below.join(entry.file_name());
            let at = folder.join(&path);
            match fs::symlink_metadata(&at) {
                Ok(kind) if kind.is_dir() => open.push(path),
                _ if path == Path::new(MANIFEST_FILE) => {}
                _ => {
                    let what = path.to_string_lossy().into_owned();
                    let entry = describe_file(what.clone(), &at).map_err(|error| match error.kind() {
                        io::ErrorKind::InvalidInput => {
                            Error::BadBackup { what, why: "is not a file, folder or link".to_owned() }
                        }
                        _ => Error::from_io(&at, &error),
                    });
                    found.push(entry?);
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance_paths::InstancePaths;

    #[test]
    fn backup_copies_symlinks_as_symlinks() {
        let room = tempfile::tempdir().unwrap();
        let (home, to, secret) =
            (room.path().join("home"), room.path().join("to"), room.path().join("secret"));
        fs::create_dir_all(home.join("workspace/a")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("key"), "secret").unwrap();
        fs::write(home.join("workspace/a/key"), "mine").unwrap();
        for (target, link) in [
            (secret.join("key"), "workspace/link"),
            (secret.clone(), "workspace/b"),
            (secret.join("key"), "link"),
        ] {
            std::os::unix::fs::symlink(target, home.join(link)).unwrap();
        }
        let mut walk = BackupWalk::new(&home, &to, SecretKeys::Included);
        walk.copy_entry(Path::new("workspace")).unwrap();
        walk.copy_entry(Path::new("link")).unwrap();
        assert_eq!(fs::read_to_string(to.join("workspace/a/key")).unwrap(), "mine");
        assert_eq!(fs::read_link(to.join("workspace/link")).unwrap(), secret.join("key"));
        assert_eq!(fs::read_link(to.join("workspace/b")).unwrap(), secret);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), secret.join("key"));
        let mut listed = list_entries(&to).unwrap();
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        walk.entries.sort_by(|a, b| a.path.cmp(&b.path));
        assert_eq!(walk.entries, listed);
    }

    fn fifo(path: &Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
    }

    /// Runs the work in a thread, so that a read that never ends fails the test and does not hang it.
    fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(work()));
        result.recv_timeout(std::time::Duration::from_secs(10)).unwrap()
    }

    #[test]
    fn pipes_and_symlinks_are_not_backed_up_as_databases() {
        let room = tempfile::tempdir().unwrap();
        let (home, to) = (room.path().join("home"), room.path().join("to"));
        fs::create_dir_all(home.join("mcp/lab")).unwrap();
        fs::write(home.join("sessions.db"), b"SQLite format 3\0 and secrets").unwrap();
        fs::write(home.join("mcp/lab/own.db-wal"), "its own").unwrap();
        fifo(&home.join("mcp/lab/x.db"));
        fifo(&home.join("z.db"));
        std::os::unix::fs::symlink(home.join("sessions.db"), home.join("mcp/lab/y.db")).unwrap();
        let (from, copy) = (home.clone(), to.clone());
        in_time(move || {
            let mut walk = BackupWalk::new(&from, &copy, SecretKeys::Included);
            walk.make_folder(Path::new("")).unwrap();
            walk.copy_entry(Path::new("mcp")).unwrap();
            assert!(!is_database(&from.join("z.db")));
        });
        assert!(!to.join("mcp/lab/x.db").exists());
        assert_eq!(fs::read_link(to.join("mcp/lab/y.db")).unwrap(), home.join("sessions.db"));
        assert_eq!(fs::read_to_string(to.join("mcp/lab/own.db-wal")).unwrap(), "its own");
    }

    #[test]
    fn pipe_in_backup_is_refused_without_blocking() {
        let room = tempfile::tempdir().unwrap();
        let backup = room.path().to_owned();
        fifo(&backup.join("config.toml"));
        let refused = in_time(move || list_entries(&backup)).unwrap_err();
        assert_eq!(refused.code(), "backup_damaged", "{refused}");
        let backup = room.path().to_owned();
        fifo(&backup.join(MANIFEST_FILE));
        assert!(in_time(move || super::super::manifest::BackupManifest::read(&backup)).is_err());
    }

    #[test]
    fn only_transient_files_are_left_out_of_backups() {
        for (name, passes) in [
            ("daemon.pid", true),
            ("sessions.db-wal", true),
            ("daemon.log", true),
            (".creating", true),
            ("config.toml", false),
            ("token", false),
            ("catalog", false),
            ("sessions.db", false),
        ] {
            assert_eq!(is_transient(OsStr::new(name)), passes, "{name}");
        }
        assert!(InstancePaths::from_folder(PathBuf::from("x")).creation_marker().ends_with(".creating"));
    }
}
