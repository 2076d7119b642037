//! Observes instances: settings, files, turns and usage. Turns and usage are read from the instance's own SQLite
//! database, whether it runs or not. If the instance uses PostgreSQL it is asked instead, because only it has the
//! credentials.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use hyper::Method;
use polyclaw_domain::briefing;
use polyclaw_domain::budget::usd_to_nanos;
use polyclaw_domain::config::Config;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::time::Millis;
use polyclaw_folder::{FolderHandle, file_size, file_type};
use polyclaw_store::registry::InstanceRecord;
use polyclaw_store::turn_history::{PastTurn, PastTurnFilter, list_past_turns};
use polyclaw_store::usage::{self, GroupedUsage};
use polyclaw_store::{Tx, query_read_only};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::mask;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::file;
use crate::instance_paths::InstancePaths;
use crate::view::InstanceSnapshot;

mod events;
mod instance_db;

pub use events::{EventPositions, InstanceEvent, InstanceEventFilter};
pub(crate) use instance_db::InstanceDbCache;

const OBSERVE_TIMEOUT: Duration = Duration::from_secs(3);

/// The observed value, or the reason why it is unavailable.
pub type ObservedResult<T> = std::result::Result<T, String>;

/// A file that defines an agent's identity or instructions.
#[derive(Clone, Debug, Serialize)]
pub struct BootstrapFile {
    /// The path relative to the workspace, or absolute.
    pub file: String,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct InstanceDetails {
    pub instance: InstanceSnapshot,
    /// The health report of the running daemon.
    pub health: Option<Value>,
    /// The effective config with secrets masked; null if the file cannot be read.
    pub config: Value,
    pub config_error: Option<String>,
    pub bootstrap_files: Vec<BootstrapFile>,
}

/// Usage since a point in time. Sums cover the calls with known values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageSummary {
    pub requests: i64,
    pub unknown: i64,
    pub input: Option<i64>,
    pub output: Option<i64>,
    pub cost_nanos: Option<i64>,
    /// Why usage is unavailable.
    pub unavailable: Option<String>,
}

impl Control {
    pub async fn get_details(&self, word: &str) -> Result<InstanceDetails> {
        let one = self.find_instance(word).await?;
        let instance = self.build_view(one.clone()).await?;
        let health = match instance.pid {
            Some(_) => self
                .request_instance(&one, Method::GET, "/health", OBSERVE_TIMEOUT)
                .await
                .ok()
                .map(|(_, body)| body),
            None => None,
        };
        let (control, place) = (self.clone(), self.instance_paths(&one));
        // Blocking, because reading a secret from a keyring can be slow.
        let read = move || {
            let loaded = control.try_load_config(&place);
            let own = loaded.as_ref().map(agent_workspaces).unwrap_or_default();
            (loaded, find_bootstrap_files(&place.workspace_folder(), own))
        };
        let read = tokio::task::spawn_blocking(read).await;
        let (loaded, persona) = read.map_err(|error| Error::Failed(error.to_string()))?;
        let (config, config_error) = match loaded {
            Ok(config) => (mask_config(&config), None),
            Err(why) => (Value::Null, Some(why)),
        };
        Ok(InstanceDetails { instance, health, config, config_error, bootstrap_files: persona })
    }

    /// Returns the health report of the instance, or `None` if it does not answer.
    pub async fn get_health(&self, word: &str) -> Result<Option<Value>> {
        let one = self.find_instance(word).await?;
        Ok(self
            .request_instance(&one, Method::GET, "/health", OBSERVE_TIMEOUT)
            .await
            .ok()
            .map(|(_, body)| body))
    }

    fn try_load_config(&self, place: &InstancePaths) -> std::result::Result<Config, String> {
        let text = file::read_text(&place.config_file(), file::MAX_CONFIG_BYTES)
            .map_err(|error| error.to_string())?;
        (self.load)(place.path(), &text)
            .map_err(|errors| Redactor::default().redact_text(&errors.to_string()).into_owned())
    }

    /// Asks the instance if it does not use a local database file. Returns `None` if it does.
    pub async fn fetch_unless_local(&self, word: &str, path: &str) -> Result<Option<ObservedResult<Value>>> {
        let one = self.find_instance(word).await?;
        if self.has_db_file(&one).await {
            return Ok(None);
        }
        Ok(Some(self.fetch_json(&one, path).await))
    }

    /// Returns a response of the instance's API, or why there is none.
    async fn fetch_json(&self, one: &InstanceRecord, path: &str) -> ObservedResult<Value> {
        match self.request_instance(one, Method::GET, path, OBSERVE_TIMEOUT).await {
            Ok((200, body)) => Ok(body),
            Ok((status, _)) => Err(format!("it responded with {status}")),
            Err(Error::NotRunning(_)) => {
                Err("its data is in PostgreSQL, which can be read only while it runs".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Lists turns, newest first. The inner `Err` says why they are unavailable.
    pub async fn list_turns(
        &self,
        word: &str,
        filter: PastTurnFilter,
    ) -> Result<ObservedResult<Vec<PastTurn>>> {
        let one = self.find_instance(word).await?;
        self.query_instance_db(&one, move |tx| list_past_turns(tx, &filter)).await
    }

    /// Sums up usage. `path` is the API path of the instance for the same data.
    pub async fn summarize_usage(&self, word: &str, since: Millis, path: &str) -> Result<UsageSummary> {
        let one = self.find_instance(word).await?;
        let found = if self.has_db_file(&one).await {
            self.query_instance_db(&one, move |tx| usage::sum_totals(tx, since, usage::UsageGroupKey::Agent))
                .await?
        } else {
            self.fetch_json(&one, path).await.and_then(parse_totals)
        };
        Ok(match found {
            Ok(totals) => sum_totals(&totals),
            Err(why) => UsageSummary { unavailable: Some(why), ..UsageSummary::default() },
        })
    }

    async fn query_instance_db<T: Send + 'static>(
        &self,
        one: &InstanceRecord,
        body: impl FnMut(&mut Tx<'_>) -> polyclaw_store::Result<T> + Send + 'static,
    ) -> Result<ObservedResult<T>> {
        let path = self.instance_paths(one).database_file();
        if !path.exists() {
            return Ok(Err("it has not run yet".to_owned()));
        }
        let looked = tokio::task::spawn_blocking(move || query_read_only(&path, body)).await;
        let looked = looked
            .map_err(|error| Error::Files { what: "its database".to_owned(), why: error.to_string() })?;
        Ok(Ok(looked?))
    }
}

/// The usage of one agent as reported by an instance.
#[derive(Deserialize)]
struct ReportedUsage {
    group: String,
    calls: i64,
    unknown_calls: i64,
    unpriced_calls: i64,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    cached_tokens: Option<i64>,
    cost_usd: Option<f64>,
}

impl From<ReportedUsage> for GroupedUsage {
    fn from(spent: ReportedUsage) -> Self {
        Self {
            group: spent.group,
            calls: spent.calls,
            unknown_calls: spent.unknown_calls,
            unpriced_calls: spent.unpriced_calls,
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cached_tokens: spent.cached_tokens,
            cost_nanos: spent.cost_usd.map(usd_to_nanos),
        }
    }
}

fn parse_totals(mut body: Value) -> ObservedResult<Vec<GroupedUsage>> {
    let spent: Vec<ReportedUsage> = serde_json::from_value(body["totals"].take())
        .map_err(|_| "its response has an unknown format".to_owned())?;
    Ok(spent.into_iter().map(GroupedUsage::from).collect())
}

fn sum_totals(totals: &[GroupedUsage]) -> UsageSummary {
    let sum = |part: fn(&GroupedUsage) -> Option<i64>| totals.iter().filter_map(part).reduce(|a, b| a + b);
    UsageSummary {
        requests: totals.iter().map(|total| total.calls).sum(),
        unknown: totals.iter().map(|total| total.unknown_calls).sum(),
        input: sum(|total| total.input_tokens),
        output: sum(|total| total.output_tokens),
        cost_nanos: sum(|total| total.cost_nanos),
        unavailable: None,
    }
}

/// Masks secrets as in the config file, and redacts other texts that a variable may have filled in.
fn mask_config(config: &Config) -> Value {
    let mut value = serde_json::to_value(config).unwrap_or_else(|_| json!(null));
    mask::mask_value(&mut value);
    Redactor::new(config.secrets.iter().map(|secret| secret.expose().to_owned())).redact_json(&mut value);
    value
}

/// Returns the workspace folders of agents that have their own, as written in the config.
fn agent_workspaces(config: &Config) -> Vec<String> {
    let config = serde_json::to_value(config).unwrap_or_default();
    let agents = config["agents"]["list"].as_array().into_iter().flatten();
    let dirs = agents.filter_map(|agent| {
        let workspace = &agent["workspace"];
        workspace.as_str().or(workspace["dir"].as_str())
    });
    let mut dirs: Vec<String> = dirs.map(|dir| format!("{}/", dir.trim_end_matches('/'))).collect();
    dirs.sort();
    dirs.dedup();
    dirs
}

/// Lists the existing bootstrap files: those of all agents, then those of single agents, then those in separate
/// workspaces.
fn find_bootstrap_files(workspace: &Path, own_workspaces: Vec<String>) -> Vec<BootstrapFile> {
    // Agents write the workspace, and may have put links there.
    let Ok(root) = FolderHandle::open_base(workspace) else { return Vec::new() };
    let agents = root.open_child(OsStr::new("agents")).and_then(|agents| agents.read_entries());
    let names = agents.into_iter().flat_map(|agents| agents.found).map(|entry| entry.name);
    let own = names.map(|name| format!("agents/{}/", name.to_string_lossy()));
    let places = [String::new()].into_iter().chain(own).chain(own_workspaces);
    let files = places.flat_map(|place| briefing::BRIEFING_FILES.map(|file| (place.clone(), file)));
    let there = |(place, file): (String, &str)| {
        let base = if Path::new(&place).is_absolute() { Path::new(&place) } else { workspace };
        let folder = FolderHandle::open_below(base, &workspace.join(&place)).ok()?;
        let stat = folder.stat(OsStr::new(file)).ok()??;
        let is_file = file_type(&stat) == FileType::RegularFile;
        is_file.then(|| BootstrapFile { file: format!("{place}{file}"), bytes: file_size(&stat) })
    };
    files.filter_map(there).collect()
}
