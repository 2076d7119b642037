//! Details, turns and usage of an instance.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::control::instances::InstanceView;
use crate::usage::UsageWindow;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct InstanceDetailsView {
    /// The instance.
    pub instance: InstanceView,
    /// The program versions.
    pub build: BuildView,
    /// The effective config including defaults, with secrets masked. Null if the file cannot be read.
    #[schema(value_type = Object)]
    pub config: Value,
    /// Why the config cannot be read.
    pub config_error: Option<String>,
    /// Files that define the identity and instructions of agents.
    pub bootstrap_files: Vec<BootstrapFileView>,
    /// The configured accounts of each channel.
    #[schema(value_type = Object)]
    pub channels: Value,
    /// The default model, and the configured providers and models.
    #[schema(value_type = Object)]
    pub models: Value,
    /// Uptime and health of the running instance.
    pub runtime: RuntimeView,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct BuildView {
    /// The version of the control plane, which is also the program it starts instances with.
    pub control_plane: String,
    /// The version of the running instance. Null if it is not running.
    pub instance: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct BootstrapFileView {
    /// The path relative to the workspace, or absolute.
    pub file: String,
    /// The size in bytes.
    pub bytes: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct RuntimeView {
    /// Milliseconds since it started. Null if it is not running.
    pub uptime_ms: Option<i64>,
    /// The health the instance reports: `ok`, `degraded` or `draining`.
    pub health: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InstanceUsageQuery {
    /// The time window. Defaults to `24h`.
    #[serde(default)]
    #[param(inline, required = false)]
    pub window: UsageWindow,
}

/// Usage of an instance. Unknown numbers are null, never zero.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct InstanceUsageView {
    /// The requested time window.
    pub window: UsageWindow,
    /// Input tokens.
    pub input_tokens: Option<i64>,
    /// Output tokens.
    pub output_tokens: Option<i64>,
    /// Input and output tokens.
    pub total_tokens: Option<i64>,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
    /// The number of model calls.
    pub request_count: i64,
    /// Calls without reported usage. The sums do not include them.
    pub unknown_count: i64,
    /// Whether there was any usage.
    pub data_available: bool,
    /// Why usage is unavailable.
    pub message: Option<String>,
}
