//! Reasoning effort of a model. Anthropic's older models take a token budget and have stricter rules than models that
//! take an effort level.

use polyclaw_domain::provider::{Prompt, PromptMessage, ReasoningEffort};

use crate::settings::ProviderVendor;

type GenaiEffort = genai::chat::ReasoningEffort;

/// Anthropic's minimum budget.
const MIN_BUDGET_TOKENS: u32 = 1_024;

/// Returns the effort to request, or `None` if the provider would reject it.
pub(crate) fn reasoning_effort(prompt: &Prompt, kind: ProviderVendor, model: &str) -> Option<GenaiEffort> {
    let (word, budget) = match prompt.reasoning_effort? {
        ReasoningEffort::Low => (GenaiEffort::Low, MIN_BUDGET_TOKENS),
        ReasoningEffort::Medium => (GenaiEffort::Medium, 8_000),
        ReasoningEffort::High => (GenaiEffort::High, 24_000),
    };
    if kind != ProviderVendor::Anthropic || accepts_effort_word(model) {
        return Some(word);
    }
    // Within a tool round Anthropic requires the reasoning before the call to be sent back, and it is not stored.
    if is_inside_round(&prompt.messages) {
        return None;
    }
    // Reasoning counts as output, so half of the limit stays for the text.
    let budget = prompt.max_tokens.map_or(budget, |most| budget.min(most / 2));
    (budget >= MIN_BUDGET_TOKENS).then_some(GenaiEffort::Budget(budget))
}

fn is_inside_round(messages: &[PromptMessage]) -> bool {
    let mut newest_first = messages.iter().rev();
    let last = newest_first.find(|message| matches!(message, PromptMessage::Assistant { .. }));
    matches!(last, Some(PromptMessage::Assistant { calls, .. }) if !calls.is_empty())
}

/// Whether the library sends this Anthropic model an effort level instead of a budget. Unknown names count as older
/// models.
fn accepts_effort_word(model: &str) -> bool {
    let mut parts = model.split('-');
    let node_name = (parts.next() == Some("claude")).then(|| parts.next()).flatten();
    let mut number = || parts.next().filter(|part| part.len() <= 2)?.parse::<u32>().ok();
    let major = number();
    let version = major.map(|major| (major, number().unwrap_or(0)));
    match node_name {
        Some("opus") => version >= Some((4, 5)),
        Some("sonnet") => matches!(version, Some((4, 6) | (5, _))),
        Some("haiku") => version >= Some((5, 0)),
        Some("fable" | "mythos") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_budget_leaves_room_for_answer() {
        use ReasoningEffort::{High, Low, Medium};
        for (effort, most, expected) in [
            (High, None, Some(24_000)),
            (High, Some(8_192), Some(4_096)),
            (Medium, Some(4_096), Some(2_048)),
            (Medium, Some(64_000), Some(8_000)),
            (Low, Some(2_048), Some(1_024)),
            (Low, Some(2_000), None),
        ] {
            let prompt = Prompt { reasoning_effort: Some(effort), max_tokens: most, ..Prompt::default() };
            let notice = super::reasoning_effort(&prompt, ProviderVendor::Anthropic, "claude-sonnet-4-5");
            let budget = notice.map(|notice| match notice {
                GenaiEffort::Budget(budget) => budget,
                other => panic!("{other:?} is no budget"),
            });
            assert_eq!(budget, expected, "{effort:?} of {most:?}");
        }
    }

    #[test]
    fn models_with_effort_levels_are_recognized() {
        for model in ["claude-opus-4-5", "claude-opus-5", "claude-sonnet-4-6", "claude-sonnet-5-20260101"] {
            assert!(accepts_effort_word(model), "{model}");
        }
        for model in
            ["claude-opus-4-20250514", "claude-sonnet-4-5", "claude-haiku-4-5", "claude-3-7-sonnet", "m"]
        {
            assert!(!accepts_effort_word(model), "{model}");
        }
    }
}
