//! The key of the store: made once, kept in the system's keyring where there is one, else in a file of its own.

use std::fs;

use polyclaw_domain::config::Secret;
use polyclaw_domain::hex::{decode_hex, encode_hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::locked;
use super::seal::{self, Bytes};
use crate::failure::Failure;
use crate::home::{Home, refused, write_private};
use crate::ids::random;
use crate::keyring;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    Keyring,
    File,
}

impl Place {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Keyring => "the system's keyring",
            Self::File => "a file beside the token",
        }
    }
}

pub struct Key(Bytes);

impl Key {
    pub fn fresh() -> Self {
        Self(random())
    }

    /// Names the key without telling anything of it.
    pub fn id(&self) -> String {
        encode_hex(&Sha256::new().chain_update("polyclaw secrets key\0").chain_update(self.0).finalize()[..6])
    }

    pub fn seal(&self, name: &str, value: &Secret) -> Result<String, Failure> {
        seal::seal(&self.0, name, value)
    }

    pub fn open(&self, name: &str, sealed: &str) -> Result<Secret, Failure> {
        seal::open(&self.0, name, sealed)
    }

    pub fn find(home: &Home, id: &str, place: Place) -> Result<Self, Failure> {
        let found = match place {
            Place::File => in_file(home)?.into_iter().find(|key| key.id() == id),
            Place::Keyring => keyring::find(&entry(id)).map_err(lost)?.and_then(|text| Self::parse(&text)),
        };
        found.filter(|key| key.id() == id).ok_or_else(|| lost("it is not there".to_owned()))
    }

    /// Keeps it before anything is sealed with it. `beside`: the key that must still be found as well.
    pub fn keep(&self, home: &Home, beside: Option<&Self>) -> Result<Place, Failure> {
        if keyring::is_there() && keyring::store(&entry(&self.id()), &encode_hex(&self.0)).is_ok() {
            return Ok(Place::Keyring);
        }
        write(home, &[Some(self), beside].into_iter().flatten().collect::<Vec<_>>())?;
        Ok(Place::File)
    }

    /// Takes it away when nothing is sealed with it any more.
    pub fn forget(&self, home: &Home, place: Place, (new, new_place): (&Self, Place)) -> Result<(), Failure> {
        match (place, new_place) {
            (_, Place::File) => write(home, &[new])?,
            (Place::File, Place::Keyring) => {
                let path = home.secrets_key();
                fs::remove_file(&path).map_err(|error| refused(&path, &error))?;
            }
            (Place::Keyring, Place::Keyring) => {}
        }
        if place == Place::Keyring {
            // One more entry that opens nothing does no harm.
            let _ = keyring::remove(&entry(&self.id()));
        }
        Ok(())
    }

    fn parse(text: &str) -> Option<Self> {
        decode_hex(text.trim())?.try_into().ok().map(Self)
    }
}

fn entry(id: &str) -> String {
    format!("store-key-{id}")
}

fn in_file(home: &Home) -> Result<Vec<Key>, Failure> {
    let path = home.secrets_key();
    let text = fs::read_to_string(&path).map_err(|error| lost(format!("{}: {error}", path.display())))?;
    Ok(text.lines().filter_map(Key::parse).collect())
}

fn write(home: &Home, keys: &[&Key]) -> Result<(), Failure> {
    let path = home.secrets_key();
    let lines: String = keys.iter().map(|key| encode_hex(&key.0) + "\n").collect();
    write_private(&path, &lines).map_err(|error| refused(&path, &error))
}

fn lost(why: String) -> Failure {
    locked(
        format!("the key of the store of secrets can not be had: {why}"),
        "unlock the keyring, or restore secrets.key; if the key is gone for good, delete secrets.json in the home and set \
         each value again",
    )
}
