//! Token usage of a session's context.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Result;
use crate::extract::SessionKeyPath;
use crate::state::AppState;

/// Estimated token counts. Tokenizers differ between models, so they are not exact.
#[derive(Serialize, ToSchema)]
pub struct ContextView {
    /// The model the prompt would go to.
    model: Option<String>,
    /// The size of the model's context window.
    window_tokens: usize,
    /// The total of all parts.
    total_tokens: usize,
    /// Tokens of the system prompt.
    system_tokens: usize,
    /// Tokens of the tool definitions.
    tools_tokens: usize,
    /// Tokens of the summary of older messages.
    summary_tokens: usize,
    /// Tokens of the messages in full.
    history_tokens: usize,
    /// The number of messages that are not part of the summary.
    history_messages: usize,
    /// Tokens of the memories recalled for the newest message.
    recalled_tokens: usize,
    /// The number of those memories.
    recalled_memories: usize,
}

/// Returns what the next prompt of a session would consist of.
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
