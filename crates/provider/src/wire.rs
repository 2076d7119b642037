//! What differs between the providers on the wire, seen from the library that speaks to them.

use genai::adapter::AdapterKind;
use genai::chat::ReasoningEffort;

use crate::settings::Kind;

/// How the library hands out a tool call while it is being streamed.
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

pub(crate) fn pieces(kind: Kind) -> Pieces {
    match kind {
        Kind::Anthropic => Pieces::Snapshots,
        Kind::Gemini => Pieces::Whole,
        _ => Pieces::Fragments,
    }
}

/// Left to itself the library takes `-medium` or `-max` off the end of a model's name and sends it as an effort,
/// which turns `mistral-medium` into a model that does not exist. A budget stops that and is not sent in the
/// OpenAI shape. DeepSeek's adapter would send it, and has no names that end so.
pub(crate) fn reasoning_effort(kind: Kind) -> Option<ReasoningEffort> {
    match kind {
        Kind::Anthropic | Kind::Gemini | Kind::DeepSeek => None,
        _ => Some(ReasoningEffort::Budget(0)),
    }
}

/// The library reads `a::b` as model `b` of namespace `a`; a name that holds `::` itself gets a namespace to lose.
pub(crate) fn model_name(model: &str) -> String {
    if model.contains("::") { format!("model::{model}") } else { model.to_owned() }
}
