//! Brings the home of an OpenClaw gateway in as an instance of ours: all of it or nothing, and once.

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

use crate::access::Caller;
use crate::config::edit;
use crate::control::{Control, to_its_end};
use crate::create::{lay_out, write};
use crate::error::{Error, Result};
use crate::file;
use crate::place::Place;
use crate::view::{Change, View};
use history::Conversation;
use source::Source;
use workspace::{Folder, Outside};

/// Keeps a secret of the instance in a folder.
pub type Keeper =
    Arc<dyn Fn(&std::path::Path, &str, &Secret) -> std::result::Result<(), String> + Send + Sync>;

/// What is to be brought in, and how.
#[derive(Clone, Debug)]
pub struct Order {
    /// A config file, or the folder it is in.
    pub path: PathBuf,
    /// What the instance is called; the folder's name if not given.
    pub name: Option<String>,
    /// Where it listens; the first free port from 18801 on if not given.
    pub port: Option<u16>,
    /// Nothing is changed: the report says what would be.
    pub dry_run: bool,
    pub with_secrets: bool,
    /// Workspaces that are not in the folder of the config are copied too.
    pub allow_outside: bool,
}

/// What was found. There is no secret in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub name: String,
    pub agents: Vec<String>,
    pub providers: Vec<String>,
    /// As `channel:account`.
    pub channels: Vec<String>,
    pub bindings: usize,
    pub schedules: usize,
    pub workspaces: usize,
    /// Each folder that is copied, and where to.
    #[serde(default)]
    pub folders: Vec<String>,
    pub sessions: usize,
    pub messages: usize,
    /// The names under which secrets are kept.
    pub secrets: Vec<String>,
    pub notes: TranslationNotes,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    /// `None` for a dry run.
    pub run: Option<String>,
    pub instance: Option<View>,
    /// The same was brought in before: nothing was changed.
    pub already: bool,
    pub report: Report,
}

/// All that was read, and what is made of it. Nothing is written yet.
struct Plan {
    source: Source,
    name: InstanceName,
    config: Value,
    secrets: Vec<(String, Secret)>,
    folders: Vec<Folder>,
    conversations: Vec<Conversation>,
    report: Report,
}

impl Control {
    pub async fn import(&self, by: &Caller, order: Order) -> Result<Outcome> {
        let (control, by) = (self.clone(), by.clone());
        to_its_end(async move { control.bring_in(&by, order).await }).await
    }

    /// The newest first, behind one: when it was begun, and its id.
    pub async fn imports(&self, behind: Option<(Millis, String)>, limit: usize) -> Result<Vec<StoredImport>> {
        let read = move |tx: &mut Tx<'_>| imports::list(tx, behind.clone(), limit);
        Ok(self.db.read(read).await?)
    }

    async fn bring_in(&self, by: &Caller, order: Order) -> Result<Outcome> {
        let reader = self.clone();
        let (plan, dry_run) = (order.clone(), order.dry_run);
        let plan = unblocked(move || reader.plan(&plan)).await?;
        if let Some(before) = self.before(&plan.source).await? {
            return Ok(before);
        }
        let _turn = self.making.lock().await;
        let port = self.choose_port(&plan.name, order.port).await?;
        if dry_run {
            return Ok(Outcome { run: None, instance: None, already: false, report: plan.report });
        }
        let run = self.ids.next_id();
        let (id, source, digest) = (run.clone(), plan.source.place(), plan.source.digest.clone());
        let now = self.now();
        self.db.write(move |tx| imports::insert_running(tx, &id, (&source, &digest), now)).await?;
        let made = self.make(by, &run, plan, port).await;
        if made.is_err() {
            let (id, now) = (run, self.now());
            self.db.write(move |tx| imports::roll_back(tx, &id, now)).await?;
        }
        made
    }

    /// The run that brought the same in, where its instance is still there.
    async fn before(&self, source: &Source) -> Result<Option<Outcome>> {
        let (place, digest) = (source.place(), source.digest.clone());
        let run = self.db.read(move |tx: &mut Tx<'_>| imports::find_last_done(tx, &place, &digest)).await?;
        let Some(StoredImport { id, instance: Some(instance), report: Some(report), .. }) = run else {
            return Ok(None);
        };
        let report = serde_json::from_str(&report).unwrap_or_default();
        let instance = Some(self.get(instance.as_str()).await?);
        Ok(Some(Outcome { run: Some(id), instance, already: true, report }))
    }

    async fn make(&self, by: &Caller, run: &str, plan: Plan, port: u16) -> Result<Outcome> {
        let one = self.fresh(plan.name.clone(), port, RestartPolicy::default());
        let place = self.place(&one);
        let text = text_of(&plan.config, port)?;
        let (maker, at, report) = (self.clone(), place.clone(), plan.report.clone());
        let (secrets, folders) = (plan.secrets, plan.folders);
        let mut built = unblocked(move || maker.build(&at, &text, &secrets, &folders)).await;
        if built.is_ok() {
            built = history::write(&place, &*self.ids, plan.conversations).await;
        }
        if built.is_ok() {
            built = file::sync(place.path()).map_err(|error| Error::files(place.path(), &error));
        }
        let stored = serde_json::to_string(&report).map_err(|error| Error::Failed(error.to_string()))?;
        let done = ImportCompletion {
            id: run.to_owned(),
            instance: one.id.clone(),
            report: stored,
            now: self.now(),
        };
        self.settle_import(by, &one, built, done).await?;
        let view = self.announce(&one.id, |instance| Change::InstanceCreated { instance }).await?;
        Ok(Outcome { run: Some(run.to_owned()), instance: Some(view), already: false, report })
    }

    /// Reads everything. Blocks.
    fn plan(&self, order: &Order) -> Result<Plan> {
        let source = Source::find(&order.path)?;
        let name = InstanceName::parse(&order.name.clone().unwrap_or_else(|| source.name()))?;
        let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
        let mut notes = TranslationNotes::default();
        let translated = openclaw::translate_config(OpenclawInputs {
            config: source.config.clone(),
            jobs: source.jobs(&mut notes),
            variables: source.variables(),
            paired: source.paired(&mut notes),
            profiles: source.profiles(),
            is_set: &is_set,
            with_secrets: order.with_secrets,
        });
        let OpenclawTranslation { config, secrets, agents, renamed, notes: more } = translated;
        notes.extend(more);
        let outside = if order.allow_outside { Outside::Allowed } else { Outside::Refused };
        let (home, ours) = (self.user_home.as_deref(), (self.home.as_path(), outside));
        let folders = workspace::find(&source.root, home, &agents, ours, &mut notes)?;
        let redactor = Redactor::new(secrets.values().map(Secret::expose));
        let conversations = history::read(&source.root, &agents, &renamed, (&redactor, &mut notes));
        let config = checked(config, &mut notes)?;
        let report = Report {
            name: name.to_string(),
            agents: agents.iter().map(|files| files.id.to_string()).collect(),
            providers: keys(&config["providers"]),
            channels: accounts(&config["channels"]),
            bindings: config["bindings"].as_array().map_or(0, Vec::len),
            schedules: config["cron"].as_array().map_or(0, Vec::len),
            workspaces: folders.len(),
            folders: folders.iter().map(Folder::named).collect(),
            sessions: conversations.len(),
            messages: conversations.iter().map(|one| one.said.len()).sum(),
            secrets: secrets.keys().cloned().collect(),
            notes,
        };
        let secrets = secrets.into_iter().collect();
        Ok(Plan { source, name, config, secrets, folders, conversations, report })
    }

    /// The folder with all that is in it but what was said. Blocks.
    fn build(
        &self,
        place: &Place,
        text: &str,
        secrets: &[(String, Secret)],
        folders: &[Folder],
    ) -> Result<()> {
        lay_out(place)?;
        for (name, value) in secrets {
            (self.keep)(place.path(), name, value).map_err(Error::Failed)?;
        }
        folders.iter().try_for_each(|folder| folder.copy(&place.workspace()))?;
        (self.load)(place.path(), text).map_err(Error::BadConfig)?;
        write(&place.config(), text.as_bytes())
    }
}

async fn unblocked<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::Failed(error.to_string())))
}

fn text_of(config: &Value, port: u16) -> Result<String> {
    let with_port = edit::merge(config::first_run_text(), &json!({ "gateway": { "port": port } }))?;
    edit::merge(&with_port, config)
}

/// The config as a daemon could load it. Where people would share a conversation without having been told, each gets
/// one of their own.
fn checked(mut config: Value, notes: &mut TranslationNotes) -> Result<Value> {
    let is_shared = |errors: &ConfigErrors| errors.0.iter().all(|error| error.path == "session.dm_scope");
    match load(&config) {
        Ok(loaded)
            if loaded.session.dm_scope.is_none()
                && loaded.session.effective_dm_scope(&loaded.channels, &loaded.bindings) != DmScope::Main =>
        {
            config["session"]["dm_scope"] = json!("per-channel-peer");
            notes.note_changed(
                "session.dmScope",
                "several people may write: each has a conversation of their own",
            );
            Ok(config)
        }
        Ok(_) => Ok(config),
        Err(errors) if is_shared(&errors) => {
            config["session"]["dm_scope"] = json!("per-channel-peer");
            notes.note_changed(
                "session.dmScope",
                "several people may write: each has a conversation of their own",
            );
            load(&config).map(|_| config).map_err(Error::BadConfig)
        }
        Err(errors) => Err(Error::BadConfig(errors)),
    }
}

/// As a daemon would, but that kept secrets are not there yet.
fn load(config: &Value) -> std::result::Result<Config, ConfigErrors> {
    let text = text_of(config, *polyclaw_domain::instance::ASSIGNABLE_PORTS.start());
    let look_up = |reference: Reference<'_>| match reference {
        Reference::Env(name) => std::env::var(name).map_err(|_| "is not set".to_owned()),
        // Each its own: two accounts are not taken for one.
        Reference::File(name) | Reference::Keyring(name) | Reference::Stored(name) => {
            Ok(format!("kept {name}"))
        }
    };
    config::load(&text.unwrap_or_default(), "config.toml", &look_up)
}

fn keys(table: &Value) -> Vec<String> {
    table.as_object().map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

fn accounts(channels: &Value) -> Vec<String> {
    let each = keys(channels).into_iter();
    let of = |channel: String| {
        let names = keys(&channels[&channel]).into_iter();
        names.map(|account| format!("{channel}:{account}")).collect::<Vec<_>>()
    };
    each.flat_map(of).collect()
}
