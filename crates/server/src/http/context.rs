//! What a model's context is filled with.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Result;
use crate::extract::SessionKeyPath;
use crate::state::AppState;

/// Tokens, each estimated: no two models count alike.
#[derive(Serialize, ToSchema)]
pub struct ContextView {
    model: Option<String>,
    window_tokens: usize,
    total_tokens: usize,
    system_tokens: usize,
    tools_tokens: usize,
    summary_tokens: usize,
    history_tokens: usize,
    /// Messages that are not folded into the summary.
    history_messages: usize,
    /// What would be remembered for the newest message.
    recalled_tokens: usize,
    recalled_memories: usize,
}

/// What the next prompt of a session would be made of.
#[utoipa::path(get, path = "/sessions/{key}/context", tag = "sessions", params(("key" = String, Path)), responses((status = 200, body = ContextView)))]
pub async fn show_context(
    State(app): State<AppState>,
    SessionKeyPath(key): SessionKeyPath,
) -> Result<Json<ContextView>> {
    let account = app.engine.context_usage(&key).await?;
    Ok(Json(ContextView {
        total_tokens: account.total_tokens(),
        model: account.model.map(|model| model.to_string()),
        window_tokens: account.window,
        system_tokens: account.system,
        tools_tokens: account.tools,
        summary_tokens: account.summary,
        history_tokens: account.history,
        history_messages: account.messages,
        recalled_tokens: account.recalled,
        recalled_memories: account.memories,
    }))
}
