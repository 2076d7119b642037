//! Differences between providers, as seen by the client library.

use genai::adapter::AdapterKind;

use crate::settings::ProviderVendor;

/// How a tool call is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolCallStreaming {
    /// Each piece continues the previous one.
    Fragments,
    /// Each piece repeats all previous ones.
    Snapshots,
    /// Each piece is a complete call.
    Whole,
}

pub(crate) fn adapter_kind(kind: ProviderVendor) -> AdapterKind {
    match kind {
        // Ollama's own protocol does not match a tool result with its call; its OpenAI-compatible one does.
        ProviderVendor::OpenAi | ProviderVendor::Ollama | ProviderVendor::OpenAiCompatible => {
            AdapterKind::OpenAI
        }
        ProviderVendor::Anthropic => AdapterKind::Anthropic,
        ProviderVendor::Gemini => AdapterKind::Gemini,
        ProviderVendor::OpenRouter => AdapterKind::OpenRouter,
        ProviderVendor::Groq => AdapterKind::Groq,
        ProviderVendor::DeepSeek => AdapterKind::DeepSeek,
        ProviderVendor::Xai => AdapterKind::Xai,
        ProviderVendor::Mistral => AdapterKind::Mistral,
    }
}

/// Returns how tool calls are streamed, for providers called through the library. `None` for those with OpenAI's chat
/// completions, which are called directly.
pub(crate) fn tool_call_streaming(kind: ProviderVendor) -> Option<ToolCallStreaming> {
    match kind {
        ProviderVendor::Anthropic => Some(ToolCallStreaming::Snapshots),
        ProviderVendor::Gemini => Some(ToolCallStreaming::Whole),
        _ => None,
    }
}

/// The library reads `a::b` as model `b` of namespace `a`, so a name containing `::` gets a namespace that is stripped
/// again.
pub(crate) fn model_name(model: &str) -> String {
    if model.contains("::") { format!("model::{model}") } else { model.to_owned() }
}
