//! Estimates the context usage of a session's next prompt, for people.

use polyclaw_domain::id::{TraceId, TurnId};
use polyclaw_domain::job::JobLane;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::message::MessageRole;
use polyclaw_domain::prompt::{estimate_line_tokens, estimate_text_tokens};
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::ToolSpec;
use polyclaw_store::jobs::{TurnClaim, TurnJobKind};

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::memory::RecalledText;
use crate::prompt::TurnContext;
use crate::reply_text;
use crate::turn::TurnAbort;

/// Estimated tokens. Models count differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextUsage {
    pub model: Option<ModelRef>,
    pub window: usize,
    pub system: usize,
    pub tools: usize,
    pub summary: usize,
    pub history: usize,
    /// Messages of the history that are not summarized.
    pub messages: usize,
    /// Memories that would be recalled for the newest message.
    pub recalled: usize,
    pub memories: usize,
}

impl ContextUsage {
    pub fn total_tokens(&self) -> usize {
        self.system + self.tools + self.summary + self.history + self.recalled
    }
}

impl Engine {
    pub async fn context_usage(&self, key: &SessionKey) -> Result<ContextUsage> {
        let claim = self.inspection_claim(key).await?;
        let context = match TurnContext::load_for_inspection(self, &claim).await {
            Ok(context) => context,
            Err(TurnAbort::Lost(error)) => return Err(error),
            Err(_) => return Err(Error::UnknownSession(key.to_string())),
        };
        let newest = context.lines.iter().rev().find(|line| line.role == MessageRole::User);
        let question = newest.map(|line| line.text.clone()).unwrap_or_default();
        let recalled = context
            .look_up_memories(self, &question)
            .await
            .and_then(|recalled| RecalledText::from_memories(&recalled));
        let model = context.candidates.first().cloned();
        Ok(ContextUsage {
            window: model
                .as_ref()
                .map_or(self.settings().default_context_window, |model| self.context_window(model)),
            model,
            system: estimate_text_tokens(&context.system),
            tools: context.tools.iter().map(|tool| tool_tokens(&tool.spec)).sum(),
            summary: context.compaction.summary.as_deref().map_or(0, estimate_text_tokens),
            history: context.lines.iter().map(estimate_line_tokens).sum(),
            messages: context.lines.len(),
            recalled: recalled.as_ref().map_or(0, |recall| estimate_text_tokens(&recall.text)),
            memories: recalled.map_or(0, |recall| recall.memories),
        })
    }

    /// A claim of a turn that never runs, to inspect a session.
    async fn inspection_claim(&self, key: &SessionKey) -> Result<TurnClaim> {
        let session = self.load_session(key).await?;
        Ok(TurnClaim {
            turn: TurnId::new(format!("look-{}", self.next_id())),
            session: key.clone(),
            agent: session.active_agent,
            kind: TurnJobKind::Turn,
            lane: JobLane::Main,
            node: self.node().clone(),
            attempt: 1,
            blamed_deaths: 0,
            was_held: false,
            inputs: 0,
            has_person: false,
            stopping: false,
            hop: 0,
            trace: TraceId::new(""),
        })
    }

    /// Context usage as a chat reply.
    pub(crate) async fn context_command(&self, key: &SessionKey, locale: Locale) -> Result<String> {
        Ok(reply_text::status::context_usage(locale, &self.context_usage(key).await?))
    }
}

pub(crate) fn tool_tokens(tool: &ToolSpec) -> usize {
    estimate_text_tokens(&tool.name)
        + estimate_text_tokens(&tool.description)
        + estimate_text_tokens(&tool.parameters.to_string())
}
