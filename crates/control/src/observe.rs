//! What an instance is and does: its settings, its files, its turns and what they took. Turns and usage are rows of the
//! instance's own database, which is read beside it, whether it runs or not. Where that is PostgreSQL, the instance is
//! asked: it alone knows its way in.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hyper::Method;
use polyclaw_domain::briefing;
use polyclaw_domain::budget::usd_to_nanos;
use polyclaw_domain::config::Config;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::InstanceRecord;
use polyclaw_store::turn_history::{PastTurn, PastTurnFilter, list_past_turns};
use polyclaw_store::usage::{self, GroupedUsage};
use polyclaw_store::{Tx, query_read_only};
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

/// What is known, or why nothing is.
pub type ObservedResult<T> = std::result::Result<T, String>;

/// A file that tells agents who they are.
#[derive(Clone, Debug, Serialize)]
pub struct BootstrapFile {
    /// Below the workspace, or absolute.
    pub file: String,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct InstanceDetails {
    pub instance: InstanceSnapshot,
    /// What the running daemon says of itself.
    pub health: Option<Value>,
    /// In force, secrets hidden; null where the file can not be read.
    pub config: Value,
    pub config_error: Option<String>,
    pub bootstrap_files: Vec<BootstrapFile>,
}

/// What was used since a time; sums are of what is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageSummary {
    pub requests: i64,
    pub unknown: i64,
    pub input: Option<i64>,
    pub output: Option<i64>,
    pub cost_nanos: Option<i64>,
    /// Why nothing can be said.
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
        // A keyring that is asked for a secret takes its time.
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

    /// The instance's own word on how it is; `None` where it does not answer.
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

    /// What the instance itself says, where what it did is in no file of its own. `None`: it is in one.
    pub async fn fetch_unless_local(&self, word: &str, path: &str) -> Result<Option<ObservedResult<Value>>> {
        let one = self.find_instance(word).await?;
        if self.has_db_file(&one).await {
            return Ok(None);
        }
        Ok(Some(self.fetch_json(&one, path).await))
    }

    /// An answer of the instance's own API, or why there is none.
    async fn fetch_json(&self, one: &InstanceRecord, path: &str) -> ObservedResult<Value> {
        match self.request_instance(one, Method::GET, path, OBSERVE_TIMEOUT).await {
            Ok((200, body)) => Ok(body),
            Ok((status, _)) => Err(format!("it answered {status}")),
            Err(Error::NotRunning(_)) => {
                Err("what it did is kept in PostgreSQL, and it does not run to be asked".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The newest turns first. `Err`: nothing can be known, and why.
    pub async fn list_turns(
        &self,
        word: &str,
        filter: PastTurnFilter,
    ) -> Result<ObservedResult<Vec<PastTurn>>> {
        let one = self.find_instance(word).await?;
        self.query_instance_db(&one, move |tx| list_past_turns(tx, &filter)).await
    }

    /// `path` is where the instance itself says it.
    pub async fn summarize_usage(&self, word: &str, since: Millis, path: &str) -> Result<UsageSummary> {
        let one = self.find_instance(word).await?;
        let found = match self.has_db_file(&one).await {
            true => {
                self.query_instance_db(&one, move |tx| {
                    usage::sum_totals(tx, since, usage::UsageGroupKey::Agent)
                })
                .await?
            }
            false => self.fetch_json(&one, path).await.and_then(parse_totals),
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

/// What an agent took, as an instance tells it.
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
        .map_err(|_| "it says it in a way that is not known here".to_owned())?;
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

/// Its secrets masked as in its file; any other text may hold what a variable brought in.
fn mask_config(config: &Config) -> Value {
    let mut value = serde_json::to_value(config).unwrap_or_else(|_| json!(null));
    mask::mask_value(&mut value);
    Redactor::new(config.secrets.iter().map(|secret| secret.expose().to_owned())).redact_json(&mut value);
    value
}

/// The folders that agents of the config have for themselves, as they are written there.
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

/// The files that are there: those of all agents, then those of one, then those in folders of their own.
fn find_bootstrap_files(workspace: &Path, own_workspaces: Vec<String>) -> Vec<BootstrapFile> {
    let agents = fs::read_dir(workspace.join("agents")).into_iter().flatten().flatten();
    let mut own: Vec<String> =
        agents.map(|entry| format!("agents/{}/", entry.file_name().to_string_lossy())).collect();
    own.sort();
    let places = [String::new()].into_iter().chain(own).chain(own_workspaces);
    let files = places.flat_map(|place| briefing::BRIEFING_FILES.map(|file| format!("{place}{file}")));
    let there = |file: String| {
        let meta = fs::symlink_metadata(workspace.join(&file)).ok().filter(fs::Metadata::is_file)?;
        Some(BootstrapFile { file, bytes: meta.len() })
    };
    files.filter_map(there).collect()
}
