//! Recall for a turn: memories are looked up once, before the first model call, and are shown only in its prompts.

use polyclaw_domain::event::EventKind;
use polyclaw_domain::memory::MemoryViewer;
use polyclaw_domain::recall;
use polyclaw_store::jobs::TurnClaim;
use serde_json::json;

use super::RecalledMemories;
use crate::core::Engine;
use crate::prompt::TurnContext;
use crate::turn::turn_event;

/// Memories may take at most 1/8 of the context window, whatever the agent's budget.
const CONTEXT_SHARE_DIVISOR: usize = 8;

/// Recalled memories as text for the prompts of one turn.
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
    /// Recalls memories for the turn's input. Does nothing if there are none or the agent's policy forbids it. Never
    /// fails the turn.
    pub async fn recall_memories(&mut self, engine: &Engine, claim: &TurnClaim) {
        let question = self.input_text();
        let Some(recalled) = self.look_up_memories(engine, &question).await else { return };
        let memories = recalled.memories.len();
        if memories > 0 {
            tracing::info!(memories, words_only = recalled.words_only, "memories recalled");
        }
        if let Some(why) = recalled.words_only.filter(|_| engine.memory_store().has_embedder()) {
            engine.record_event(turn_event(claim, EventKind::RecallPartial, json!({ "reason": why }))).await;
        }
        self.recalled = RecalledText::from_memories(&recalled);
    }

    /// Looks up memories for a question, as far as this agent may see them.
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
                tracing::warn!(%error, "recall failed; the turn continues without memories");
                None
            }
        }
    }
}
