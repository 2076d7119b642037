//! Imports the home of an OpenClaw gateway as an instance: completely or not at all, and only once.

mod history;
mod source;
mod workspace;

use std::path::PathBuf;
use std::sync::Arc;

use polyclaw_domain::config::{self, Config, ConfigErrors, ExternalReference as Reference, Secret};
use polyclaw_domain::instance::{InstanceName, RestartPolicy};
use polyclaw_domain::openclaw::{self, OpenclawInputs, OpenclawTranslation, TranslationNotes};
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::scope::DmScope;
use polyclaw_domain::time::Millis;
use polyclaw_store::Tx;
use polyclaw_store::registry::imports::{self, ImportCompletion, StoredImport};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::ControlCaller;
use crate::config::edit;
use crate::control::{Control, run_to_completion};
use crate::create::{make_instance_folders, write_file};
use crate::error::{Error, Result};
use crate::file;
use crate::instance_paths::InstancePaths;
use crate::view::{InstanceChange, InstanceSnapshot};
use history::ImportedConversation;
use source::OpenClawHome;
use workspace::{OutsideWorkspaces, WorkspaceFolder};

/// Stores a secret of the instance in a folder.
pub type SecretKeeper =
    Arc<dyn Fn(&std::path::Path, &str, &Secret) -> std::result::Result<(), String> + Send + Sync>;

/// The source and the options of an import.
#[derive(Clone, Debug)]
pub struct ImportRequest {
    /// A config file, or the folder it is in.
    pub path: PathBuf,
    /// The name of the instance. Defaults to the name of the folder.
    pub name: Option<String>,
    /// The port of the instance. Defaults to the first free port from 18801.
    pub port: Option<u16>,
    /// Only reports what would be imported and changes nothing.
    pub dry_run: bool,
    pub with_secrets: bool,
    /// Also copies workspaces outside the config's folder.
    pub allow_outside: bool,
}

/// What an import found. It contains no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeImportReport {
    pub name: String,
    pub agents: Vec<String>,
    pub providers: Vec<String>,
    /// As `channel:account`.
    pub channels: Vec<String>,
    pub bindings: usize,
    pub schedules: usize,
    pub workspaces: usize,
    /// Each copied folder with its destination.
    #[serde(default)]
    pub folders: Vec<String>,
    pub sessions: usize,
    pub messages: usize,
    /// Names under which secrets are stored.
    pub secrets: Vec<String>,
    pub notes: TranslationNotes,
}

#[derive(Clone, Debug)]
pub struct ImportOutcome {
    /// `None` for a dry run.
    pub run: Option<String>,
    pub instance: Option<InstanceSnapshot>,
    /// Whether the same source was imported before, so that nothing was changed.
    pub already: bool,
    pub report: HomeImportReport,
}

/// Everything read from the source and its translation. Nothing is written yet.
struct ImportPlan {
    source: OpenClawHome,
    name: InstanceName,
    config: Value,
    secrets: Vec<(String, Secret)>,
    folders: Vec<WorkspaceFolder>,
    conversations: Vec<ImportedConversation>,
    report: HomeImportReport,
}

impl Control {
    pub async fn import_home(&self, by: &ControlCaller, order: ImportRequest) -> Result<ImportOutcome> {
        let (control, by) = (self.clone(), by.clone());
        run_to_completion(async move { control.run_import(&by, order).await }).await
    }

    /// Lists imports, newest first, after the given start time and id.
    pub async fn list_imports(
        &self,
        behind: Option<(Millis, String)>,
        limit: usize,
    ) -> Result<Vec<StoredImport>> {
        let read = move |tx: &mut Tx<'_>| imports::list(tx, behind.clone(), limit);
        Ok(self.db.read(read).await?)
    }

    async fn run_import(&self, by: &ControlCaller, order: ImportRequest) -> Result<ImportOutcome> {
        let reader = self.clone();
        let (plan, dry_run) = (order.clone(), order.dry_run);
        let plan = run_blocking(move || reader.plan_import(&plan)).await?;
        if let Some(before) = self.find_earlier_import(&plan.source).await? {
            return Ok(before);
        }
        let _turn = self.creation_lock.lock().await;
        let port = self.choose_port(&plan.name, order.port).await?;
        if dry_run {
            return Ok(ImportOutcome { run: None, instance: None, already: false, report: plan.report });
        }
        let run = self.ids.next_id();
        let (id, source, digest) = (run.clone(), plan.source.config_path(), plan.source.digest.clone());
        let now = self.now();
        self.db.write(move |tx| imports::insert_running(tx, &id, (&source, &digest), now)).await?;
        let made = self.create_from_plan(by, &run, plan, port).await;
        if made.is_err() {
            let (id, now) = (run, self.now());
            self.db.write(move |tx| imports::roll_back(tx, &id, now)).await?;
        }
        made
    }

    /// Finds an earlier import of the same source whose instance still exists.
    async fn find_earlier_import(&self, source: &OpenClawHome) -> Result<Option<ImportOutcome>> {
        let (place, digest) = (source.config_path(), source.digest.clone());
        let run = self.db.read(move |tx: &mut Tx<'_>| imports::find_last_done(tx, &place, &digest)).await?;
        let Some(StoredImport { id, instance: Some(instance), report: Some(report), .. }) = run else {
            return Ok(None);
        };
        let report = serde_json::from_str(&report).unwrap_or_default();
        let instance = Some(self.get(instance.as_str()).await?);
        Ok(Some(ImportOutcome { run: Some(id), instance, already: true, report }))
    }

    async fn create_from_plan(
        &self,
        by: &ControlCaller,
        run: &str,
        plan: ImportPlan,
        port: u16,
    ) -> Result<ImportOutcome> {
        let one = self.new_instance(plan.name.clone(), port, RestartPolicy::default());
        let place = self.instance_paths(&one);
        let text = format_config(&plan.config, port)?;
        let (maker, at, report) = (self.clone(), place.clone(), plan.report.clone());
        let (secrets, folders) = (plan.secrets, plan.folders);
        let mut built = run_blocking(move || maker.build_folder(&at, &text, &secrets, &folders)).await;
        if built.is_ok() {
            built = history::write_conversations(&place, &*self.ids, plan.conversations).await;
        }
        if built.is_ok() {
            built = file::sync_filesystem(place.path()).map_err(|error| Error::from_io(place.path(), &error));
        }
        let stored = serde_json::to_string(&report).map_err(|error| Error::Failed(error.to_string()))?;
        let done = ImportCompletion {
            id: run.to_owned(),
            instance: one.id.clone(),
            report: stored,
            now: self.now(),
        };
        self.commit_import(by, &one, built, done).await?;
        let view =
            self.publish_change(&one.id, |instance| InstanceChange::InstanceCreated { instance }).await?;
        Ok(ImportOutcome { run: Some(run.to_owned()), instance: Some(view), already: false, report })
    }

    /// Reads the whole source. Blocks.
    fn plan_import(&self, order: &ImportRequest) -> Result<ImportPlan> {
        let source = OpenClawHome::open(&order.path)?;
        let name = InstanceName::parse(&order.name.clone().unwrap_or_else(|| source.name()))?;
        let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
        let mut notes = TranslationNotes::default();
        let translated = openclaw::translate_config(OpenclawInputs {
            config: source.config.clone(),
            jobs: source.read_cron_jobs(&mut notes),
            variables: source.read_variables(),
            paired: source.read_paired(&mut notes),
            profiles: source.read_profiles(),
            is_set: &is_set,
            with_secrets: order.with_secrets,
        });
        let OpenclawTranslation { config, secrets, agents, renamed, notes: more } = translated;
        notes.extend(more);
        let outside =
            if order.allow_outside { OutsideWorkspaces::Allowed } else { OutsideWorkspaces::Refused };
        let (home, ours) = (self.user_home.as_deref(), (self.home.as_path(), outside));
        let folders = workspace::find_workspaces(&source.root, home, &agents, ours, &mut notes)?;
        let redactor = Redactor::new(secrets.values().map(Secret::expose));
        let conversations =
            history::read_conversations(&source.root, &agents, &renamed, (&redactor, &mut notes));
        let config = check_translated_config(config, &mut notes)?;
        let report = HomeImportReport {
            name: name.to_string(),
            agents: agents.iter().map(|files| files.id.to_string()).collect(),
            providers: table_keys(&config["providers"]),
            channels: list_accounts(&config["channels"]),
            bindings: config["bindings"].as_array().map_or(0, Vec::len),
            schedules: config["cron"].as_array().map_or(0, Vec::len),
            workspaces: folders.len(),
            folders: folders.iter().map(WorkspaceFolder::describe_copy).collect(),
            sessions: conversations.len(),
            messages: conversations.iter().map(|one| one.messages.len()).sum(),
            secrets: secrets.keys().cloned().collect(),
            notes,
        };
        let secrets = secrets.into_iter().collect();
        Ok(ImportPlan { source, name, config, secrets, folders, conversations, report })
    }

    /// Builds the folder with everything except conversations. Blocks.
    fn build_folder(
        &self,
        place: &InstancePaths,
        text: &str,
        secrets: &[(String, Secret)],
        folders: &[WorkspaceFolder],
    ) -> Result<()> {
        make_instance_folders(place)?;
        for (name, value) in secrets {
            (self.keep_secret)(place.path(), name, value).map_err(Error::Failed)?;
        }
        folders.iter().try_for_each(|folder| folder.copy_to(&place.workspace_folder()))?;
        (self.load)(place.path(), text).map_err(Error::BadConfig)?;
        write_file(&place.config_file(), text.as_bytes())
    }
}

async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::Failed(error.to_string())))
}

fn format_config(config: &Value, port: u16) -> Result<String> {
    let with_port = edit::merge_patch(config::first_run_text(), &json!({ "gateway": { "port": port } }))?;
    edit::merge_patch(&with_port, config)
}

/// Returns a config that a daemon can load. If several people would share a conversation implicitly, each gets a
/// separate one.
fn check_translated_config(mut config: Value, notes: &mut TranslationNotes) -> Result<Value> {
    let is_shared = |errors: &ConfigErrors| errors.0.iter().all(|error| error.path == "session.dm_scope");
    match load_translated_config(&config) {
        Ok(loaded)
            if loaded.session.dm_scope.is_none()
                && loaded.session.effective_dm_scope(&loaded.channels, &loaded.bindings) != DmScope::Main =>
        {
            config["session"]["dm_scope"] = json!("per-channel-peer");
            notes.note_changed(
                "session.dmScope",
                "several people may write: each gets a separate conversation",
            );
            Ok(config)
        }
        Ok(_) => Ok(config),
        Err(errors) if is_shared(&errors) => {
            config["session"]["dm_scope"] = json!("per-channel-peer");
            notes.note_changed(
                "session.dmScope",
                "several people may write: each gets a separate conversation",
            );
            load_translated_config(&config).map(|_| config).map_err(Error::BadConfig)
        }
        Err(errors) => Err(Error::BadConfig(errors)),
    }
}

/// Loads the config as a daemon would, although the stored secrets do not exist yet.
fn load_translated_config(config: &Value) -> std::result::Result<Config, ConfigErrors> {
    let text = format_config(config, *polyclaw_domain::instance::ASSIGNABLE_PORTS.start());
    let look_up = |reference: Reference<'_>| match reference {
        Reference::Env(name) => std::env::var(name).map_err(|_| "is not set".to_owned()),
        // Each reference resolves to a different value, so that two accounts are not taken for one.
        Reference::File(name) | Reference::Keyring(name) | Reference::Stored(name) => {
            Ok(format!("kept {name}"))
        }
    };
    config::load(&text.unwrap_or_default(), "config.toml", &look_up)
}

fn table_keys(table: &Value) -> Vec<String> {
    table.as_object().map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

fn list_accounts(channels: &Value) -> Vec<String> {
    let each = table_keys(channels).into_iter();
    let of = |channel: String| {
        let names = table_keys(&channels[&channel]).into_iter();
        names.map(|account| format!("{channel}:{account}")).collect::<Vec<_>>()
    };
    each.flat_map(of).collect()
}
