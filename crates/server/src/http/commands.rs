//! Chat commands over the API.

use axum::Json;
use axum::extract::State;
use polyclaw_api::commands::{CommandBody, CommandReply};
use polyclaw_domain::command::parse;
use polyclaw_domain::id::ApprovalId;
use polyclaw_domain::session_key::SessionKey;

use crate::access::AccessLevel;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, SessionKeyPath};
use crate::http::approvals::check_approver;
use crate::state::AppState;

/// Runs a chat command, a line that starts with a slash.
#[utoipa::path(post, path = "/sessions/{key}/commands", tag = "sessions", params(("key" = String, Path)), request_body = CommandBody, responses((status = 200, body = CommandReply)))]
pub async fn run_command(
    State(app): State<AppState>,
    by: AccessLevel,
    SessionKeyPath(key): SessionKeyPath,
    JsonBody(command): JsonBody<CommandBody>,
) -> Result<Json<CommandReply>> {
    command_reply(&app, by, &key, &command.text).await.map(Json)
}

pub async fn command_reply(
    app: &AppState,
    by: AccessLevel,
    key: &SessionKey,
    line: &str,
) -> Result<CommandReply> {
    if let Some(id) = approved_question(line) {
        check_approver(app, by, &id).await?;
    }
    match app.engine.run_command_as(key, line, by.authority()).await {
        Some(text) => Ok(CommandReply { text: text? }),
        None => Err(Error::UnknownCommand(line.chars().take(40).collect())),
    }
}

/// Returns the approval request that the command line would approve.
fn approved_question(line: &str) -> Option<ApprovalId> {
    let (_, rest) = parse(line).filter(|(command, _)| command.name == "approve")?;
    rest.split_whitespace().next().map(ApprovalId::new)
}
