//! Imports from other programs.

use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::control::instances::InstanceView;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewImport {
    /// The absolute path of an `openclaw.json` on the machine of the control plane, or of its folder.
    pub path: String,
    /// Only report what would be imported and change nothing.
    #[serde(default)]
    #[schema(required = false)]
    pub dry_run: bool,
    /// Move plain-text secrets to the instance's secret store.
    #[serde(default)]
    #[schema(required = false)]
    pub with_secrets: bool,
    /// Also copy workspaces outside the config's folder.
    #[serde(default)]
    #[schema(required = false)]
    pub allow_outside: bool,
    /// The name of the instance. Defaults to the name of the folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The port of the instance. Defaults to the first free port from 18801.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// A remark about a key of the source config.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ImportNote {
    /// The path of the key.
    pub path: String,
    /// What it is about.
    pub reason: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ImportReport {
    /// The name of the instance.
    pub name: String,
    /// The imported agents.
    pub agents: Vec<String>,
    /// The imported model providers.
    pub providers: Vec<String>,
    /// The imported chat accounts as `channel:account`.
    pub channels: Vec<String>,
    /// The number of bindings.
    pub bindings: usize,
    /// The number of cron jobs.
    pub schedules: usize,
    /// The number of workspaces.
    pub workspaces: usize,
    /// Each copied folder with its destination.
    pub folders: Vec<String>,
    /// The number of conversations.
    pub sessions: usize,
    /// The number of messages in them.
    pub messages: usize,
    /// The names under which secrets are stored.
    pub secrets: Vec<String>,
    /// Keys that have no effect in Polyclaw.
    pub ignored: Vec<ImportNote>,
    /// Keys with a different meaning in Polyclaw.
    pub changed: Vec<ImportNote>,
    /// Secrets that were not imported, and what needs them.
    pub left: Vec<ImportNote>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ImportResult {
    /// The id of the import. Null for a dry run.
    pub run: Option<String>,
    /// The new instance. Null for a dry run.
    pub instance: Option<InstanceView>,
    /// Whether the same source was imported before, so that nothing was changed.
    pub already: bool,
    /// What was found and imported.
    pub report: ImportReport,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ImportRuns {
    /// The imports of this page.
    pub runs: Vec<ImportRun>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ImportRun {
    /// The id of the import.
    pub id: String,
    /// The path of the imported config.
    pub source: String,
    /// `running`, `done` or `rolled_back`.
    pub state: String,
    /// The imported instance, if it still exists.
    pub instance_id: Option<String>,
    /// When the import started.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When the import ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Millis>,
}
