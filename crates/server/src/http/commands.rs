//! Chat commands, the same as in every chat.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::key::SessionKey;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::extract::{Body, Key};
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
    Key(key): Key,
    Body(command): Body<Command>,
) -> Result<Json<Said>> {
    said(&app, &key, &command.text).await.map(Json)
}

pub async fn said(app: &AppState, key: &SessionKey, line: &str) -> Result<Said> {
    match app.engine.command(key, line).await {
        Some(text) => Ok(Said { text: text? }),
        None => Err(Error::UnknownCommand(line.chars().take(40).collect())),
    }
}
