//! Creates instances. A failed creation leaves nothing behind, and the next start removes what a crash left.

use std::collections::HashSet;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use polyclaw_domain::audit::AuditEntry;
use polyclaw_domain::config::{self, Config};
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::{
    ASSIGNABLE_PORTS, DesiredState, InstanceName, RestartPolicy, is_allowed_port,
};
use polyclaw_store::Tx;
use polyclaw_store::registry::imports::{self, ImportCompletion};
use polyclaw_store::registry::{self, InstanceConflict, InstanceRecord};

use crate::access::ControlCaller;
use crate::audit;
use crate::config::edit;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::file;
use crate::instance_paths::{HOME_FOLDER, InstancePaths};
use crate::view::{InstanceChange, InstanceSnapshot};

/// The folder of instances, below the home.
pub const INSTANCES_FOLDER: &str = "cp/instances";

/// The requested properties of a new instance.
#[derive(Clone, Debug, Default)]
pub struct NewInstanceSpec {
    pub name: String,
    pub port: Option<u16>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub restart: Option<RestartPolicy>,
}

impl Control {
    pub async fn create_instance(
        &self,
        by: &ControlCaller,
        spec: &NewInstanceSpec,
    ) -> Result<InstanceSnapshot> {
        let name = InstanceName::parse(&spec.name)?;
        let _turn = self.creation_lock.lock().await;
        let port = self.choose_port(&name, spec.port).await?;
        let one = self.new_instance(name, port, spec.restart.unwrap_or_default());
        let place = self.instance_paths(&one);
        let text = first_config(spec, port)?;
        self.commit_instance(by, "instance.create", &one, || {
            make_instance_folders(&place)?;
            let config = (self.load)(place.path(), &text).map_err(Error::BadConfig)?;
            config.check_default_model("config.toml").map_err(Error::BadConfig)?;
            write_file(&place.config_file(), text.as_bytes())
        })
        .await?;
        self.publish_change(&one.id, |instance| InstanceChange::InstanceCreated { instance }).await
    }

    pub(crate) fn new_instance(
        &self,
        name: InstanceName,
        port: u16,
        restart: RestartPolicy,
    ) -> InstanceRecord {
        let id = format_uuid(&self.ids.fresh_nonce());
        InstanceRecord {
            folder: format!("{INSTANCES_FOLDER}/{id}"),
            id: InstanceId::new(id),
            name,
            port,
            desired_state: DesiredState::Stopped,
            restart,
            broken: None,
            pid: None,
            archived_at: None,
            created_at: self.now(),
            restarting: false,
        }
    }

    /// Makes the folder and then the record. Either both exist afterwards or neither.
    pub(crate) async fn commit_instance(
        &self,
        by: &ControlCaller,
        action: &str,
        one: &InstanceRecord,
        make: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let kept = match make() {
            Ok(()) => self.register_instance(by, action, one, None).await,
            Err(error) => Err(error),
        };
        self.clean_up_creation(one, kept)
    }

    /// Like `commit_instance`, for an import: one commit registers the instance and completes the import.
    pub(crate) async fn commit_import(
        &self,
        by: &ControlCaller,
        one: &InstanceRecord,
        made: Result<()>,
        done: ImportCompletion,
    ) -> Result<()> {
        let kept = match made {
            Ok(()) => self.register_instance(by, "instance.import", one, Some(done)).await,
            Err(error) => Err(error),
        };
        self.clean_up_creation(one, kept)
    }

    fn clean_up_creation(&self, one: &InstanceRecord, kept: Result<()>) -> Result<()> {
        let place = self.instance_paths(one);
        match &kept {
            Ok(()) => drop(fs::remove_file(place.creation_marker())),
            Err(_) => remove_leftover(place.path()),
        }
        kept
    }

    async fn register_instance(
        &self,
        by: &ControlCaller,
        action: &str,
        one: &InstanceRecord,
        done: Option<ImportCompletion>,
    ) -> Result<()> {
        let detail = format!("{} on port {}", one.name, one.port);
        let (row, entry) = (one.clone(), AuditEntry { detail, ..self.audit_entry(by, action, &one.id) });
        let taken = self.db.write(move |tx| {
            let taken = registry::insert(tx, &row)?;
            if taken.is_none() {
                audit::append_optional(tx, Some(&entry))?;
                done.as_ref().map_or(Ok(()), |done| imports::finish_run(tx, done))?;
            }
            Ok(taken)
        });
        check_conflict(taken.await?, one)
    }

    /// Returns the requested port, or the first that neither an instance nor another program uses.
    pub(crate) async fn choose_port(&self, name: &InstanceName, asked: Option<u16>) -> Result<u16> {
        let rows = self.db.read(registry::list).await?;
        let active = || rows.iter().filter(|one| one.archived_at.is_none());
        if active().any(|one| one.name.as_str().eq_ignore_ascii_case(name.as_str())) {
            return Err(Error::NameTaken(name.to_string()));
        }
        if is_uuid(name.as_str()) {
            return Err(Error::NameLikeId(name.to_string()));
        }
        let used: HashSet<u16> = active().map(|one| one.port).chain(self.own_port()).collect();
        let Some(port) = asked else {
            let mut free = ASSIGNABLE_PORTS.filter(|port| !used.contains(port) && is_port_free(*port));
            return free.next().ok_or(Error::NoPortLeft);
        };
        self.check_port_available(port, &used).map(|()| port)
    }

    /// Checks whether an instance may take a new port. `used` holds the ports of the others.
    pub(crate) fn check_port_available(&self, port: u16, used: &HashSet<u16>) -> Result<()> {
        match port {
            port if !is_allowed_port(port) || self.own_port() == Some(port) => Err(Error::BadPort(port)),
            port if used.contains(&port) => Err(Error::PortTaken(port)),
            port if !is_port_free(port) => Err(Error::PortInUse(port)),
            _ => Ok(()),
        }
    }

    /// Registers the instance of the home itself if it is not registered yet. Does not change the home.
    pub async fn adopt_home(&self, by: &ControlCaller, config: &Config) -> Result<InstanceSnapshot> {
        let rows = self.db.read(registry::list).await?;
        if let Some(one) = rows.into_iter().find(|one| one.folder == HOME_FOLDER) {
            return self.build_view(one).await;
        }
        let _turn = self.creation_lock.lock().await;
        let name = InstanceName::parse("main")?;
        let one = InstanceRecord {
            folder: HOME_FOLDER.to_owned(),
            ..self.new_instance(name, config.gateway.port, RestartPolicy::default())
        };
        self.register_instance(by, "instance.adopt", &one, None).await?;
        self.publish_change(&one.id, |instance| InstanceChange::InstanceCreated { instance }).await
    }

    /// Cleans up folders that were being created or removed when a server died.
    pub(crate) async fn sweep_unfinished(&self) -> Result<()> {
        let rows = self.db.read(|tx: &mut Tx<'_>| registry::list(tx)).await?;
        let folder = self.home.join(INSTANCES_FOLDER);
        for entry in fs::read_dir(&folder).map_err(|error| Error::from_io(&folder, &error))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let removed = name.strip_prefix(crate::remove::REMOVED_PREFIX);
            let known = rows.iter().any(|one| one.id.as_str() == removed.unwrap_or(&name));
            let place = InstancePaths::from_folder(entry.path());
            match (removed, known) {
                (Some(id), true) => drop(fs::rename(entry.path(), folder.join(id))),
                (Some(_), false) => remove_leftover(&entry.path()),
                (None, true) => drop(fs::remove_file(place.creation_marker())),
                // Without the marker, somebody may be restoring the folder by hand.
                (None, false) if place.creation_marker().exists() => remove_leftover(&entry.path()),
                // Its creator died before writing the marker. Only an empty folder is removed.
                (None, false) if fs::remove_dir(entry.path()).is_ok() => {}
                (None, false) => {
                    tracing::warn!(folder = %entry.path().display(), "folder of no known instance is ignored");
                }
            }
        }
        Ok(())
    }
}

/// Removes a folder that belongs to no instance. The next start removes what remains.
fn remove_leftover(folder: &Path) {
    if let Err(error) = polyclaw_tree::remove_tree(folder) {
        tracing::warn!(folder = %folder.display(), %error, "could not remove a folder that belongs to no instance");
    }
}

pub(crate) fn check_conflict(taken: Option<InstanceConflict>, one: &InstanceRecord) -> Result<()> {
    match taken {
        None => Ok(()),
        Some(InstanceConflict::Name) => Err(Error::NameTaken(one.name.to_string())),
        Some(InstanceConflict::Port) => Err(Error::PortTaken(one.port)),
    }
}

/// Makes the folders of a new instance, with a marker that is created first and stays until the instance is
/// registered.
pub(crate) fn make_instance_folders(place: &InstancePaths) -> Result<()> {
    let make = |folder: &Path| file::make_private(folder).map_err(|error| Error::from_io(folder, &error));
    make(place.path())?;
    // No temporary file: a kill in between would leave a folder with that file and without a marker.
    fs::File::create(place.creation_marker())
        .map_err(|error| Error::from_io(place.creation_marker(), &error))?;
    place.initial_folders().iter().try_for_each(|folder| make(folder))
}

pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    file::write_atomically(path, bytes).map_err(|error| Error::from_io(path, &error))
}

/// Returns the commented config of a first start with the requested values.
fn first_config(spec: &NewInstanceSpec, port: u16) -> Result<String> {
    let mut patch = serde_json::json!({ "gateway": { "port": port } });
    if let Some(provider) = &spec.provider {
        patch["providers"] = serde_json::json!({ provider: {} });
    }
    if let Some(model) = &spec.model {
        let named = |provider: &String| format!("{provider}/{model}");
        let model =
            spec.provider.as_ref().filter(|_| !model.contains('/')).map_or_else(|| model.clone(), named);
        patch["agents"] = serde_json::json!({ "defaults": { "model": model } });
    }
    edit::merge_patch(config::first_run_text(), &patch)
}

fn is_port_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Ids are UUIDs, so an instance with such a name might not be found by its name.
fn is_uuid(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let are_digits = parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    are_digits && parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
}

/// Formats 32 random hexadecimal digits as a version 4 UUID.
fn format_uuid(digits: &str) -> String {
    let variant = ["8", "9", "a", "b"][usize::from(digits.as_bytes()[16] % 4)];
    let (a, b, c) = (&digits[..8], &digits[8..12], &digits[13..16]);
    format!("{a}-{b}-4{c}-{variant}{}-{}", &digits[17..20], &digits[20..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_ids_are_formatted_as_uuids() {
        let id = format_uuid("0123456789abcdef0123456789abcdef");
        assert_eq!(id, "01234567-89ab-4def-8123-456789abcdef");
        assert!(is_uuid(&id) && is_uuid(&id.to_uppercase()) && !is_uuid("main") && !is_uuid("a-b-c-d-e"));
    }

    /// A kill can leave only an empty or a marked folder, and the next start removes both.
    #[test]
    fn creation_marker_is_written_without_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let place = InstancePaths::from_folder(dir.path().join("one"));
        // The path of a temporary file, if one were used.
        fs::create_dir_all(place.path().join(".creating.writing")).unwrap();
        make_instance_folders(&place).unwrap();
        assert!(place.creation_marker().is_file());
    }

    #[test]
    fn first_config_keeps_comments_and_sets_requested_values() {
        let spec = NewInstanceSpec {
            provider: Some("openai".into()),
            model: Some("gpt-x".into()),
            ..NewInstanceSpec::default()
        };
        let text = first_config(&spec, 18805).unwrap();
        assert!(text.contains("# Who answers as a model."), "{text}");
        let config = config::load(&text, "config.toml", &|_| Ok("x".into())).unwrap();
        assert_eq!(config.gateway.port, 18805);
        assert_eq!(config.agents.defaults.model.unwrap().model.to_string(), "openai/gpt-x");
    }
}
