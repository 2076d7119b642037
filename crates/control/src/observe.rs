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
use crate::place::Place;
use crate::view::View;

mod events;
mod kept;

pub use events::{Happened, Interest, Places};
pub(crate) use kept::Kept;

const PATIENCE: Duration = Duration::from_secs(3);

/// What is known, or why nothing is.
pub type Told<T> = std::result::Result<T, String>;

/// A file that tells agents who they are.
#[derive(Clone, Debug, Serialize)]
pub struct Persona {
    /// Below the workspace, or absolute.
    pub file: String,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct Details {
    pub instance: View,
    /// What the running daemon says of itself.
    pub health: Option<Value>,
    /// In force, secrets hidden; null where the file can not be read.
    pub config: Value,
    pub config_error: Option<String>,
    pub persona: Vec<Persona>,
}

/// What was used since a time; sums are of what is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub requests: i64,
    pub unknown: i64,
    pub input: Option<i64>,
    pub output: Option<i64>,
    pub cost_nanos: Option<i64>,
    /// Why nothing can be said.
    pub unavailable: Option<String>,
}

impl Control {
    pub async fn details(&self, word: &str) -> Result<Details> {
        let one = self.row(word).await?;
        let instance = self.view(one.clone()).await?;
        let health = match instance.pid {
            Some(_) => self.ask(&one, Method::GET, "/health", PATIENCE).await.ok().map(|(_, body)| body),
            None => None,
        };
        let (control, place) = (self.clone(), self.place(&one));
        // A keyring that is asked for a secret takes its time.
        let read = move || {
            let loaded = control.loaded(&place);
            let own = loaded.as_ref().map(own_workspaces).unwrap_or_default();
            (loaded, persona(&place.workspace(), own))
        };
        let read = tokio::task::spawn_blocking(read).await;
        let (loaded, persona) = read.map_err(|error| Error::Failed(error.to_string()))?;
        let (config, config_error) = match loaded {
            Ok(config) => (masked(&config), None),
            Err(why) => (Value::Null, Some(why)),
        };
        Ok(Details { instance, health, config, config_error, persona })
    }

    /// The instance's own word on how it is; `None` where it does not answer.
    pub async fn health_of(&self, word: &str) -> Result<Option<Value>> {
        let one = self.row(word).await?;
        Ok(self.ask(&one, Method::GET, "/health", PATIENCE).await.ok().map(|(_, body)| body))
    }

    fn loaded(&self, place: &Place) -> std::result::Result<Config, String> {
        let text =
            file::read_text(&place.config(), file::LARGEST_CONFIG).map_err(|error| error.to_string())?;
        (self.load)(place.path(), &text)
            .map_err(|errors| Redactor::default().redact_text(&errors.to_string()).into_owned())
    }

    /// What the instance itself says, where what it did is in no file of its own. `None`: it is in one.
    pub async fn told(&self, word: &str, path: &str) -> Result<Option<Told<Value>>> {
        let one = self.row(word).await?;
        if self.has_file(&one).await {
            return Ok(None);
        }
        Ok(Some(self.hear(&one, path).await))
    }

    /// An answer of the instance's own API, or why there is none.
    async fn hear(&self, one: &InstanceRecord, path: &str) -> Told<Value> {
        match self.ask(one, Method::GET, path, PATIENCE).await {
            Ok((200, body)) => Ok(body),
            Ok((status, _)) => Err(format!("it answered {status}")),
            Err(Error::NotRunning(_)) => {
                Err("what it did is kept in PostgreSQL, and it does not run to be asked".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The newest turns first. `Err`: nothing can be known, and why.
    pub async fn tasks(&self, word: &str, filter: PastTurnFilter) -> Result<Told<Vec<PastTurn>>> {
        let one = self.row(word).await?;
        self.look_into(&one, move |tx| list_past_turns(tx, &filter)).await
    }

    /// `path` is where the instance itself says it.
    pub async fn usage(&self, word: &str, since: Millis, path: &str) -> Result<Used> {
        let one = self.row(word).await?;
        let found = match self.has_file(&one).await {
            true => {
                self.look_into(&one, move |tx| usage::sum_totals(tx, since, usage::UsageGroupKey::Agent))
                    .await?
            }
            false => self.hear(&one, path).await.and_then(totals),
        };
        Ok(match found {
            Ok(totals) => add_up(&totals),
            Err(why) => Used { unavailable: Some(why), ..Used::default() },
        })
    }

    async fn look_into<T: Send + 'static>(
        &self,
        one: &InstanceRecord,
        body: impl FnMut(&mut Tx<'_>) -> polyclaw_store::Result<T> + Send + 'static,
    ) -> Result<Told<T>> {
        let path = self.place(one).database();
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
struct Spent {
    group: String,
    calls: i64,
    unknown_calls: i64,
    unpriced_calls: i64,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    cached_tokens: Option<i64>,
    cost_usd: Option<f64>,
}

impl From<Spent> for GroupedUsage {
    fn from(spent: Spent) -> Self {
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

fn totals(mut told: Value) -> Told<Vec<GroupedUsage>> {
    let spent: Vec<Spent> = serde_json::from_value(told["totals"].take())
        .map_err(|_| "it says it in a way that is not known here".to_owned())?;
    Ok(spent.into_iter().map(GroupedUsage::from).collect())
}

fn add_up(totals: &[GroupedUsage]) -> Used {
    let sum = |part: fn(&GroupedUsage) -> Option<i64>| totals.iter().filter_map(part).reduce(|a, b| a + b);
    Used {
        requests: totals.iter().map(|total| total.calls).sum(),
        unknown: totals.iter().map(|total| total.unknown_calls).sum(),
        input: sum(|total| total.input_tokens),
        output: sum(|total| total.output_tokens),
        cost_nanos: sum(|total| total.cost_nanos),
        unavailable: None,
    }
}

/// Its secrets masked as in its file; any other text may hold what a variable brought in.
fn masked(config: &Config) -> Value {
    let mut value = serde_json::to_value(config).unwrap_or_else(|_| json!(null));
    mask::hide_in(&mut value);
    Redactor::new(config.secrets.iter().map(|secret| secret.expose().to_owned())).redact_json(&mut value);
    value
}

/// The folders that agents of the config have for themselves, as they are written there.
fn own_workspaces(config: &Config) -> Vec<String> {
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
fn persona(workspace: &Path, own_workspaces: Vec<String>) -> Vec<Persona> {
    let agents = fs::read_dir(workspace.join("agents")).into_iter().flatten().flatten();
    let mut own: Vec<String> =
        agents.map(|entry| format!("agents/{}/", entry.file_name().to_string_lossy())).collect();
    own.sort();
    let places = [String::new()].into_iter().chain(own).chain(own_workspaces);
    let files = places.flat_map(|place| briefing::BRIEFING_FILES.map(|file| format!("{place}{file}")));
    let there = |file: String| {
        let meta = fs::symlink_metadata(workspace.join(&file)).ok().filter(fs::Metadata::is_file)?;
        Some(Persona { file, bytes: meta.len() })
    };
    files.filter_map(there).collect()
}
