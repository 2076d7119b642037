//! A chunk of a streamed answer, in the formats of known servers.

use polyclaw_domain::provider::TokenUsage;
use serde::Deserialize;
use serde_json::Value;

use crate::answer::FinishReason;

#[derive(Deserialize)]
pub(super) struct UpstreamChunk {
    choices: Option<Vec<UpstreamChoice>>,
    usage: Option<Value>,
    /// Groq's own field for usage.
    x_groq: Option<GroqUsage>,
    pub error: Option<Value>,
}

#[derive(Deserialize)]
struct GroqUsage {
    usage: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct UpstreamChoice {
    pub delta: Option<UpstreamDelta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
pub(super) struct UpstreamDelta {
    content: Option<DeltaContent>,
    /// The reasoning, under either of two names depending on the server.
    reasoning: Option<String>,
    reasoning_content: Option<String>,
    pub tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum DeltaContent {
    Text(String),
    /// Mistral's reasoning models.
    Parts(Vec<DeltaPart>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum DeltaPart {
    Text {
        text: String,
    },
    Thinking {
        thinking: Vec<DeltaPart>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct CallPiece {
    index: Option<u32>,
    id: Option<String>,
    function: Option<FunctionPiece>,
}

#[derive(Deserialize, Default)]
struct FunctionPiece {
    name: Option<String>,
    arguments: Option<Value>,
}

impl UpstreamChunk {
    pub fn usage(&self) -> Option<TokenUsage> {
        let value = self.usage.as_ref().or_else(|| self.x_groq.as_ref()?.usage.as_ref())?;
        let usage = parse_usage(value);
        (usage != TokenUsage::default()).then_some(usage)
    }

    pub fn into_choice(self) -> Option<UpstreamChoice> {
        self.choices?.into_iter().next()
    }
}

/// Parses the usage. Some servers report reasoning tokens separately from output tokens; the total tells which.
fn parse_usage(usage: &Value) -> TokenUsage {
    let number = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    let (input, output) = (number("/prompt_tokens"), number("/completion_tokens"));
    let thoughts = number("/completion_tokens_details/reasoning_tokens").unwrap_or(0);
    let apart = |output: u64| input?.checked_add(output)?.checked_add(thoughts);
    let output = output.map(|output| match number("/total_tokens") {
        total if total.is_some() && total == apart(output) => output + thoughts,
        _ => output,
    });
    TokenUsage {
        input_tokens: input,
        output_tokens: output,
        cached_tokens: number("/prompt_tokens_details/cached_tokens"),
    }
}

impl UpstreamChoice {
    pub fn finish_reason(&self) -> Option<FinishReason> {
        Some(match self.finish_reason.as_deref()? {
            "length" | "max_tokens" => FinishReason::Length,
            "tool_calls" | "function_call" => FinishReason::Calls,
            "content_filter" => FinishReason::Filtered,
            _ => FinishReason::Done,
        })
    }
}

impl UpstreamDelta {
    /// Takes the reasoning and the text.
    pub fn take_thought_and_text(&mut self) -> (Option<String>, Option<String>) {
        let (mut thought, mut reply) = (String::new(), String::new());
        match self.content.take() {
            Some(DeltaContent::Text(text)) => reply = text,
            Some(DeltaContent::Parts(parts)) => {
                parts.iter().for_each(|part| part.append_to(&mut thought, &mut reply));
            }
            None => {}
        }
        let other = self.reasoning_content.take().or(self.reasoning.take());
        let thought = if thought.is_empty() { other.unwrap_or_default() } else { thought };
        let some = |text: String| (!text.is_empty()).then_some(text);
        (some(thought), some(reply))
    }
}

impl DeltaPart {
    fn append_to(&self, thought: &mut String, reply: &mut String) {
        match self {
            Self::Text { text } => reply.push_str(text),
            Self::Thinking { thinking } => {
                for part in thinking {
                    if let Self::Text { text } = part {
                        thought.push_str(text);
                    }
                }
            }
            Self::Other => {}
        }
    }
}

impl CallPiece {
    /// Returns id, name and arguments. A piece without an id is identified by its index, else by its position in the
    /// list.
    pub fn into_parts(self, place: usize) -> (String, String, Value) {
        let function = self.function.unwrap_or_default();
        let id = self.id.filter(|id| !id.is_empty()).unwrap_or_else(|| match self.index {
            Some(index) => format!("call_{index}"),
            None => format!("call_{place}"),
        });
        let arguments = function.arguments.unwrap_or_else(|| Value::String(String::new()));
        (id, function.name.unwrap_or_default(), arguments)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reasoning_tokens_outside_completion_are_added() {
        let usage = |total: u64| {
            let details = json!({ "reasoning_tokens": 192 });
            let value = json!({ "prompt_tokens": 10, "completion_tokens": 35, "total_tokens": total,
                                "completion_tokens_details": details });
            parse_usage(&value).output_tokens
        };
        assert_eq!((usage(237), usage(45)), (Some(227), Some(35)));
    }

    #[test]
    fn invalid_usage_numbers_are_unknown() {
        let value = json!({ "prompt_tokens": -5, "completion_tokens": 1e99, "total_tokens": "x" });
        assert_eq!(parse_usage(&value), TokenUsage::default());
    }

    #[test]
    fn reasoning_is_read_under_each_field_name() {
        let words =
            |delta: Value| serde_json::from_value::<UpstreamDelta>(delta).unwrap().take_thought_and_text();
        let thought = |text: &str| (Some(text.to_owned()), None);
        assert_eq!(words(json!({ "reasoning": "a" })), thought("a"));
        assert_eq!(words(json!({ "reasoning_content": "b", "content": "" })), thought("b"));
        let parts = json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": "c" }] },
                           { "type": "text", "text": "d" }, { "type": "new" }]);
        assert_eq!(words(json!({ "content": parts })), (Some("c".into()), Some("d".into())));
    }
}
