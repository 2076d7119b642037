//! Stores lasting facts as memories before history is compacted, because repeated summaries lose them.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::authority::Authority;
use polyclaw_domain::event::EventKind;
use polyclaw_domain::memory::{MemoryEntry, MemoryViewer, default_scope, derived_key, flush};
use polyclaw_domain::prompt;
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::tool::ToolScope;
use polyclaw_store::{Tx, events, messages};
use serde_json::json;

use crate::budget;
use crate::compact::SideCallLimits;
use crate::core::Engine;
use crate::prompt::TurnContext;
use crate::subagents::authority_in;
use crate::toolbox::memory::widest_scope;
use crate::turn::{TurnResult, abort_if_stopping, check_claim, or_lost, turn_event};
use crate::worker::RunningTurn;

/// Limits of the flush. Facts that are late are still part of the summary.
const FLUSH_LIMITS: SideCallLimits = SideCallLimits { time: Duration::from_secs(30), tokens: 8_000 };

impl TurnContext {
    /// Asks the model for the facts in the first `at` lines and stores them. A failure is logged and changes nothing
    /// else.
    pub(crate) async fn flush_memories(
        &mut self,
        engine: &Engine,
        running: &Arc<RunningTurn>,
        at: usize,
    ) -> TurnResult<()> {
        if !self.spec.context_policy.memory {
            return Ok(());
        }
        let request = prompt::summary_request(None, &self.lines[..at], self.summary_request_tokens(engine));
        let ask = Prompt {
            system: flush::FLUSH_SYSTEM_PROMPT.to_owned(),
            messages: vec![PromptMessage::user_text(request)],
            max_tokens: Some(flush::MAX_ANSWER_TOKENS),
            ..Prompt::default()
        };
        let reply = match self.run_side_call(engine, running, (ask, FLUSH_LIMITS)).await? {
            Ok(reply) => reply,
            Err(error) => {
                let class = error.class.as_str();
                tracing::warn!(class, "memory flush before compaction failed: {}", error.message);
                return Ok(());
            }
        };
        let facts = flush::parse_facts(&reply.text);
        let kept = match self.store_facts(engine, (&facts, at)).await {
            Ok(()) => facts.len(),
            Err(error) => {
                tracing::warn!(%error, "could not store facts before compaction");
                0
            }
        };
        self.record_flush(engine, running, kept).await
    }

    /// The same fact has the same key: folding again after a crash stores nothing twice.
    async fn store_facts(
        &self,
        engine: &Engine,
        (facts, at): (&[String], usize),
    ) -> crate::error::Result<()> {
        if facts.is_empty() {
            return Ok(());
        }
        // The facts belong to the people whose lines are compacted, not to the person who requested the compaction.
        let authority = self.folded_authority(engine, at).await?.min(self.authority());
        let scope = ToolScope { authority, ..self.scope.clone() };
        let policy = &self.spec.context_policy;
        let viewer = MemoryViewer::for_session(&self.scope.agent, &self.scope.session, policy);
        let scope = default_scope(widest_scope(&scope), &self.scope.session);
        let memory = |fact: &String| MemoryEntry {
            key: derived_key("learnt", fact),
            metadata: [("source".to_owned(), "conversation".into())].into_iter().collect(),
            ..engine.memory_store().new_memory(&viewer, scope, fact.clone())
        };
        engine.memory_store().put_memories(facts.iter().map(memory).collect()).await.map(drop)
    }

    /// The least authority of those for whom the turns of the first `at` lines worked.
    async fn folded_authority(&self, engine: &Engine, at: usize) -> crate::error::Result<Authority> {
        let Some(through) = self.lines[..at].last().map(|line| line.position) else {
            return Ok(Authority::Owner);
        };
        let (session, id) = (self.session.key.clone(), self.session_id.clone());
        let after = self.compaction.through;
        let read = move |tx: &mut Tx<'_>| {
            let turns = messages::list_turns_between(tx, (&session, &id), (after, through))?;
            turns
                .iter()
                .try_fold(Authority::Owner, |least, turn| Ok(least.min(authority_in(tx, &session, turn)?)))
        };
        Ok(engine.db().read(read).await?)
    }

    async fn record_flush(&self, engine: &Engine, running: &RunningTurn, kept: usize) -> TurnResult<()> {
        let (claim, now, spent) = (running.claim.clone(), engine.now(), running.model_call());
        let write = move |tx: &mut Tx<'_>| {
            let hold = check_claim(tx, &claim)?;
            let notices =
                spent.as_ref().map_or(Ok(Vec::new()), |spent| spent.record_usage(tx, &claim, now))?;
            events::record(
                tx,
                &turn_event(&claim, EventKind::MemoryFlushed, json!({ "memories": kept })),
                now,
            )?;
            Ok((hold, notices))
        };
        let (hold, notices) = or_lost(engine.write_with_retry(write).await)?;
        running.set_model_call(None);
        budget::publish_budget_notices(engine, &running.claim, notices);
        abort_if_stopping(hold)
    }
}
