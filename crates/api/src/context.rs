//! Token usage of a session's context.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Estimated token counts. Tokenizers differ between models, so they are not exact.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ContextView {
    /// The model the prompt would go to.
    pub model: Option<String>,
    /// The size of the model's context window.
    pub window_tokens: usize,
    /// The total of all parts.
    pub total_tokens: usize,
    /// Tokens of the system prompt.
    pub system_tokens: usize,
    /// Tokens of the tool definitions.
    pub tools_tokens: usize,
    /// Tokens of the summary of older messages.
    pub summary_tokens: usize,
    /// Tokens of the messages in full.
    pub history_tokens: usize,
    /// The number of messages that are not part of the summary.
    pub history_messages: usize,
    /// Tokens of the memories recalled for the newest message.
    pub recalled_tokens: usize,
    /// The number of those memories.
    pub recalled_memories: usize,
}
