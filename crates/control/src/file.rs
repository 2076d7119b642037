//! Files that are there whole or not at all, and folders for their owner alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const FOLDER_MODE: u32 = 0o700;
pub const FILE_MODE: u32 = 0o600;

/// When a file was written, and its size: another file has another, as far as can be told without reading it.
pub type Stamp = (SystemTime, u64);

pub fn stamp(path: &Path) -> Option<Stamp> {
    fs::metadata(path).and_then(|meta| Ok((meta.modified()?, meta.len()))).ok()
}

/// A folder for its owner alone, with those above it that are not there.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
}

/// Writes a file that only its owner reads. After a crash it is the old one or the new one, whole.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = beside(path, "writing");
    put(&partial, bytes)?;
    fs::rename(&partial, path)?;
    sync_folder(path)
}

/// The same, and what was there before stays under another name.
pub fn replace(path: &Path, bytes: &[u8], backup: &Path) -> io::Result<()> {
    let partial = beside(path, "writing");
    put(&partial, bytes)?;
    // A second name for the old file: at no moment is there none under the first.
    let kept = beside(backup, "keeping");
    let _ = fs::remove_file(&kept);
    match fs::hard_link(path, &kept) {
        Ok(()) => fs::rename(&kept, backup)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::rename(&partial, path)?;
    sync_folder(path)
}

fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // What a crash left may be somebody else's to read: it is made anew.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().create_new(true).write(true).mode(FILE_MODE).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(extension);
    path.with_file_name(name)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Copies a folder with all that is in it but the folders `without`. Links stay links; what is no file, folder or link
/// is left out.
pub fn copy_folder(from: &Path, to: &Path, without: &[PathBuf]) -> io::Result<()> {
    make_private(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else if kind.is_dir() {
            if !without.contains(&entry.path()) {
                copy_folder(&entry.path(), &target, without)?;
            }
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// What was written below a folder is on the disk when this returns.
pub fn sync(folder: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(File::open(folder)?)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::sync();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_before_is_kept_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let (path, backup) = (dir.path().join("a.toml"), dir.path().join("a.toml.bak"));
        replace(&path, b"1", &backup).unwrap();
        assert!(!backup.exists(), "there was none before");
        replace(&path, b"2", &backup).unwrap();
        replace(&path, b"3", &backup).unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&backup).unwrap()), (b"3".to_vec(), b"2".to_vec()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
