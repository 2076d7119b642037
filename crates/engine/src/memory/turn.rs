//! What a turn remembers: looked up once, before its first model call, and shown in its prompts only.

use polyclaw_domain::event::EventKind;
use polyclaw_domain::memory::MemoryViewer;
use polyclaw_domain::recall;
use polyclaw_store::jobs::TurnClaim;
use serde_json::json;

use super::RecalledMemories;
use crate::core::Engine;
use crate::prompt::TurnContext;
use crate::turn::turn_event;

/// The share of a model's context that memories may take, whatever an agent allows: one of so many parts.
const CONTEXT_SHARE_DIVISOR: usize = 8;

/// Remembered text, for the prompts of one turn.
pub(crate) struct RecalledText {
    pub text: String,
    pub memories: usize,
}

impl RecalledText {
    pub fn from_memories(recalled: &RecalledMemories) -> Option<Self> {
        let memories = recalled.memories.len();
        (memories > 0).then(|| Self { text: recall::render_memories(&recalled.memories), memories })
    }
}

impl TurnContext {
    /// Where nothing is remembered, or the agent is not to, this asks nobody. A turn never fails for it.
    pub async fn recall_memories(&mut self, engine: &Engine, claim: &TurnClaim) {
        let question = self.input_text();
        let Some(recalled) = self.look_up_memories(engine, &question).await else { return };
        let memories = recalled.memories.len();
        if memories > 0 {
            tracing::info!(memories, words_only = recalled.words_only, "recalled");
        }
        if let Some(why) = recalled.words_only.filter(|_| engine.memory_store().has_embedder()) {
            engine.record_event(turn_event(claim, EventKind::RecallPartial, json!({ "reason": why }))).await;
        }
        self.recalled = RecalledText::from_memories(&recalled);
    }

    /// What fits a question, as this agent may see it.
    pub async fn look_up_memories(&self, engine: &Engine, question: &str) -> Option<RecalledMemories> {
        let policy = &self.spec.context_policy;
        if !policy.memory || engine.memory_store().is_empty() || question.trim().is_empty() {
            return None;
        }
        let window = self.candidates.first().map_or(0, |model| engine.context_window(model));
        let budget =
            usize::try_from(policy.recall_budget_tokens).unwrap_or(0).min(window / CONTEXT_SHARE_DIVISOR);
        if budget == 0 {
            return None;
        }
        let viewer = MemoryViewer::for_session(&self.scope.agent, &self.scope.session, policy);
        match engine.memory_store().recall_memories(&viewer, question, budget).await {
            Ok(recalled) => Some(recalled),
            Err(error) => {
                tracing::warn!(%error, "nothing could be recalled, the turn goes on without");
                None
            }
        }
    }
}
