//! What differs between the providers on the wire, seen from the library that speaks to them.

use genai::adapter::AdapterKind;

use crate::settings::Kind;

/// How a tool call comes while it is being streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pieces {
    /// Each piece continues the one before.
    Fragments,
    /// Each piece repeats all that came before.
    Snapshots,
    /// Each piece is a call.
    Whole,
}

pub(crate) fn adapter(kind: Kind) -> AdapterKind {
    match kind {
        // Ollama's own protocol does not pair a tool result with its call; its OpenAI-shaped one does.
        Kind::OpenAi | Kind::Ollama | Kind::OpenAiCompatible => AdapterKind::OpenAI,
        Kind::Anthropic => AdapterKind::Anthropic,
        Kind::Gemini => AdapterKind::Gemini,
        Kind::OpenRouter => AdapterKind::OpenRouter,
        Kind::Groq => AdapterKind::Groq,
        Kind::DeepSeek => AdapterKind::DeepSeek,
        Kind::Xai => AdapterKind::Xai,
        Kind::Mistral => AdapterKind::Mistral,
    }
}

/// Who is asked through the library; the others speak OpenAI's chat completions, which we do ourselves.
pub(crate) fn pieces(kind: Kind) -> Option<Pieces> {
    match kind {
        Kind::Anthropic => Some(Pieces::Snapshots),
        Kind::Gemini => Some(Pieces::Whole),
        _ => None,
    }
}

/// The library reads `a::b` as model `b` of namespace `a`; a name that holds `::` itself gets a namespace to lose.
pub(crate) fn model_name(model: &str) -> String {
    if model.contains("::") { format!("model::{model}") } else { model.to_owned() }
}
