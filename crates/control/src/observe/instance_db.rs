//! Where an instance stores its data: in a local database file or in PostgreSQL.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::id::InstanceId;
use polyclaw_store::registry::InstanceRecord;

use crate::config::edit;
use crate::control::{ConfigLoader, Control};
use crate::file::{self, FileStamp};
use crate::instance_paths::InstancePaths;

/// Whether each instance has a database file, with the stamp of the config that says so.
#[derive(Default)]
pub(crate) struct InstanceDbCache(Mutex<HashMap<InstanceId, (FileStamp, bool)>>);

impl InstanceDbCache {
    fn get(&self, id: &InstanceId, stamp: FileStamp) -> Option<bool> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).filter(|(of, _)| *of == stamp).map(|(_, has_file)| *has_file)
    }

    fn insert(&self, id: InstanceId, stamp: FileStamp, has_file: bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, (stamp, has_file));
    }
}

impl Control {
    /// Returns whether the instance uses a local database file. Cached until the config changes, because every event
    /// poll asks this for every instance.
    pub(super) async fn has_db_file(&self, one: &InstanceRecord) -> bool {
        let place = self.instance_paths(one);
        let Some(stamp) = file::read_stamp(&place.config_file()) else { return true };
        if let Some(known) = self.instance_dbs.get(&one.id, stamp) {
            return known;
        }
        let load = Arc::clone(&self.load);
        let read = tokio::task::spawn_blocking(move || config_has_db_file(&load, &place)).await;
        let read = read.ok().flatten();
        if let Some(has_file) = read {
            self.instance_dbs.insert(one.id.clone(), stamp, has_file);
        }
        read.unwrap_or(true)
    }
}

/// Reads the setting from the config; `None` if it is unreadable. TOML is parsed without resolving secrets, which may
/// be slow. JSON needs the full loader.
fn config_has_db_file(load: &ConfigLoader, place: &InstancePaths) -> Option<bool> {
    let text = file::read_text(&place.config_file(), file::MAX_CONFIG_BYTES).ok()?;
    match edit::parse(&text) {
        Ok(config) => Some(config.get("store").and_then(|store| store.get("url")).is_none()),
        Err(_) => Some(load(place.path(), &text).ok()?.store.url.is_none()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use polyclaw_domain::config;

    use super::*;

    fn at(text: &str) -> (tempfile::TempDir, InstancePaths) {
        let dir = tempfile::tempdir().unwrap();
        let place = InstancePaths::from_folder(dir.path().to_owned());
        fs::write(place.config_file(), text).unwrap();
        (dir, place)
    }

    #[test]
    fn store_location_is_read_without_resolving_secrets() {
        let load: ConfigLoader = Arc::new(|_, _| panic!("secrets are looked up"));
        for (text, expected) in [
            ("[store]\nurl = \"secret:database\"\n", false),
            ("store = { url = \"env:DATABASE\" }\n", false),
            ("[providers.openai]\napi_key = \"keyring:openai\"\n", true),
            ("", true),
        ] {
            let (_dir, place) = at(text);
            assert_eq!(config_has_db_file(&load, &place), Some(expected), "{text}");
        }
    }

    #[test]
    fn store_location_is_read_from_json_but_not_broken_config() {
        let load: ConfigLoader =
            Arc::new(|_, text| config::load(text, "config.toml", &|_| Ok(String::new())));
        for (text, expected) in [
            (r#"{ "store": { "url": "postgres://localhost/x" } }"#, Some(false)),
            ("{}", Some(true)),
            ("[store", None),
        ] {
            let (_dir, place) = at(text);
            assert_eq!(config_has_db_file(&load, &place), expected, "{text}");
        }
    }

    #[test]
    fn cached_store_location_is_dropped_when_config_changes() {
        let (kept, id) = (InstanceDbCache::default(), InstanceId::new("one"));
        let (_dir, place) = at("");
        let before = file::read_stamp(&place.config_file()).unwrap();
        kept.insert(id.clone(), before, true);
        assert_eq!(kept.get(&id, before), Some(true));
        fs::write(place.config_file(), "[store]\n").unwrap();
        assert_eq!(kept.get(&id, file::read_stamp(&place.config_file()).unwrap()), None);
    }
}
