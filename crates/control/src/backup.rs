//! A copy of a whole home, made while its instances run: config, secrets as they lie, files, databases and the registry.
//! It is a folder with a list of what is in it. It is there whole or not at all, and so is what is restored from it.

mod list;
mod walk;

use std::fs;
use std::path::{Path, PathBuf};

use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::file;
use list::LIST;
pub use list::{Entry, List};
use walk::Walk;

/// What is being made has this behind its name; what a crash left under it is made anew.
const UNFINISHED: &str = "unfinished";

/// What is in a backup, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    pub files: usize,
    pub databases: usize,
    pub bytes: u64,
    pub instances: usize,
}

/// Whether the keys of stored secrets are copied with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKeys {
    /// Whoever finds the backup cannot read them.
    LeftOut,
    Included,
}

/// The file with the key of an instance's stored secrets.
const SECRETS_KEY: &str = "secrets.key";
const SECRETS: &str = "secrets.json";

/// Where stored secrets are without their key, by the path that the key belongs at.
pub fn missing_keys(list: &List) -> Vec<String> {
    let paths = list.entries.iter().map(|entry| Path::new(&entry.path));
    let stored = paths.filter(|path| path.file_name().is_some_and(|name| name == SECRETS));
    let keys = stored.map(|path| path.with_file_name(SECRETS_KEY).to_string_lossy().into_owned());
    keys.filter(|key| !list.entries.iter().any(|entry| entry.path == *key)).collect()
}

/// Copies a home to a folder that is not there yet. Blocks.
pub fn backup(home: &Path, to: &Path, (version, now): (&str, Millis), keys: SecretKeys) -> Result<List> {
    if !home.join("config.toml").exists() && !home.join("cp").exists() {
        return Err(Error::NoBackup(home.display().to_string()));
    }
    let partial = begin(to)?;
    let mut walk = Walk::new(home, &partial, keys);
    let made = walk.home().and_then(|()| {
        let list = List::new(version, now, walk.entries);
        list.write(&partial)?;
        Ok(list)
    });
    finish(made, &partial, to)
}

/// Whether everything a backup lists is there as it was. Blocks.
pub fn check(from: &Path) -> Result<List> {
    let list = List::read(from)?;
    list.compare(&walk::listed(from)?)?;
    Ok(list)
}

/// Makes a home of a backup. There must be none. Blocks.
pub fn restore(from: &Path, home: &Path) -> Result<List> {
    let list = check(from)?;
    let partial = begin(home)?;
    let copied = file::copy_folder(from, &partial, &[]).map_err(|error| Error::files(from, &error));
    let made = copied.and_then(|()| {
        // The copy is looked at, not only what it was made from.
        list.compare(&walk::listed(&partial)?)?;
        fs::remove_file(partial.join(LIST)).map_err(|error| Error::files(&partial, &error))?;
        Ok(list)
    });
    finish(made, &partial, home)
}

/// The folder to work in. Nothing may be where it goes in the end.
fn begin(to: &Path) -> Result<PathBuf> {
    let taken = to.exists() && fs::read_dir(to).map_or(true, |mut entries| entries.next().is_some());
    if taken {
        return Err(Error::InTheWay(to.display().to_string()));
    }
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(UNFINISHED);
    let partial = to.with_file_name(name);
    let cleared = if partial.exists() { fs::remove_dir_all(&partial) } else { Ok(()) };
    let made = cleared.and_then(|()| file::make_private(&partial));
    made.map_err(|error| Error::files(&partial, &error))?;
    Ok(partial)
}

fn finish(made: Result<List>, partial: &Path, to: &Path) -> Result<List> {
    let put = |list: List| {
        file::sync(partial)?;
        if to.exists() {
            fs::remove_dir(to)?;
        }
        fs::rename(partial, to)?;
        let above = to.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::File::open(above)?.sync_all()?;
        Ok(list)
    };
    let done = made.and_then(|list| put(list).map_err(|error: std::io::Error| Error::files(to, &error)));
    if done.is_err() {
        let _ = fs::remove_dir_all(partial);
    }
    done
}
