//! A whole answer of a model, and what makes it whole.

use polyclaw_domain::provider::{ErrorClass, TokenUsage};
use polyclaw_domain::tool::ToolCall;

use crate::error_class::ModelCallError;
use crate::tool_calls::ToolCallAssembler;

/// A model that never stops fills no memory: what it says beyond this is not waited for.
pub(crate) const MAX_ANSWER_BYTES: usize = 4 << 20;

pub(crate) struct ModelAnswer {
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub usage: TokenUsage,
    pub truncated: bool,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinishReason {
    Done,
    Calls,
    /// It ran out of room.
    Length,
    Filtered,
}

#[derive(Default)]
pub(crate) struct AnswerEnd {
    /// `None`: it did not say.
    pub stop: Option<FinishReason>,
    pub usage: TokenUsage,
}

impl ModelAnswer {
    /// What there is of one that is longer than anybody reads.
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
                return Err(ModelCallError::malformed("the answer announces a tool call and has none"));
            }
            Some(FinishReason::Filtered) if is_empty => {
                let message = "the provider's content filter refused to answer";
                return Err(ModelCallError::new(ErrorClass::BadRequest, message));
            }
            _ => {}
        }
        let truncated = ending.stop == Some(FinishReason::Length);
        let calls = calls.into_tool_calls(truncated)?;
        Ok(Self { text, calls, usage: ending.usage, truncated })
    }
}
