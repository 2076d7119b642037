//! A backup of a whole home, made while its instances run: configs, encrypted secrets, files, databases and the
//! registry. A backup is a folder with a manifest. Backups and restored homes are created completely or not at all.

mod manifest;
mod walk;

use std::fs;
use std::path::{Path, PathBuf};

use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::file;
use manifest::MANIFEST_FILE;
pub use manifest::{BackupEntry, BackupManifest, LeftOutEntry};
use walk::BackupWalk;

/// The suffix of an unfinished folder. The next attempt replaces one that a crash left.
const UNFINISHED_SUFFIX: &str = "unfinished";

/// Counts of what a backup contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupTotals {
    pub files: usize,
    pub databases: usize,
    pub bytes: u64,
    pub instances: usize,
}

/// Whether the keys of stored secrets are in the backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKeys {
    /// The backup alone does not reveal stored secrets.
    LeftOut,
    Included,
}

/// The file with the key of an instance's stored secrets.
const SECRETS_KEY_FILE: &str = "secrets.key";
const SECRETS_FILE: &str = "secrets.json";

/// Returns the path of each missing key whose stored secrets are in the backup.
pub fn find_missing_keys(list: &BackupManifest) -> Vec<String> {
    let paths = list.entries.iter().map(|entry| Path::new(&entry.path));
    let stored = paths.filter(|path| path.file_name().is_some_and(|name| name == SECRETS_FILE));
    let keys = stored.map(|path| path.with_file_name(SECRETS_KEY_FILE).to_string_lossy().into_owned());
    keys.filter(|key| !list.entries.iter().any(|entry| entry.path == *key)).collect()
}

/// Copies a home to a folder that does not exist yet. Blocks.
pub fn create_backup(
    home: &Path,
    to: &Path,
    (version, now): (&str, Millis),
    keys: SecretKeys,
) -> Result<BackupManifest> {
    if !home.join("config.toml").exists() && !home.join("cp").exists() {
        return Err(Error::NoBackup(home.display().to_string()));
    }
    let partial = make_partial_folder(to)?;
    let mut walk = BackupWalk::new(home, &partial, keys);
    let made = walk.copy_home().and_then(|()| {
        let mut list = BackupManifest::new(version, now);
        (list.entries, list.left_out) = (walk.entries, walk.left_out);
        list.write(&partial)?;
        Ok(list)
    });
    finish_or_discard(made, &partial, to)
}

/// Verifies that every file of a backup exists unchanged. Blocks.
pub fn check_backup(from: &Path) -> Result<BackupManifest> {
    let list = BackupManifest::read(from)?;
    list.check_entries(&walk::list_entries(from)?)?;
    Ok(list)
}

/// Restores a backup to a home that does not exist yet. Blocks.
pub fn restore_backup(from: &Path, home: &Path) -> Result<BackupManifest> {
    let list = check_backup(from)?;
    let partial = make_partial_folder(home)?;
    let copied = file::copy_whole_folder(from, &partial, &[]).map_err(|error| Error::from_io(from, &error));
    let made = copied.and_then(|()| {
        // The copy is verified too, not only its source.
        list.check_entries(&walk::list_entries(&partial)?)?;
        fs::remove_file(partial.join(MANIFEST_FILE)).map_err(|error| Error::from_io(&partial, &error))?;
        Ok(list)
    });
    finish_or_discard(made, &partial, home)
}

/// Makes the folder to work in. Fails if the final path is in use.
fn make_partial_folder(to: &Path) -> Result<PathBuf> {
    let taken = to.exists() && fs::read_dir(to).map_or(true, |mut entries| entries.next().is_some());
    if taken {
        return Err(Error::TargetExists(to.display().to_string()));
    }
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(UNFINISHED_SUFFIX);
    let partial = to.with_file_name(name);
    let made = polyclaw_tree::remove_tree(&partial).and_then(|()| file::make_private(&partial));
    made.map_err(|error| Error::from_io(&partial, &error))?;
    Ok(partial)
}

fn finish_or_discard(made: Result<BackupManifest>, partial: &Path, to: &Path) -> Result<BackupManifest> {
    let put = |list: BackupManifest| {
        file::sync_filesystem(partial)?;
        if to.exists() {
            fs::remove_dir(to)?;
        }
        fs::rename(partial, to)?;
        let above = to.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::File::open(above)?.sync_all()?;
        Ok(list)
    };
    let done = made.and_then(|list| put(list).map_err(|error: std::io::Error| Error::from_io(to, &error)));
    if done.is_err() {
        let _ = polyclaw_tree::remove_tree(partial);
    }
    done
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use polyclaw_folder::FolderHandle;

    use super::*;

    /// Deeper than a path can say, as one command of an agent makes it.
    #[test]
    fn backup_leaves_out_and_reports_too_deep_folders() {
        let room = tempfile::tempdir().unwrap();
        let (home, to) = (room.path().join("home"), room.path().join("to"));
        fs::create_dir_all(home.join("workspace")).unwrap();
        fs::write(home.join("config.toml"), "schema = 1\n").unwrap();
        fs::write(home.join("workspace/note"), "kept").unwrap();
        let mut at = FolderHandle::open_base(&home.join("workspace")).unwrap();
        for _ in 0..400 {
            at = at.open_or_create_child(OsStr::new("nested-folder-20-long")).unwrap();
        }
        let made = create_backup(&home, &to, ("1", Millis(0)), SecretKeys::Included).unwrap();
        assert_eq!(made.left_out.len(), 1, "{:?}", made.left_out);
        assert!(made.left_out[0].path.starts_with("workspace/nested-folder-20-long/"));
        let back = room.path().join("back");
        assert_eq!(restore_backup(&to, &back).unwrap(), made);
        assert_eq!(fs::read_to_string(back.join("workspace/note")).unwrap(), "kept");
    }
}
