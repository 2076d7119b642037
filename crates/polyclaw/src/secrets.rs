//! The instance's secret store: one file of encrypted values. Its key is in the system's keyring, or in a file next
//! to the token. Names can be listed without the key; a value is never shown again.

mod key;
mod seal;
pub mod secret_prompt;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use polyclaw_domain::config::Secret;
use serde::{Deserialize, Serialize};

use crate::failure::{CommandFailure, FailureExit};
use crate::home::{Home, access_failure, make_private, write_private};
use key::{KeyPlace, StoreKey};

/// Maximum length of a value: enough for a key file.
pub const MAX_SECRET_LEN: usize = 64 * 1024;
const STORE_SCHEMA: u32 = 1;

/// The stored file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealedSecrets {
    schema: u32,
    key: KeyRef,
    secrets: BTreeMap<String, String>,
}

/// Identifies the key of the store and where it is kept.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyRef {
    id: String,
    place: KeyPlace,
}

pub struct SecretStore<'a>(&'a Home);

impl<'a> SecretStore<'a> {
    pub fn for_home(home: &'a Home) -> Self {
        Self(home)
    }

    pub fn names(&self) -> Result<Vec<String>, CommandFailure> {
        Ok(self.read_store()?.map(|sealed| sealed.secrets.into_keys().collect()).unwrap_or_default())
    }

    /// Returns where the key is kept, for people. `None` if nothing is stored yet.
    pub fn key_place(&self) -> Result<Option<&'static str>, CommandFailure> {
        Ok(self.read_store()?.map(|sealed| sealed.key.place.describe()))
    }

    /// Decrypts every value, by name.
    pub fn open_all(&self) -> Result<BTreeMap<String, Secret>, CommandFailure> {
        let Some(sealed) = self.read_store()? else { return Ok(BTreeMap::new()) };
        let key = self.find_key(&sealed.key)?;
        let opened = sealed.secrets.iter().map(|(name, value)| Ok((name.clone(), key.open(name, value)?)));
        opened.collect()
    }

    /// Stores a value, replacing one of the same name.
    pub fn set(&self, name: &str, value: &Secret) -> Result<(), CommandFailure> {
        let _lock = self.lock_store()?;
        let (mut sealed, key) = self.ensure_store()?;
        sealed.secrets.insert(name.to_owned(), key.seal(name, value)?);
        self.write_store(&sealed)
    }

    pub fn remove(&self, name: &str) -> Result<(), CommandFailure> {
        let _lock = self.lock_store()?;
        let mut sealed = self.read_store()?.ok_or_else(|| unknown_secret(name))?;
        sealed.secrets.remove(name).ok_or_else(|| unknown_secret(name))?;
        self.write_store(&sealed)
    }

    /// Re-encrypts everything with a new key. The old key is kept until the new store is written, so a crash in
    /// between loses nothing.
    pub fn rotate_key(&self) -> Result<usize, CommandFailure> {
        let _lock = self.lock_store()?;
        let (sealed, old) = self.ensure_store()?;
        let values = self.open_all()?;
        let new = StoreKey::generate();
        let place = new.save_key(self.0, Some(&old))?;
        let resealed = values.iter().map(|(name, value)| Ok((name.clone(), new.seal(name, value)?)));
        let next = SealedSecrets {
            schema: STORE_SCHEMA,
            key: KeyRef { id: new.id(), place },
            secrets: resealed.collect::<Result<_, CommandFailure>>()?,
        };
        self.write_store(&next)?;
        old.remove_key(self.0, sealed.key.place, (&new, place))?;
        Ok(values.len())
    }

    fn ensure_store(&self) -> Result<(SealedSecrets, StoreKey), CommandFailure> {
        if let Some(sealed) = self.read_store()? {
            let key = self.find_key(&sealed.key)?;
            return Ok((sealed, key));
        }
        let key = StoreKey::generate();
        let named = KeyRef { id: key.id(), place: key.save_key(self.0, None)? };
        Ok((SealedSecrets { schema: STORE_SCHEMA, key: named, secrets: BTreeMap::new() }, key))
    }

    fn find_key(&self, named: &KeyRef) -> Result<StoreKey, CommandFailure> {
        StoreKey::find_key(self.0, &named.id, named.place)
    }

    fn read_store(&self) -> Result<Option<SealedSecrets>, CommandFailure> {
        let path = self.0.secrets_file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(access_failure(&path, &error)),
        };
        let sealed: SealedSecrets = serde_json::from_str(&text).map_err(|error| {
            locked_store(format!("cannot read {}: {error}", path.display()), "restore it from a backup")
        })?;
        if sealed.schema != STORE_SCHEMA {
            let what = format!(
                "{} has schema {}, but this version reads schema {STORE_SCHEMA}",
                path.display(),
                sealed.schema
            );
            return Err(locked_store(what, "use the Polyclaw version that wrote it"));
        }
        Ok(Some(sealed))
    }

    fn write_store(&self, sealed: &SealedSecrets) -> Result<(), CommandFailure> {
        let path = self.0.secrets_file();
        let text = serde_json::to_string_pretty(sealed)
            .map_err(|error| locked_store(error.to_string(), "report it"))?;
        write_private(&path, &format!("{text}\n")).map_err(|error| access_failure(&path, &error))
    }

    /// Serializes changes. Two concurrent ones would each lose the other's.
    fn lock_store(&self) -> Result<File, CommandFailure> {
        make_private(self.0.path())?;
        let path = self.0.path().join("secrets.lock");
        let open = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        open.and_then(|file| file.lock().map(|()| file)).map_err(|error| access_failure(&path, &error))
    }
}

/// Checks that a name can be written in a config and shown on one line.
pub fn check_name(name: &str) -> Result<(), CommandFailure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) {
        return Ok(());
    }
    // The name is not quoted: somebody may have typed the value in its place.
    Err(CommandFailure::usage("invalid secret name").hint(
        "use up to 64 letters, digits, `_`, `.` and `-`; the value is prompted for, or read from standard input",
    ))
}

pub fn unknown_secret(name: &str) -> CommandFailure {
    CommandFailure::new(FailureExit::NotFound, "unknown_secret", format!("there is no secret {name}"))
        .hint("`polyclaw secrets list` lists the stored secrets")
}

pub(crate) fn locked_store(what: impl Into<String>, hint: &str) -> CommandFailure {
    CommandFailure::failed("secrets_locked", what).hint(hint)
}

#[cfg(test)]
mod tests;
