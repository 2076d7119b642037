//! Folders that agents can write. No program that runs outside their sandbox may be loaded from them.

use std::path::{Component, Path, PathBuf};

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// All folders that agents can write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentFolders(Vec<PathBuf>);

impl AgentFolders {
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(folders.into_iter().collect())
    }

    /// Returns whether a path leads into such a folder. A path that does not exist yet is checked by its name.
    pub fn contains(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = resolved(path);
        self.0.iter().any(|folder| path.starts_with(real(folder)))
    }

    /// Returns the first word of a command that names a path in such a folder, relative to the command's working folder.
    pub fn find_planted_word<'a>(&self, command: &'a [String], start: &Path) -> Option<&'a String> {
        command.iter().find(|word| paths_in(word).any(|path| self.contains(&start.join(path))))
    }

    /// Returns the daemon's search path without relative entries and entries in such folders.
    pub fn search_path(&self) -> String {
        safe_search_path(|entry| self.contains(entry))
    }
}

/// Returns the daemon's search path without relative entries and entries that agents can write.
pub(crate) fn safe_search_path(is_written: impl Fn(&Path) -> bool) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let kept = std::env::split_paths(&path).filter(|entry| entry.is_absolute() && !is_written(entry));
    let kept = std::env::join_paths(kept).ok().and_then(|path| path.into_string().ok());
    kept.filter(|path| !path.is_empty()).unwrap_or_else(|| DEFAULT_PATH.to_owned())
}

/// Returns the parts of a word that may be paths: the word, the value of an option (`--file=/a`, `-I/a`), and the items of
/// a list.
pub(crate) fn paths_in(word: &str) -> impl Iterator<Item = &str> {
    let joined = word.find('/').filter(|_| word.starts_with('-')).map(|at| &word[at..]);
    let parts = word.match_indices(['=', ':', ',', ';', ' ', '@']).map(|(at, _)| &word[at + 1..]);
    let cut = |part: &'_ str| part.find([',', ';', ' ', ':']).unwrap_or(part.len());
    let whole = std::iter::once(word).chain(joined).chain(parts);
    whole.flat_map(move |part| [part, &part[..cut(part)]]).filter(|part| !part.is_empty())
}

/// Resolves the symbolic links of a path. The part that does not exist yet is kept as written.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let real = |there: &Path| Some((there.canonicalize().ok()?, path.strip_prefix(there).ok()?));
    let (real, missing) = path.ancestors().find_map(real).unwrap_or((PathBuf::new(), path));
    missing.components().fold(real, |mut at, part| {
        match part {
            Component::ParentDir => drop(at.pop()),
            part => at.push(part),
        }
        at
    })
}
