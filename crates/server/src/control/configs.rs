//! The config of an instance: read, validate, compare and change.

use axum::extract::State;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use polyclaw_api::control::configs::{
    ConfigChangeView, ConfigDiff, ConfigDraft, ConfigErrorView, ConfigValidation, ConfigView,
    ConfigWriteResult, NewConfig, SecretView,
};
use polyclaw_api::error::ErrorBody;
use polyclaw_control::ControlCaller;
use polyclaw_control::config::{
    ConfigDifference, ConfigEdit, ConfigWriteOutcome, ReferenceMode, WritePrecondition, WrittenConfig,
};
use polyclaw_domain::instance::TokenAccess;
use serde_json::{Map, Value};

use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId};

const MAY_WRITE_SECRETS: HeaderName = HeaderName::from_static("x-allow-secret-write");

fn config_write_result(written: WrittenConfig) -> ConfigWriteResult {
    let (outcome, restart_required) = match written.outcome {
        ConfigWriteOutcome::Saved => ("saved", Vec::new()),
        ConfigWriteOutcome::Reloaded => ("reloaded", Vec::new()),
        ConfigWriteOutcome::RestartRequired(sections) => ("restart_required", sections),
    };
    ConfigWriteResult { etag: written.etag, outcome: outcome.to_owned(), restart_required }
}

fn config_change_view(one: ConfigDifference) -> ConfigChangeView {
    ConfigChangeView { path: one.path, before: one.before, after: one.after }
}

/// Returns the config file with secrets masked.
/// Tokens below `admin` get it without comments, program arguments and URL paths.
#[utoipa::path(get, path = "/instances/{id}/config", tag = "config", params(("id" = String, Path)), responses((status = 200, body = ConfigView)))]
pub async fn show_config(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
) -> Result<Response> {
    let read = app.control.read_config(&id, by.access.into()).await?;
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

/// Replaces the config.
#[utoipa::path(put, path = "/instances/{id}/config", tag = "config", params(("id" = String, Path), ("If-Match" = Option<String>, Header), ("X-Allow-Secret-Write" = Option<bool>, Header)), request_body = NewConfig, 
    responses((status = 200, body = ConfigWriteResult), (status = 412, description = "The config was changed meanwhile", body = ErrorBody), (status = 428, description = "The version is missing", body = ErrorBody), (status = 502, description = "The instance is unreachable", body = ErrorBody)))]
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

/// Changes the config with a JSON merge patch.
/// Unnamed values, comments and the order stay as they are.
#[utoipa::path(patch, path = "/instances/{id}/config", tag = "config", params(("id" = String, Path), ("If-Match" = Option<String>, Header), ("X-Allow-Secret-Write" = Option<bool>, Header)), request_body = Object, 
    responses((status = 200, body = ConfigWriteResult), (status = 412, description = "The config was changed meanwhile", body = ErrorBody), (status = 428, description = "The version is missing", body = ErrorBody), (status = 502, description = "The instance is unreachable", body = ErrorBody)))]
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

/// Checks whether a config is valid, without writing it.
/// References (files, variables, stored secrets) are resolved only for tokens with the scope `admin`; for others they
/// are assumed to exist.
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

/// Compares a config with the current one, without writing it.
/// A given secret always counts as a change, even if it equals the stored one.
#[utoipa::path(post, path = "/instances/{id}/config/diff", tag = "config", params(("id" = String, Path)), request_body = ConfigDraft, responses((status = 200, body = ConfigDiff)))]
pub async fn diff_config(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    JsonBody(draft): JsonBody<ConfigDraft>,
) -> Result<Json<ConfigDiff>> {
    let (changes, unchanged_count) =
        app.control.compare_config(&id, &draft_edit(draft)?, by.access.into()).await?;
    Ok(Json(ConfigDiff { changes: changes.into_iter().map(config_change_view).collect(), unchanged_count }))
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
    Ok(([(ETAG, quote_etag(&written.etag))], Json(config_write_result(written))).into_response())
}

fn quote_etag(etag: &str) -> String {
    format!("\"{etag}\"")
}
