//! A complete model answer and the checks that make it complete.

use polyclaw_domain::provider::{ErrorClass, TokenUsage};
use polyclaw_domain::tool::ToolCall;

use crate::error_class::ModelCallError;
use crate::tool_calls::ToolCallAssembler;

/// Limit on the size of an answer, so that a model that never stops cannot fill the memory.
pub(crate) const MAX_ANSWER_BYTES: usize = 4 << 20;

pub(crate) struct ModelAnswer {
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub usage: TokenUsage,
    pub truncated: bool,
}

/// The reason why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinishReason {
    Done,
    Calls,
    /// The token limit was reached.
    Length,
    Filtered,
}

#[derive(Default)]
pub(crate) struct AnswerEnd {
    /// `None` if the provider gave no reason.
    pub stop: Option<FinishReason>,
    pub usage: TokenUsage,
}

impl ModelAnswer {
    /// Builds the answer from what was read before it exceeded the size limit.
    pub fn from_truncated(
        text: String,
        calls: ToolCallAssembler,
        usage: TokenUsage,
    ) -> Result<Self, ModelCallError> {
        Self::from_parts(text, calls, AnswerEnd { stop: Some(FinishReason::Length), usage })
    }

    pub fn from_parts(
        text: String,
        calls: ToolCallAssembler,
        ending: AnswerEnd,
    ) -> Result<Self, ModelCallError> {
        let is_empty = text.is_empty() && calls.is_empty();
        match ending.stop {
            None if is_empty => return Err(ModelCallError::cut_off()),
            Some(FinishReason::Calls) if calls.is_empty() => {
                return Err(ModelCallError::malformed(
                    "the response announces a tool call but contains none",
                ));
            }
            Some(FinishReason::Filtered) if is_empty => {
                let message = "the provider's content filter blocked the response";
                return Err(ModelCallError::new(ErrorClass::BadRequest, message));
            }
            _ => {}
        }
        let truncated = ending.stop == Some(FinishReason::Length);
        let calls = calls.into_tool_calls(truncated)?;
        Ok(Self { text, calls, usage: ending.usage, truncated })
    }
}
