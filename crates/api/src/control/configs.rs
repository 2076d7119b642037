//! The config of an instance: read, validate, compare and change.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ConfigView {
    /// The version of the config, for `If-Match`.
    pub etag: String,
    /// The config file with secrets masked. Leaving a mask in place keeps the stored secret.
    pub toml: String,
    /// The config as a JSON object with secrets masked.
    #[schema(value_type = Object)]
    pub config: Value,
    /// Every masked secret.
    pub secrets: Vec<SecretView>,
    /// Why the file cannot be parsed. None of it is shown then; it can only be replaced as a whole.
    pub error: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct SecretView {
    /// The path of the secret in the config.
    pub path: String,
    /// Distinguishes secrets without revealing them: the last characters of a long one, else `configured`.
    pub fingerprint: String,
}

/// A complete config as TOML or as JSON.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConfig {
    /// The config as TOML text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toml: Option<String>,
    /// The config as a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub config: Option<Map<String, Value>>,
    /// The expected version, instead of `If-Match`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// A complete config, or a patch of the current one.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigDraft {
    /// The complete config as TOML text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toml: Option<String>,
    /// The complete config as a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub config: Option<Map<String, Value>>,
    /// A JSON merge patch of the current config.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub patch: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ConfigWriteResult {
    /// The new version of the config.
    pub etag: String,
    /// `saved`: the instance is not running and starts with this config. `reloaded`: the running instance uses it.
    /// `restart_required`: the listed sections take effect at the next start, all others are in use.
    pub outcome: String,
    /// Sections that take effect at the next start.
    pub restart_required: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ConfigValidation {
    /// Whether the config is valid.
    pub valid: bool,
    /// Everything that is wrong with it.
    pub errors: Vec<ConfigErrorView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ConfigErrorView {
    /// The line in the file, if known.
    pub line: Option<usize>,
    /// The path of the setting.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ConfigDiff {
    /// The values that would change.
    pub changes: Vec<ConfigChangeView>,
    /// The number of values that would stay the same.
    pub unchanged_count: usize,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ConfigChangeView {
    /// The path of the value.
    pub path: String,
    /// The current value, or null if it is not set. Secrets are masked.
    #[schema(value_type = Value)]
    pub before: Option<Value>,
    /// The new value, or null if it is removed. Secrets are masked.
    #[schema(value_type = Value)]
    pub after: Option<Value>,
}
