//! The config of an instance: read with its secrets masked, and written only against the current version.

pub mod edit;
pub mod mask;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hyper::Method;
use polyclaw_domain::audit::{AuditEntry, content_hash};
use polyclaw_domain::config::{Config, ConfigError, ConfigErrors};
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::ProcessState;
use polyclaw_domain::redact::{REDACTION_MARK, Redactor};
use polyclaw_store::registry::{self, InstanceRecord};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::access::ControlCaller;
use crate::control::{Control, run_to_completion};
use crate::error::{Error, Result};
use crate::file;
use crate::instance_paths::InstancePaths;
use crate::view::InstanceProcess;
use mask::{ConfigAudience, MaskedSecret};

/// How long an instance may take to apply a new config.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(20);

/// How long resolving the references of a config may take.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Configs loaded concurrently. A load that takes too long cannot be cancelled, only abandoned: without a limit a
/// caller could keep every core busy with abandoned loads.
pub(crate) const MAX_LOADS: usize = 2;

/// How the references of a config are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceMode {
    /// Files, variables and stored secrets are read.
    Resolved,
    /// Every reference is assumed to resolve, so the caller learns nothing about what exists.
    Assumed,
}

/// The config section of the listener.
const GATEWAY_SECTION: &str = "gateway";

/// A config with its secrets masked.
#[derive(Clone, Debug)]
pub struct MaskedConfig {
    pub etag: String,
    /// The file with its secrets masked.
    pub toml: String,
    pub config: Value,
    pub secrets: Vec<MaskedSecret>,
    /// Why the file cannot be parsed. The positions of its secrets are unknown then, so none of it is shown.
    pub broken: Option<String>,
}

impl MaskedConfig {
    fn from_error(etag: String, error: &Error) -> Self {
        let config = Value::Object(Map::new());
        Self { etag, toml: String::new(), config, secrets: Vec::new(), broken: Some(error.to_string()) }
    }
}

/// The requested change of a config.
#[derive(Clone, Debug)]
pub enum ConfigEdit {
    /// Replaces the whole file.
    Whole(String),
    /// A JSON merge patch.
    Merge(Value),
}

/// Preconditions of a config write.
#[derive(Clone, Debug, Default)]
pub struct WritePrecondition {
    /// The version that the caller read.
    pub etag: Option<String>,
    /// Whether secrets may be added, changed or removed.
    pub may_write_secrets: bool,
}

/// How a config write took effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigWriteOutcome {
    /// The instance is not running and starts with the new config.
    Saved,
    /// The running instance uses the new config.
    Reloaded,
    /// These sections take effect at the next start; the others are already in use.
    RestartRequired(Vec<String>),
}

#[derive(Clone, Debug)]
pub struct WrittenConfig {
    pub etag: String,
    pub outcome: ConfigWriteOutcome,
}

/// A value that a change would alter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfigDifference {
    pub path: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

impl Control {
    pub async fn read_config(&self, word: &str, audience: ConfigAudience) -> Result<MaskedConfig> {
        let one = self.find_instance(word).await?;
        let text = self.read_config_text(&one)?;
        let etag = content_hash(text.as_bytes());
        let mut document = match edit::parse(&text) {
            Ok(document) => document,
            Err(error) => return Ok(MaskedConfig::from_error(etag, &error)),
        };
        let secrets = mask::mask_document(&mut document);
        if audience == ConfigAudience::Reader {
            mask::mask_document_for_reader(&mut document);
            // Generated from its values, so it has no comments.
            document = edit::parse(&edit::merge_patch("", &edit::to_json(document.as_item()))?)?;
        }
        // Comments may contain former secrets, and URLs may contain passwords.
        let redactor = Redactor::default();
        let mut config = edit::to_json(document.as_item());
        redactor.redact_json(&mut config);
        let toml = redactor.redact_text(&document.to_string()).into_owned();
        Ok(MaskedConfig { etag, toml, config, secrets, broken: None })
    }

    pub(crate) fn read_config_text(&self, one: &InstanceRecord) -> Result<String> {
        let path = self.instance_paths(one).config_file();
        match file::read_text(&path, file::MAX_CONFIG_BYTES) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(Error::NoConfig(one.name.to_string()))
            }
            Err(error) => Err(Error::UnreadableConfig { name: one.name.to_string(), why: error.to_string() }),
        }
    }

    /// Loads a config text as the daemon would. Resolving references may be slow, so it runs on a blocking thread and
    /// is given up after a timeout.
    pub(crate) async fn load_config(
        &self,
        place: &InstancePaths,
        text: String,
        references: ReferenceMode,
    ) -> Result<Config> {
        let load = match references {
            ReferenceMode::Resolved => Arc::clone(&self.load),
            ReferenceMode::Assumed => Arc::clone(&self.check),
        };
        let folder = place.path().to_owned();
        let deadline = tokio::time::Instant::now() + LOAD_TIMEOUT;
        let turn = tokio::time::timeout_at(deadline, Arc::clone(&self.loads).acquire_owned()).await;
        let turn = turn.map_err(|_| Error::ConfigsBusy)?.map_err(|error| Error::Failed(error.to_string()))?;
        let loading = tokio::task::spawn_blocking(move || {
            // Held until the load ends, even if the caller has given up.
            let _turn = turn;
            load(&folder, &text)
        });
        match tokio::time::timeout_at(deadline, loading).await {
            Ok(Ok(loaded)) => loaded.map_err(Error::BadConfig),
            Ok(Err(error)) => Err(Error::Failed(error.to_string())),
            Err(_) => Err(Error::from_io(place.config_file(), &std::io::ErrorKind::TimedOut.into())),
        }
    }

    /// Returns every error of a change without writing anything. Text in the errors that looks like a secret is
    /// redacted.
    pub async fn check_config(
        &self,
        word: &str,
        edit: &ConfigEdit,
        references: ReferenceMode,
    ) -> Result<Option<ConfigErrors>> {
        let one = self.find_instance(word).await?;
        let before = self.read_config_text(&one)?;
        let mut errors = match self.draft_config(&one, &before, (edit, true), references).await {
            Ok(_) => return Ok(None),
            Err(Error::BadConfig(errors)) => errors,
            Err(Error::NotToml { line: Some(line), why }) => self.toml_error_at(&one, line, why),
            Err(error) => return Err(error),
        };
        let redactor = self.redactor();
        for error in &mut errors.0 {
            redactor.redact_in_place(&mut error.message);
            redactor.redact_in_place(&mut error.path);
            if let Some(hint) = &mut error.hint {
                redactor.redact_in_place(hint);
            }
        }
        Ok(Some(errors))
    }

    fn toml_error_at(&self, one: &InstanceRecord, line: usize, message: String) -> ConfigErrors {
        let file = self.instance_paths(one).config_file().display().to_string();
        ConfigErrors(vec![ConfigError { file, line: Some(line), path: String::new(), message, hint: None }])
    }

    /// Returns the values that a change would alter, and the number of unchanged values.
    pub async fn compare_config(
        &self,
        word: &str,
        edit: &ConfigEdit,
        audience: ConfigAudience,
    ) -> Result<(Vec<ConfigDifference>, usize)> {
        let one = self.find_instance(word).await?;
        let before = self.read_config_text(&one)?;
        let after = draft_text(&before, edit, true)?;
        let given = find_given_secrets(edit, audience)?;
        // A given secret always counts as a change, so that callers cannot confirm guesses.
        let hidden = |text: &str, stand_in: &dyn Fn(&str) -> String| -> Result<Value> {
            let mut document = edit::parse(text)?;
            for path in mask::find_hidden_paths(&edit::to_json(document.as_item()), audience) {
                edit::set_text(&mut document, &path, &stand_in(&mask::format_path(&path)));
            }
            Ok(edit::to_json(document.as_item()))
        };
        let old = hidden(&before, &|_| mask::MASK.to_owned())?;
        let new = hidden(&after, &|path| {
            if given.iter().any(|one| one == path) {
                format!("{} (new)", mask::MASK)
            } else {
                mask::MASK.to_owned()
            }
        })?;
        let (mut found, mut same) = (Vec::new(), 0);
        compare_values(String::new(), Some(&old), Some(&new), &mut found, &mut same);
        // Redacted like the shown config, because other texts may look like a key too.
        let redactor = Redactor::default();
        let values = found.iter_mut().flat_map(|one| [&mut one.before, &mut one.after]);
        values.flatten().for_each(|value| redactor.redact_json(value));
        Ok((found, same))
    }

    /// Writes a config. The version is checked twice: first without the lock, and again under it.
    pub async fn write_config(
        &self,
        by: &ControlCaller,
        word: &str,
        edit: &ConfigEdit,
        terms: &WritePrecondition,
    ) -> Result<WrittenConfig> {
        let (control, by, word) = (self.clone(), by.clone(), word.to_owned());
        let (edit, terms) = (edit.clone(), terms.clone());
        run_to_completion(async move { control.change_config(&by, &word, &edit, &terms).await }).await
    }

    async fn change_config(
        &self,
        by: &ControlCaller,
        word: &str,
        edit: &ConfigEdit,
        terms: &WritePrecondition,
    ) -> Result<WrittenConfig> {
        let one = self.find_active(word).await?;
        let wanted = terms.etag.clone().filter(|etag| !etag.is_empty()).ok_or(Error::EtagMissing)?;
        check_etag(&self.read_config_text(&one)?, &wanted)?;
        // Writers of one instance are serialized, so that they fail with a stale version and not with a busy lock.
        let turn = self.config_lock(&one.id);
        let _turn = turn.lock().await;
        let _held = self.lock_instance(&one).await?;
        let before = self.read_config_text(&one)?;
        check_etag(&before, &wanted)?;
        let found = content_hash(before.as_bytes());
        let change = (edit, terms.may_write_secrets);
        let (after, config) = self.draft_config(&one, &before, change, ReferenceMode::Resolved).await?;
        self.check_port(&one, &before, &config).await?;
        let etag = content_hash(after.as_bytes());
        let entry = AuditEntry {
            before: Some(found),
            after: Some(etag.clone()),
            detail: one.name.to_string(),
            ..self.audit_entry(by, "config.write", &one.id)
        };
        self.record_audit(entry).await?;
        let place = self.instance_paths(&one);
        write_config_file(&place, &after)?;
        match self.reload_instance(&one, &place, config.gateway.port).await {
            Ok(outcome) => Ok(WrittenConfig { etag, outcome }),
            Err(error) => {
                write_config_file(&place, &before)?;
                let entry = self.audit_entry(by, "config.rollback", &one.id);
                self.record_audit(AuditEntry { before: Some(etag), detail: one.name.to_string(), ..entry })
                    .await?;
                Err(error)
            }
        }
    }

    fn config_lock(&self, id: &InstanceId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.config_locks.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(id.clone()).or_default())
    }

    /// Returns the changed text, and the config the daemon would load from it.
    async fn draft_config(
        &self,
        one: &InstanceRecord,
        before: &str,
        (edit, may_write): (&ConfigEdit, bool),
        references: ReferenceMode,
    ) -> Result<(String, Config)> {
        let (after, place) = (draft_text(before, edit, may_write)?, self.instance_paths(one));
        let config = self.load_config(&place, after.clone(), references).await?;
        // An error that existed before is not reported against this change.
        let was = self.load_config(&place, before.to_owned(), references).await;
        let was_sound = was.is_ok_and(|config| config.check_default_model("config.toml").is_ok());
        if was_sound {
            config.check_default_model("config.toml").map_err(Error::BadConfig)?;
        }
        Ok((after, config))
    }

    /// A changed port must be one that a new instance could get.
    async fn check_port(&self, one: &InstanceRecord, before: &str, config: &Config) -> Result<()> {
        let port = config.gateway.port;
        let was =
            self.load_config(&self.instance_paths(one), before.to_owned(), ReferenceMode::Assumed).await;
        let was = was.map(|config| config.gateway.port);
        if port == one.port || was.is_ok_and(|was| was == port) {
            return Ok(());
        }
        let rows = self.db.read(registry::list).await?;
        let others = rows.iter().filter(|other| other.id != one.id && other.archived_at.is_none());
        self.check_port_available(port, &others.map(|other| other.port).collect())
    }

    /// Reserves the port of a stopped instance, so that no other instance gets it before it starts.
    async fn store_port(&self, one: &InstanceRecord, port: u16) -> Result<()> {
        if port == one.port || self.overridden_port(&one.id).is_some() {
            return Ok(());
        }
        let id = one.id.clone();
        if self.db.write(move |tx| registry::set_port(tx, &id, port)).await? {
            self.refresh_instance(&one.id).await.map(drop)
        } else {
            Err(Error::PortTaken(port))
        }
    }

    /// Asks a running instance to reload its config. It got its port as an argument at start, so it cannot see that
    /// the port changed; that is checked here.
    async fn reload_instance(
        &self,
        one: &InstanceRecord,
        place: &InstancePaths,
        port: u16,
    ) -> Result<ConfigWriteOutcome> {
        if InstanceProcess::for_instance(one, place).process != ProcessState::Ours {
            self.store_port(one, port).await?;
            return Ok(ConfigWriteOutcome::Saved);
        }
        let answered =
            self.request_instance(one, Method::POST, "/api/v1/config/reload", RELOAD_TIMEOUT).await;
        let (status, body) = answered?;
        if status != 200 {
            let why = body["error"]["message"].as_str().unwrap_or("no reason given");
            return Err(Error::ReloadRejected(why.to_owned()));
        }
        let sections = body["restart_required"].as_array().into_iter().flatten();
        let mut sections: Vec<String> = sections.filter_map(Value::as_str).map(str::to_owned).collect();
        let moves = port != one.port && self.overridden_port(&one.id).is_none();
        if moves && !sections.iter().any(|section| section == GATEWAY_SECTION) {
            sections.insert(0, GATEWAY_SECTION.to_owned());
        }
        Ok(if sections.is_empty() {
            ConfigWriteOutcome::Reloaded
        } else {
            ConfigWriteOutcome::RestartRequired(sections)
        })
    }
}

/// Checks the version. `*` matches any.
fn check_etag(text: &str, wanted: &str) -> Result<()> {
    let current = content_hash(text.as_bytes());
    if current == wanted || wanted == "*" { Ok(()) } else { Err(Error::EtagStale { current }) }
}

pub(crate) fn write_config_file(place: &InstancePaths, text: &str) -> Result<()> {
    let path = place.config_file();
    file::replace_with_backup(&path, text.as_bytes(), &place.config_backup())
        .map_err(|error| Error::from_io(path, &error))
}

fn draft_text(before: &str, edit: &ConfigEdit, may_write: bool) -> Result<String> {
    let stored = match (edit::parse(before), edit) {
        (Ok(document), _) => edit::to_json(document.as_item()),
        // A full text replaces an unreadable config, whose secrets cannot be preserved.
        (Err(_), ConfigEdit::Whole(_)) => Value::Null,
        (Err(error), ConfigEdit::Merge(_)) => return Err(error),
    };
    let text = match edit {
        ConfigEdit::Whole(text) => text.clone(),
        ConfigEdit::Merge(patch) => edit::merge_patch(before, patch)?,
    };
    // Redacted text cannot be restored, so it must not be written back.
    if text.contains(REDACTION_MARK) && !before.contains(REDACTION_MARK) {
        return Err(Error::MaskWithoutSecret(vec![REDACTION_MARK.to_owned()]));
    }
    let mut document = edit::parse(&text)?;
    mask::restore_masks(&mut document, &stored, may_write)?;
    Ok(document.to_string())
}

/// Returns the paths at which an edit sets a secret instead of a mask.
fn find_given_secrets(edit: &ConfigEdit, audience: ConfigAudience) -> Result<Vec<String>> {
    let value = match edit {
        ConfigEdit::Merge(patch) => patch.clone(),
        ConfigEdit::Whole(text) => edit::to_json(edit::parse(text)?.as_item()),
    };
    let is_given =
        |path: &Vec<edit::PathStep>| mask::value_at(&value, path).is_some_and(|one| one != mask::MASK);
    Ok(mask::find_hidden_paths(&value, audience)
        .iter()
        .filter(|path| is_given(path))
        .map(|path| mask::format_path(path))
        .collect())
}

fn compare_values(
    path: String,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<ConfigDifference>,
    same: &mut usize,
) {
    // A missing table equals an empty one.
    let none = Map::new();
    let tables = match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => Some((old, new)),
        (None, Some(Value::Object(new))) if !new.is_empty() => Some((&none, new)),
        (Some(Value::Object(old)), None) if !old.is_empty() => Some((old, &none)),
        _ => None,
    };
    if let Some((old, new)) = tables {
        for key in old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))) {
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            compare_values(below, old.get(key), new.get(key), found, same);
        }
    } else if before == after {
        *same += 1;
    } else {
        found.push(ConfigDifference { path, before: before.cloned(), after: after.cloned() });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::sleep;

    use polyclaw_domain::config::load;
    use polyclaw_domain::port::{IdGenerator, WallClock};
    use polyclaw_domain::time::Millis;

    use super::*;
    use crate::control::{ConfigLoader, ControlDependencies};

    struct Fixed;

    impl WallClock for Fixed {
        fn now(&self) -> Millis {
            Millis(0)
        }
    }

    impl IdGenerator for Fixed {
        fn next_id(&self) -> String {
            "1".to_owned()
        }

        fn fresh_nonce(&self) -> String {
            "1".to_owned()
        }
    }

    fn control(home: &std::path::Path, load: ConfigLoader) -> Control {
        Control::open(ControlDependencies {
            home: home.to_owned(),
            clock: Arc::new(Fixed),
            ids: Arc::new(Fixed),
            program: "true".into(),
            check: Arc::clone(&load),
            load,
            environment: Vec::new(),
            home_token: None,
            keep_secret: Arc::new(|_, _, _| Ok(())),
            hung_after: None,
            user_home: None,
        })
        .unwrap()
    }

    #[tokio::test]
    async fn concurrent_config_loads_are_limited() {
        let home = tempfile::tempdir().unwrap();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (running, seen) = (Arc::clone(&now), Arc::clone(&most));
        let control = control(
            home.path(),
            Arc::new(move |_, text| {
                seen.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(50));
                running.fetch_sub(1, Ordering::SeqCst);
                load(text, "config.toml", &|_| Ok(String::new()))
            }),
        );
        let place = InstancePaths::from_folder(home.path().to_owned());
        let read = || control.load_config(&place, String::new(), ReferenceMode::Assumed);
        let all = tokio::join!(read(), read(), read(), read(), read());
        assert!(all.0.is_ok() && all.1.is_ok() && all.2.is_ok() && all.3.is_ok() && all.4.is_ok());
        assert_eq!(most.load(Ordering::SeqCst), MAX_LOADS);
        // Abandoned loads still count.
        let turns = Arc::clone(&control.loads).acquire_many_owned(2).await.unwrap();
        tokio::time::pause();
        let refused = read().await.unwrap_err();
        assert_eq!((refused.code(), refused.action()), ("configs_busy", crate::error::ErrorAction::Retry));
        drop(turns);
    }

    #[test]
    fn config_comparison_lists_changes_and_counts_equal_values() {
        let (old, new) =
            (json!({ "a": { "b": 1, "c": 2 }, "d": [1] }), json!({ "a": { "b": 1, "c": 3 }, "e": 4 }));
        let (mut found, mut same) = (Vec::new(), 0);
        compare_values(String::new(), Some(&old), Some(&new), &mut found, &mut same);
        let paths: Vec<&str> = found.iter().map(|one| one.path.as_str()).collect();
        assert_eq!((paths, same), (vec!["a.c", "d", "e"], 1));
        assert_eq!((&found[1].before, &found[1].after), (&Some(json!([1])), &None));
    }
}
