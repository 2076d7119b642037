//! A whole answer of a model, and what makes it whole.

use polyclaw_domain::provider::{ErrorClass, TokenUsage};
use polyclaw_domain::tool::ToolCall;

use crate::calls::Calls;
use crate::fault::Fault;

/// A model that never stops fills no memory: what it says beyond this is not waited for.
pub(crate) const MOST_BYTES: usize = 4 << 20;

pub(crate) struct Answer {
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub usage: TokenUsage,
    pub truncated: bool,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Done,
    Calls,
    /// It ran out of room.
    Length,
    Filtered,
}

#[derive(Default)]
pub(crate) struct Ending {
    /// `None`: it did not say.
    pub stop: Option<Stop>,
    pub usage: TokenUsage,
}

impl Answer {
    /// What there is of one that is longer than anybody reads.
    pub fn cut(text: String, calls: Calls, usage: TokenUsage) -> Result<Self, Fault> {
        Self::finish(text, calls, Ending { stop: Some(Stop::Length), usage })
    }

    pub fn finish(text: String, calls: Calls, ending: Ending) -> Result<Self, Fault> {
        let is_empty = text.is_empty() && calls.is_empty();
        match ending.stop {
            None if is_empty => return Err(Fault::cut_off()),
            Some(Stop::Calls) if calls.is_empty() => {
                return Err(Fault::malformed("the answer announces a tool call and has none"));
            }
            Some(Stop::Filtered) if is_empty => {
                let message = "the provider's content filter refused to answer";
                return Err(Fault::new(ErrorClass::BadRequest, message));
            }
            _ => {}
        }
        let truncated = ending.stop == Some(Stop::Length);
        let calls = calls.finish(truncated)?;
        Ok(Self { text, calls, usage: ending.usage, truncated })
    }
}
