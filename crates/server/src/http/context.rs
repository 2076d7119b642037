//! Token usage of a session's context.

use axum::Json;
use axum::extract::State;
use polyclaw_api::context::ContextView;

use crate::error::Result;
use crate::extract::SessionKeyPath;
use crate::state::AppState;

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
