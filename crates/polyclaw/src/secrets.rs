//! The instance's own store of secrets: one file of sealed values, whose key is in the system's keyring or in a file
//! beside the token. Names can be listed without the key; a value is never shown again.

mod key;
mod seal;
pub mod typed;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use polyclaw_domain::config::Secret;
use serde::{Deserialize, Serialize};

use crate::failure::{Exit, Failure};
use crate::home::{Home, make_private, refused, write_private};
use key::{Key, Place};

/// Longest value: a key file, not a document.
pub const LONGEST: usize = 64 * 1024;
const SCHEMA: u32 = 1;

/// What is on the disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    schema: u32,
    key: Named,
    secrets: BTreeMap<String, String>,
}

/// Which key opens it, and where that is.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    id: String,
    place: Place,
}

pub struct Secrets<'a>(&'a Home);

impl<'a> Secrets<'a> {
    pub fn of(home: &'a Home) -> Self {
        Self(home)
    }

    pub fn names(&self) -> Result<Vec<String>, Failure> {
        Ok(self.read()?.map(|sealed| sealed.secrets.into_keys().collect()).unwrap_or_default())
    }

    /// Where the key is, for people. `None`: nothing is stored yet.
    pub fn key_place(&self) -> Result<Option<&'static str>, Failure> {
        Ok(self.read()?.map(|sealed| sealed.key.place.describe()))
    }

    /// Every value there is, by name.
    pub fn open(&self) -> Result<BTreeMap<String, Secret>, Failure> {
        let Some(sealed) = self.read()? else { return Ok(BTreeMap::new()) };
        let key = self.key_of(&sealed.key)?;
        let opened = sealed.secrets.iter().map(|(name, value)| Ok((name.clone(), key.open(name, value)?)));
        opened.collect()
    }

    /// Keeps a value; one of the same name is replaced.
    pub fn set(&self, name: &str, value: &Secret) -> Result<(), Failure> {
        let _lock = self.lock()?;
        let (mut sealed, key) = self.ensure()?;
        sealed.secrets.insert(name.to_owned(), key.seal(name, value)?);
        self.write(&sealed)
    }

    pub fn remove(&self, name: &str) -> Result<(), Failure> {
        let _lock = self.lock()?;
        let mut sealed = self.read()?.ok_or_else(|| unknown(name))?;
        sealed.secrets.remove(name).ok_or_else(|| unknown(name))?;
        self.write(&sealed)
    }

    /// Seals everything anew under a key nobody has seen. The old one opens the store until the new store is there,
    /// so that a crash in between loses nothing.
    pub fn rotate(&self) -> Result<usize, Failure> {
        let _lock = self.lock()?;
        let (sealed, old) = self.ensure()?;
        let values = self.open()?;
        let new = Key::fresh();
        let place = new.keep(self.0, Some(&old))?;
        let resealed = values.iter().map(|(name, value)| Ok((name.clone(), new.seal(name, value)?)));
        let next = Sealed {
            schema: SCHEMA,
            key: Named { id: new.id(), place },
            secrets: resealed.collect::<Result<_, Failure>>()?,
        };
        self.write(&next)?;
        old.forget(self.0, sealed.key.place, (&new, place))?;
        Ok(values.len())
    }

    fn ensure(&self) -> Result<(Sealed, Key), Failure> {
        if let Some(sealed) = self.read()? {
            let key = self.key_of(&sealed.key)?;
            return Ok((sealed, key));
        }
        let key = Key::fresh();
        let named = Named { id: key.id(), place: key.keep(self.0, None)? };
        Ok((Sealed { schema: SCHEMA, key: named, secrets: BTreeMap::new() }, key))
    }

    fn key_of(&self, named: &Named) -> Result<Key, Failure> {
        Key::find(self.0, &named.id, named.place)
    }

    fn read(&self) -> Result<Option<Sealed>, Failure> {
        let path = self.0.secrets_file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(&path, &error)),
        };
        let sealed: Sealed = serde_json::from_str(&text).map_err(|error| {
            locked(format!("{} can not be read: {error}", path.display()), "restore it from a copy")
        })?;
        if sealed.schema != SCHEMA {
            let what =
                format!("{} is of schema {}, this program reads {SCHEMA}", path.display(), sealed.schema);
            return Err(locked(what, "use the polyclaw that wrote it"));
        }
        Ok(Some(sealed))
    }

    fn write(&self, sealed: &Sealed) -> Result<(), Failure> {
        let path = self.0.secrets_file();
        let text =
            serde_json::to_string_pretty(sealed).map_err(|error| locked(error.to_string(), "report it"))?;
        write_private(&path, &format!("{text}\n")).map_err(|error| refused(&path, &error))
    }

    /// One change at a time: two that read the same store would each lose the other's.
    fn lock(&self) -> Result<File, Failure> {
        make_private(self.0.path())?;
        let path = self.0.path().join("secrets.lock");
        let open = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        open.and_then(|file| file.lock().map(|()| file)).map_err(|error| refused(&path, &error))
    }
}

/// A name that can be written in a config and shown on a line.
pub fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) {
        return Ok(());
    }
    // Not quoted: whoever mistakes the place for the value's has typed the value here.
    Err(Failure::usage("that is not a name for a secret").hint(
        "up to 64 letters, digits, `_`, `.` and `-`; the value is asked for, or read from standard input",
    ))
}

pub fn unknown(name: &str) -> Failure {
    Failure::new(Exit::NotFound, "unknown_secret", format!("there is no secret {name}"))
        .hint("`polyclaw secrets list` shows what there is")
}

pub(crate) fn locked(what: impl Into<String>, hint: &str) -> Failure {
    Failure::failed("secrets_locked", what).hint(hint)
}

#[cfg(test)]
mod tests;
