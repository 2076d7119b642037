//! Bootstrap files of agents. An agent's own file replaces the one shared by all agents.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ETAG, IF_MATCH};
use axum::response::{IntoResponse, Response};
use polyclaw_api::error::ErrorBody;
use polyclaw_api::files::{AgentFile, AgentFileBody};
use polyclaw_domain::briefing::BRIEFING_FILES;
use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::id::AgentId;
use polyclaw_engine::{AgentFileOverlay, LONGEST_OVERLAY};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathIds};
use crate::http::agents::agent_id;
use crate::state::AppState;

fn parse_file_name(agent: &str, name: &str) -> Result<(AgentId, &'static str)> {
    let file = BRIEFING_FILES.into_iter().find(|file| *file == name);
    let file = file.ok_or_else(|| {
        Error::invalid_field("name", format!("must be one of {}", BRIEFING_FILES.join(", ")))
    })?;
    Ok((agent_id(agent)?, file))
}

fn file_etag(own: Option<&str>) -> String {
    let hash = |text: &str| encode_hex(&Sha256::digest(text));
    format!("\"{}\"", own.map_or_else(|| "none".to_owned(), hash))
}

async fn file_response(app: &AppState, id: &AgentId, name: &'static str) -> Result<Response> {
    let AgentFileOverlay { own, shared, in_use } = app.engine.load_overlay(id, name).await?;
    let etag = file_etag(own.as_deref());
    let headers = [(ETAG, etag.clone())];
    Ok((headers, Json(AgentFile { name: name.to_owned(), own, shared, in_use, etag })).into_response())
}

/// Returns a bootstrap file of an agent.
/// The name is `AGENTS.md`, `SOUL.md`, `IDENTITY.md`, `USER.md`, `TOOLS.md`, `MEMORY.md`, `HEARTBEAT.md` or
/// `BOOTSTRAP.md`.
#[utoipa::path(get, path = "/agents/{id}/files/{name}", tag = "agents", params(("id" = String, Path), ("name" = String, Path)), responses((status = 200, body = AgentFile)))]
pub async fn show_agent_file(
    State(app): State<AppState>,
    PathIds((agent, name)): PathIds<(String, String)>,
) -> Result<Response> {
    let (id, name) = parse_file_name(&agent, &name)?;
    file_response(&app, &id, name).await
}

/// Writes an agent's own bootstrap file.
/// It replaces the version in `If-Match` and is used from the next turn.
#[utoipa::path(put, path = "/agents/{id}/files/{name}", tag = "agents", params(("id" = String, Path), ("name" = String, Path), ("If-Match" = String, Header)), request_body = AgentFileBody,
    responses((status = 200, body = AgentFile), (status = 412, description = "The file was changed meanwhile", body = ErrorBody), (status = 428, description = "The version is missing", body = ErrorBody)))]
pub async fn write_agent_file(
    State(app): State<AppState>,
    PathIds((agent, name)): PathIds<(String, String)>,
    headers: HeaderMap,
    JsonBody(new): JsonBody<AgentFileBody>,
) -> Result<Response> {
    let (id, name) = parse_file_name(&agent, &name)?;
    let expected = headers.get(IF_MATCH).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let expected = expected.ok_or(Error::EtagMissing)?;
    if new.text.as_ref().is_some_and(|text| text.len() as u64 > LONGEST_OVERLAY) {
        return Err(Error::invalid_field("text", format!("at most {LONGEST_OVERLAY} bytes are allowed")));
    }
    let is_expected = move |own: Option<&str>| expected == "*" || file_etag(own) == expected;
    match app.engine.write_overlay(&id, name, new.text, is_expected).await? {
        true => file_response(&app, &id, name).await,
        false => Err(Error::EtagStale),
    }
}
