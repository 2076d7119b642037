//! What differs between the providers on the wire, seen from the library that speaks to them.

use genai::adapter::AdapterKind;

use crate::settings::ProviderVendor;

/// How a tool call comes while it is being streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolCallStreaming {
    /// Each piece continues the one before.
    Fragments,
    /// Each piece repeats all that came before.
    Snapshots,
    /// Each piece is a call.
    Whole,
}

pub(crate) fn adapter_kind(kind: ProviderVendor) -> AdapterKind {
    match kind {
        // Ollama's own protocol does not pair a tool result with its call; its OpenAI-shaped one does.
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

/// Who is asked through the library; the others speak OpenAI's chat completions, which we do ourselves.
pub(crate) fn tool_call_streaming(kind: ProviderVendor) -> Option<ToolCallStreaming> {
    match kind {
        ProviderVendor::Anthropic => Some(ToolCallStreaming::Snapshots),
        ProviderVendor::Gemini => Some(ToolCallStreaming::Whole),
        _ => None,
    }
}

/// The library reads `a::b` as model `b` of namespace `a`; a name that holds `::` itself gets a namespace to lose.
pub(crate) fn model_name(model: &str) -> String {
    if model.contains("::") { format!("model::{model}") } else { model.to_owned() }
}
