//! The config of an instance: read, checked, compared and changed.

use axum::extract::State;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use polyclaw_control::ControlCaller;
use polyclaw_control::config::{
    ConfigDifference, ConfigEdit, ConfigWriteOutcome, ReferenceMode, WritePrecondition, WrittenConfig,
};
use polyclaw_domain::instance::TokenAccess;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId};

const MAY_WRITE_SECRETS: HeaderName = HeaderName::from_static("x-allow-secret-write");

#[derive(Serialize, ToSchema)]
pub struct ConfigView {
    etag: String,
    /// The file. Secrets are masked; a mask that comes back keeps what is stored.
    toml: String,
    #[schema(value_type = Object)]
    config: Value,
    secrets: Vec<SecretView>,
    /// Why the file can not be read; nothing of it is shown then, and a whole config can be put in its place.
    error: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct SecretView {
    path: String,
    /// Tells two apart without giving either away.
    fingerprint: String,
}

/// A whole config, as TOML or as a table.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConfig {
    toml: Option<String>,
    #[schema(value_type = Option<Object>)]
    config: Option<Map<String, Value>>,
    /// In place of `If-Match`.
    etag: Option<String>,
}

/// A whole config, or a patch of the one there is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigDraft {
    toml: Option<String>,
    #[schema(value_type = Option<Object>)]
    config: Option<Map<String, Value>>,
    #[schema(value_type = Option<Object>)]
    patch: Option<Map<String, Value>>,
}

#[derive(Serialize, ToSchema)]
pub struct ConfigWriteResult {
    etag: String,
    /// `saved`: it does not run, and begins with this config. `reloaded`: it works with it. `restart_required`:
    /// what is listed takes effect at its next start, the rest does now.
    outcome: &'static str,
    restart_required: Vec<String>,
}

impl From<WrittenConfig> for ConfigWriteResult {
    fn from(written: WrittenConfig) -> Self {
        let (outcome, restart_required) = match written.outcome {
            ConfigWriteOutcome::Saved => ("saved", Vec::new()),
            ConfigWriteOutcome::Reloaded => ("reloaded", Vec::new()),
            ConfigWriteOutcome::RestartRequired(sections) => ("restart_required", sections),
        };
        Self { etag: written.etag, outcome, restart_required }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ConfigValidation {
    valid: bool,
    errors: Vec<ConfigErrorView>,
}

#[derive(Serialize, ToSchema)]
pub struct ConfigErrorView {
    line: Option<usize>,
    path: String,
    message: String,
    hint: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct ConfigDiff {
    changes: Vec<ConfigChangeView>,
    unchanged_count: usize,
}

#[derive(Serialize, ToSchema)]
pub struct ConfigChangeView {
    path: String,
    /// Null where there was nothing. Secrets are masked.
    #[schema(value_type = Value)]
    before: Option<Value>,
    /// Null where there is nothing any more.
    #[schema(value_type = Value)]
    after: Option<Value>,
}

impl From<ConfigDifference> for ConfigChangeView {
    fn from(one: ConfigDifference) -> Self {
        Self { path: one.path, before: one.before, after: one.after }
    }
}

/// The config as its file has it, secrets masked.
#[utoipa::path(get, path = "/instances/{id}/config", tag = "config", params(("id" = String, Path)), responses((status = 200, body = ConfigView)))]
pub async fn show_config(State(app): State<ControlState>, PathId(id): PathId) -> Result<Response> {
    let read = app.control.read_config(&id).await?;
    let secrets = read
        .secrets
        .into_iter()
        .map(|one| SecretView { path: one.path, fingerprint: one.fingerprint })
        .collect();
    let tag = quote_etag(&read.etag);
    let view =
        ConfigView { etag: read.etag, toml: read.toml, config: read.config, secrets, error: read.broken };
    Ok(([(ETAG, tag)], Json(view)).into_response())
}

/// Another config in place of this one.
#[utoipa::path(put, path = "/instances/{id}/config", tag = "config", params(("id" = String, Path), ("If-Match" = Option<String>, Header), ("X-Allow-Secret-Write" = Option<bool>, Header)), request_body = NewConfig, 
    responses((status = 200, body = ConfigWriteResult), (status = 412, description = "Another version is there", body = crate::error::ErrorBody), (status = 428, description = "Say which version", body = crate::error::ErrorBody), (status = 502, description = "The instance can not be asked", body = crate::error::ErrorBody)))]
pub async fn replace_config(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    headers: HeaderMap,
    JsonBody(new): JsonBody<NewConfig>,
) -> Result<Response> {
    let edit = whole_edit(new.toml, new.config)?
        .ok_or_else(|| Error::InvalidBody("toml or config is missing".to_owned()))?;
    write_config(&app, &by, &id, &edit, write_precondition(&headers, new.etag)?).await
}

/// A JSON merge patch. What it does not name stays as it is, comments and order too.
#[utoipa::path(patch, path = "/instances/{id}/config", tag = "config", params(("id" = String, Path), ("If-Match" = Option<String>, Header), ("X-Allow-Secret-Write" = Option<bool>, Header)), request_body = Object, 
    responses((status = 200, body = ConfigWriteResult), (status = 412, description = "Another version is there", body = crate::error::ErrorBody), (status = 428, description = "Say which version", body = crate::error::ErrorBody), (status = 502, description = "The instance can not be asked", body = crate::error::ErrorBody)))]
pub async fn patch_config(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    headers: HeaderMap,
    JsonBody(mut patch): JsonBody<Map<String, Value>>,
) -> Result<Response> {
    let etag = patch.remove("etag").and_then(|etag| etag.as_str().map(str::to_owned));
    let edit = ConfigEdit::Merge(Value::Object(patch));
    write_config(&app, &by, &id, &edit, write_precondition(&headers, etag)?).await
}

/// Whether a config would be taken; nothing is written. What it refers to (files, variables, stored secrets) is looked up
/// for tokens of the scope `admin` only; for others it is taken to be there.
#[utoipa::path(post, path = "/instances/{id}/config/validate", tag = "config", params(("id" = String, Path)), request_body = ConfigDraft, responses((status = 200, body = ConfigValidation)))]
pub async fn validate_config(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    JsonBody(draft): JsonBody<ConfigDraft>,
) -> Result<Json<ConfigValidation>> {
    let references = match by.access {
        TokenAccess::Admin => ReferenceMode::Resolved,
        TokenAccess::Read | TokenAccess::Operate => ReferenceMode::Assumed,
    };
    let found = app.control.check_config(&id, &draft_edit(draft)?, references).await?;
    let fault = |error: polyclaw_domain::config::ConfigError| ConfigErrorView {
        line: error.line,
        path: error.path,
        message: error.message,
        hint: error.hint,
    };
    let errors: Vec<ConfigErrorView> =
        found.map(|errors| errors.0.into_iter().map(fault).collect()).unwrap_or_default();
    Ok(Json(ConfigValidation { valid: errors.is_empty(), errors }))
}

/// What a change would change; nothing is written. A secret that is given is a change, be it the stored one or another.
#[utoipa::path(post, path = "/instances/{id}/config/diff", tag = "config", params(("id" = String, Path)), request_body = ConfigDraft, responses((status = 200, body = ConfigDiff)))]
pub async fn diff_config(
    State(app): State<ControlState>,
    PathId(id): PathId,
    JsonBody(draft): JsonBody<ConfigDraft>,
) -> Result<Json<ConfigDiff>> {
    let (changes, unchanged_count) = app.control.compare_config(&id, &draft_edit(draft)?).await?;
    Ok(Json(ConfigDiff {
        changes: changes.into_iter().map(ConfigChangeView::from).collect(),
        unchanged_count,
    }))
}

fn draft_edit(draft: ConfigDraft) -> Result<ConfigEdit> {
    let edit = match draft.patch {
        Some(patch) => Some(ConfigEdit::Merge(Value::Object(patch))),
        None => whole_edit(draft.toml, draft.config)?,
    };
    edit.ok_or_else(|| Error::InvalidBody("toml, config or patch is missing".to_owned()))
}

fn whole_edit(toml: Option<String>, config: Option<Map<String, Value>>) -> Result<Option<ConfigEdit>> {
    Ok(match (toml, config) {
        (Some(text), _) => Some(ConfigEdit::Whole(text)),
        (None, Some(table)) => {
            Some(ConfigEdit::Whole(polyclaw_control::config::edit::merge_patch("", &Value::Object(table))?))
        }
        (None, None) => None,
    })
}

fn write_precondition(headers: &HeaderMap, etag: Option<String>) -> Result<WritePrecondition> {
    let may_write_secrets = match headers.get(&MAY_WRITE_SECRETS).map(HeaderValue::as_bytes) {
        None | Some(b"false") => false,
        Some(b"true") => true,
        Some(_) => return Err(Error::invalid_field("X-Allow-Secret-Write", "true or false")),
    };
    let plain = |tag: &str| tag.trim().trim_start_matches("W/").trim_matches('"').to_owned();
    let etag = headers.get(IF_MATCH).and_then(|value| value.to_str().ok()).map(plain).or(etag);
    Ok(WritePrecondition { etag, may_write_secrets })
}

async fn write_config(
    app: &ControlState,
    by: &ControlCaller,
    id: &str,
    edit: &ConfigEdit,
    terms: WritePrecondition,
) -> Result<Response> {
    let written = app.control.write_config(by, id, edit, &terms).await?;
    Ok(([(ETAG, quote_etag(&written.etag))], Json(ConfigWriteResult::from(written))).into_response())
}

fn quote_etag(etag: &str) -> String {
    format!("\"{etag}\"")
}
