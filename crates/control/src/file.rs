//! Atomic file writes, and folders private to their owner.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use polyclaw_folder::{FolderCopy, FolderHandle, SkippedEntry};

const FOLDER_MODE: u32 = 0o700;
pub const FILE_MODE: u32 = 0o600;

/// The modification time and size of a file, to detect changes without reading it.
pub type FileStamp = (SystemTime, u64);

pub fn read_stamp(path: &Path) -> Option<FileStamp> {
    fs::metadata(path).and_then(|meta| Ok((meta.modified()?, meta.len()))).ok()
}

/// Creates a folder and missing parents, accessible to the owner only.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
}

/// The size limit of small files: secrets, tokens, process notes.
pub const MAX_SMALL_FILE_BYTES: u64 = 64 * 1024;
/// The size limit of a config.
pub const MAX_CONFIG_BYTES: u64 = 4 * 1024 * 1024;

/// Reads the text of a regular file of at most `most` bytes. A pipe, device or socket is rejected and never blocks.
/// Links to files are followed.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    open_regular_file(path)?.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")))
    } else {
        Ok(text)
    }
}

/// Opens a regular file or a link to one. It never waits for a pipe or wakes a device.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Atomically writes a file that only its owner can read: after a crash it has the old content or the new.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = path_with_suffix(path, "writing");
    write_new_file(&partial, bytes)?;
    fs::rename(&partial, path)?;
    sync_folder(path)
}

/// Like `write_atomically`, and keeps the previous file as a backup. If the path is a link, its target is replaced
/// and the link stays.
pub fn replace_with_backup(path: &Path, bytes: &[u8], backup: &Path) -> io::Result<()> {
    let real = if path.is_symlink() { fs::canonicalize(path)? } else { path.to_owned() };
    if real != path {
        // The target may be on another disk, where a hard link is impossible.
        write_atomically(backup, &fs::read(&real)?)?;
        return write_atomically(&real, bytes);
    }
    let partial = path_with_suffix(path, "writing");
    write_new_file(&partial, bytes)?;
    // A hard link to the old file: the path exists at every moment.
    let kept = path_with_suffix(backup, "keeping");
    let _ = fs::remove_file(&kept);
    match fs::hard_link(path, &kept) {
        Ok(()) => fs::rename(&kept, backup)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::rename(&partial, path)?;
    sync_folder(path)
}

fn write_new_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A leftover of a crash may be readable by others, so it is created again.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().create_new(true).write(true).mode(FILE_MODE).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn path_with_suffix(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(extension);
    path.with_file_name(name)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Copies a folder except the folders `without`. Links stay links; anything but files, folders and links is skipped.
/// Returns the entries that could not be copied: agents may write the folder meanwhile, and must not prevent a copy.
pub fn copy_folder(from: &Path, to: &Path, without: &[PathBuf]) -> io::Result<Vec<SkippedEntry>> {
    make_private(to)?;
    let (source, target) = (FolderHandle::open_base(from)?, FolderHandle::open_base(to)?);
    let is_excluded = |inside: &Path| without.contains(&from.join(inside));
    FolderCopy::new(&is_excluded, &mut |_, _| Ok(())).run(&source, &target)
}

/// Like [`copy_folder`], but fails if an entry cannot be copied.
pub fn copy_whole_folder(from: &Path, to: &Path, without: &[PathBuf]) -> io::Result<()> {
    match copy_folder(from, to, without)?.first() {
        None => Ok(()),
        Some(skipped) => {
            Err(io::Error::other(format!("cannot copy {}: {}", skipped.path.display(), skipped.reason)))
        }
    }
}

/// Flushes everything written below a folder to disk.
pub fn sync_filesystem(folder: &Path) -> io::Result<()> {
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
    fn replaced_file_keeps_one_backup_and_no_leftovers() {
        let dir = tempfile::tempdir().unwrap();
        let (path, backup) = (dir.path().join("a.toml"), dir.path().join("a.toml.bak"));
        replace_with_backup(&path, b"1", &backup).unwrap();
        assert!(!backup.exists(), "there was none before");
        replace_with_backup(&path, b"2", &backup).unwrap();
        replace_with_backup(&path, b"3", &backup).unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&backup).unwrap()), (b"3".to_vec(), b"2".to_vec()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        assert_eq!(["file", "link"].map(|name| read_text(&at(name), 4).unwrap()), ["text", "text"]);
        assert_eq!(read_text(&at("file"), 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        for no_file in [at("pipe"), dir.path().to_owned(), "/dev/zero".into()] {
            assert_eq!(
                read_text(&no_file, MAX_SMALL_FILE_BYTES).unwrap_err().kind(),
                io::ErrorKind::InvalidInput
            );
        }
    }

    #[test]
    fn replacing_a_symlink_writes_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link, backup) =
            (dir.path().join("real"), dir.path().join("link"), dir.path().join("backup"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace_with_backup(&link, b"new", &backup).unwrap();
        assert!(link.is_symlink());
        assert_eq!([&real, &backup].map(|path| fs::read_to_string(path).unwrap()), ["new", "old"]);
    }
}
