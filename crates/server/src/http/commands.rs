//! Chat commands, the same as in every chat.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::command::parse;
use polyclaw_domain::id::ApprovalId;
use polyclaw_domain::session_key::SessionKey;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::May;
use crate::error::{Error, Result};
use crate::extract::{Body, Key};
use crate::http::approvals::check_approver;
use crate::state::AppState;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// `/help` lists them.
    text: String,
}

#[derive(Serialize, ToSchema)]
pub struct Said {
    pub text: String,
}

/// Runs a line that starts with a slash.
#[utoipa::path(post, path = "/sessions/{key}/commands", tag = "sessions", params(("key" = String, Path)), request_body = Command, responses((status = 200, body = Said)))]
pub async fn run(
    State(app): State<AppState>,
    by: May,
    Key(key): Key,
    Body(command): Body<Command>,
) -> Result<Json<Said>> {
    said(&app, by, &key, &command.text).await.map(Json)
}

pub async fn said(app: &AppState, by: May, key: &SessionKey, line: &str) -> Result<Said> {
    if let Some(id) = approved(line) {
        check_approver(app, by, &id).await?;
    }
    match app.engine.run_command_as(key, line, by.authority()).await {
        Some(text) => Ok(Said { text: text? }),
        None => Err(Error::UnknownCommand(line.chars().take(40).collect())),
    }
}

/// The question that a line says yes to.
fn approved(line: &str) -> Option<ApprovalId> {
    let (_, rest) = parse(line).filter(|(command, _)| command.name == "approve")?;
    rest.split_whitespace().next().map(ApprovalId::new)
}
