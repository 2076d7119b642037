//! Model files: their identity, and the check against the SHA-256 that names their folder.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use polyclaw_domain::hex::{decode_hex, encode_hex};
use sha2::{Digest, Sha256};

use super::CorruptModelFile;

/// Distinguishes a file from one that replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileIdentity {
    /// Returns `None` if there is no file.
    pub fn from_path(path: &Path) -> Option<Self> {
        let meta = fs::metadata(path).ok()?;
        let changed = (meta.ctime(), meta.ctime_nsec());
        Some(Self { device: meta.dev(), inode: meta.ino(), bytes: meta.len(), changed })
    }
}

fn open_file(path: &Path) -> Result<File, CorruptModelFile> {
    File::open(path).map_err(|error| file_error(path, &error))
}

/// Opens a file. If its folder is named by a SHA-256, as for pulled weights, the file must have that hash.
pub(super) fn open_pinned(path: &Path) -> Result<File, CorruptModelFile> {
    match pinned_sha256(path) {
        Some(pinned) => open_verified(path, pinned),
        None => open_file(path),
    }
}

fn pinned_sha256(path: &Path) -> Option<&str> {
    let folder = path.parent()?.file_name()?.to_str()?;
    decode_hex(folder).filter(|hash| hash.len() == 32).map(|_| folder)
}

/// Opens a file that must have this SHA-256.
pub(super) fn open_verified(path: &Path, pinned: &str) -> Result<File, CorruptModelFile> {
    let mut file = open_file(path)?;
    let found = file_sha256(&mut file).map_err(|error| file_error(path, &error))?;
    match found.eq_ignore_ascii_case(pinned) {
        true => Ok(file),
        false => Err(CorruptModelFile::new("its SHA-256 does not match the pinned one")),
    }
}

/// Hashes the whole file and rewinds it.
pub fn file_sha256(file: &mut File) -> io::Result<String> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => hash.update(&piece[..count]),
        }
    }
    file.rewind()?;
    Ok(encode_hex(&hash.finalize()))
}

fn file_error(path: &Path, error: &io::Error) -> CorruptModelFile {
    CorruptModelFile::new(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::generate::EmbeddedEngine;
    use super::super::synthetic;
    use super::*;

    fn root(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("polyclaw-{test}-{}", std::process::id()))
    }

    fn put(file: &Path, bytes: &[u8]) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }

    /// The model with one bit of its last tensor flipped.
    fn flipped(mut model: Vec<u8>) -> Vec<u8> {
        *model.last_mut().unwrap() ^= 1;
        model
    }

    #[test]
    fn flipped_bit_is_refused_in_pinned_model() {
        let model = synthetic::model_file();
        let root = root("pinned");
        let file = root.join(encode_hex(&Sha256::digest(&model))).join("tiny.gguf");
        put(&file, &model);
        assert!(EmbeddedEngine::open(&file).is_ok());
        put(&file, &flipped(model));
        let damaged = EmbeddedEngine::open(&file).err().unwrap().to_string();
        assert_eq!(damaged, "this model file cannot be used: its SHA-256 does not match the pinned one");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn unpinned_folder_name_skips_hash_check() {
        let root = root("unpinned");
        let file = root.join("tiny.gguf");
        put(&file, &flipped(synthetic::model_file()));
        assert!(EmbeddedEngine::open(&file).is_ok());
        fs::remove_dir_all(&root).unwrap();
        assert!(EmbeddedEngine::open(&file).is_err());
    }
}
