//! The manifest of a backup: paths, sizes and hashes, but no file contents.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::time::Millis;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::BackupTotals;
use crate::error::{Error, Result};
use crate::file;

pub const MANIFEST_FILE: &str = "backup.json";
const MANIFEST_SCHEMA_VERSION: u32 = 1;
/// Room for the entries of several million files.
const LARGEST_LIST: u64 = 1024 * 1024 * 1024;
const HASH_BLOCK_BYTES: usize = 64 * 1024;

/// A file or a link with its path below the home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupEntry {
    pub path: String,
    pub bytes: u64,
    pub hash: String,
}

/// An entry of a folder that agents write that could not be copied, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutEntry {
    pub path: String,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupManifest {
    schema: u32,
    /// The version of the program that made the backup.
    pub version: String,
    pub created_at: String,
    pub entries: Vec<BackupEntry>,
    /// Omitted if empty, because earlier versions do not know this field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutEntry>,
}

impl BackupManifest {
    pub fn new(version: &str, now: Millis) -> Self {
        Self {
            schema: MANIFEST_SCHEMA_VERSION,
            version: version.to_owned(),
            created_at: now.to_string(),
            entries: Vec::new(),
            left_out: Vec::new(),
        }
    }

    pub fn sum_totals(&self) -> BackupTotals {
        let is_database =
            |entry: &&BackupEntry| Path::new(&entry.path).extension().is_some_and(|end| end == "db");
        let configs =
            |entry: &&BackupEntry| entry.path == "config.toml" || entry.path.ends_with("/config.toml");
        let in_instance = |entry: &&BackupEntry| !entry.path.contains("/workspace/");
        BackupTotals {
            files: self.entries.len(),
            databases: self.entries.iter().filter(is_database).count(),
            bytes: self.entries.iter().map(|entry| entry.bytes).sum(),
            instances: self.entries.iter().filter(configs).filter(in_instance).count(),
        }
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(MANIFEST_FILE);
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::Failed(error.to_string()))?;
        file::write_atomically(&path, text.as_bytes()).map_err(|error| Error::from_io(&path, &error))
    }

    pub(super) fn read(folder: &Path) -> Result<Self> {
        let place = folder.display().to_string();
        let text = file::read_text(&folder.join(MANIFEST_FILE), LARGEST_LIST)
            .map_err(|_| Error::NoBackup(place.clone()))?;
        let bad = |why: String| Error::BadBackup { what: place.clone(), why };
        let list: Self = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        if list.schema != MANIFEST_SCHEMA_VERSION {
            return Err(bad(format!(
                "has schema {}, but this version reads schema {MANIFEST_SCHEMA_VERSION}",
                list.schema
            )));
        }
        Ok(list)
    }

    /// Verifies that the listed and the existing files are the same.
    pub(super) fn check_entries(&self, found: &[BackupEntry]) -> Result<()> {
        let by_path = |entries: &[BackupEntry]| -> BTreeMap<String, BackupEntry> {
            entries.iter().map(|entry| (entry.path.clone(), entry.clone())).collect()
        };
        let (listed, there) = (by_path(&self.entries), by_path(found));
        let lost = listed.keys().find(|path| !there.contains_key(*path)).map(|path| (path, "is missing"));
        let new = there.keys().find(|path| !listed.contains_key(*path)).map(|path| (path, "is not listed"));
        let other = || listed.iter().find(|(path, entry)| there[*path] != **entry);
        let wrong = lost.or(new).or_else(|| other().map(|(path, _)| (path, "was changed")));
        wrong.map_or(Ok(()), |(what, why)| Err(Error::BadBackup { what: what.clone(), why: why.to_owned() }))
    }
}

/// Opens regular files only: opening a pipe without a writer would block forever.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Describes a file by the hash of its content, and a link by the hash of its target.
pub(super) fn describe_file(path: String, at: &Path) -> io::Result<BackupEntry> {
    if at.is_symlink() {
        return Ok(describe_link(path, fs::read_link(at)?.as_os_str()));
    }
    describe_content(path, &mut open_regular(at)?)
}

pub(super) fn describe_link(path: String, target: &OsStr) -> BackupEntry {
    let target = target.to_string_lossy();
    BackupEntry { path, bytes: 0, hash: format!("link {}", encode_hex(&Sha256::digest(target.as_bytes()))) }
}

pub(super) fn describe_content(path: String, file: &mut File) -> io::Result<BackupEntry> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut block = vec![0; HASH_BLOCK_BYTES];
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            return Ok(BackupEntry { path, bytes, hash: encode_hex(&hash.finalize()) });
        }
        hash.update(&block[..read]);
        bytes += read as u64;
    }
}
