//! The key of the secret store: generated once, kept in the system's keyring, or in a file if there is none.

use std::fs;

use polyclaw_domain::config::Secret;
use polyclaw_domain::hex::{decode_hex, encode_hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::locked_store;
use super::seal::{self, KeyBytes};
use crate::failure::CommandFailure;
use crate::home::{Home, access_failure, write_private};
use crate::ids::random_bytes;
use crate::keyring;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyPlace {
    Keyring,
    File,
}

impl KeyPlace {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Keyring => "the system's keyring",
            Self::File => "a file next to the token",
        }
    }
}

pub struct StoreKey(KeyBytes);

impl StoreKey {
    pub fn generate() -> Self {
        Self(random_bytes())
    }

    /// Returns an ID that identifies the key without revealing it.
    pub fn id(&self) -> String {
        encode_hex(&Sha256::new().chain_update("polyclaw secrets key\0").chain_update(self.0).finalize()[..6])
    }

    pub fn seal(&self, name: &str, value: &Secret) -> Result<String, CommandFailure> {
        seal::seal_value(&self.0, name, value)
    }

    pub fn open(&self, name: &str, sealed: &str) -> Result<Secret, CommandFailure> {
        seal::open_value(&self.0, name, sealed)
    }

    pub fn find_key(home: &Home, id: &str, place: KeyPlace) -> Result<Self, CommandFailure> {
        let found = match place {
            KeyPlace::File => keys_in_file(home)?.into_iter().find(|key| key.id() == id),
            KeyPlace::Keyring => {
                keyring::find_entry(&keyring_entry(id)).map_err(lost_key)?.and_then(|text| Self::parse(&text))
            }
        };
        found.filter(|key| key.id() == id).ok_or_else(|| lost_key("it does not exist".to_owned()))
    }

    /// Saves the key before anything is encrypted with it. `other` is a key that must stay available.
    pub fn save_key(&self, home: &Home, other: Option<&Self>) -> Result<KeyPlace, CommandFailure> {
        if keyring::is_available()
            && keyring::store_entry(&keyring_entry(&self.id()), &encode_hex(&self.0)).is_ok()
        {
            return Ok(KeyPlace::Keyring);
        }
        write_key_file(home, &[Some(self), other].into_iter().flatten().collect::<Vec<_>>())?;
        Ok(KeyPlace::File)
    }

    /// Removes the key once nothing is encrypted with it.
    pub fn remove_key(
        &self,
        home: &Home,
        place: KeyPlace,
        (new, new_place): (&Self, KeyPlace),
    ) -> Result<(), CommandFailure> {
        match (place, new_place) {
            (_, KeyPlace::File) => write_key_file(home, &[new])?,
            (KeyPlace::File, KeyPlace::Keyring) => {
                let path = home.secrets_key();
                fs::remove_file(&path).map_err(|error| access_failure(&path, &error))?;
            }
            (KeyPlace::Keyring, KeyPlace::Keyring) => {}
        }
        if place == KeyPlace::Keyring {
            // Errors are ignored: a leftover entry decrypts nothing.
            let _ = keyring::remove_entry(&keyring_entry(&self.id()));
        }
        Ok(())
    }

    fn parse(text: &str) -> Option<Self> {
        decode_hex(text.trim())?.try_into().ok().map(Self)
    }
}

fn keyring_entry(id: &str) -> String {
    format!("store-key-{id}")
}

fn keys_in_file(home: &Home) -> Result<Vec<StoreKey>, CommandFailure> {
    let path = home.secrets_key();
    let text = fs::read_to_string(&path).map_err(|error| lost_key(format!("{}: {error}", path.display())))?;
    Ok(text.lines().filter_map(StoreKey::parse).collect())
}

fn write_key_file(home: &Home, keys: &[&StoreKey]) -> Result<(), CommandFailure> {
    let path = home.secrets_key();
    let lines: String = keys.iter().map(|key| encode_hex(&key.0) + "\n").collect();
    write_private(&path, &lines).map_err(|error| access_failure(&path, &error))
}

fn lost_key(why: String) -> CommandFailure {
    locked_store(
        format!("cannot get the key of the secret store: {why}"),
        "unlock the keyring, or restore secrets.key; if the key is lost, delete secrets.json in the home and set \
         each value again",
    )
}
