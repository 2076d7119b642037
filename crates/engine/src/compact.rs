//! Compaction: old history becomes a summary before the context is full. Tool pairs are never split.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::event::EventKind;
use polyclaw_domain::prompt::{self, SUMMARY_SYSTEM};
use polyclaw_domain::provider::{Delta, ErrorClass, ModelRef, Prompt, PromptMessage, ProviderError, Reply};
use polyclaw_store::sessions::Compaction;
use polyclaw_store::{Tx, events, sessions};
use serde_json::json;

use crate::budget::{self, Spent};
use crate::context::tool_tokens;
use crate::core::Engine;
use crate::prompt::Context;
use crate::redact;
use crate::turn::{Driven, Halt, check_claim, event, lost, unless_stopping};
use crate::worker::Running;

/// The least share of a window that a conversation is taken to have: one of so many.
const LEAST_ROOM: usize = 8;

impl Context {
    /// Four fifths of the room for the conversation are used: time to fold, so that the answer still has some.
    pub fn is_too_long(&self, engine: &Engine) -> bool {
        let Some(model) = self.candidates.first() else { return false };
        let lines: usize = self.lines.iter().map(prompt::estimate_tokens).sum();
        let summary = self.compaction.summary.as_deref().map_or(0, prompt::text_tokens);
        let recalled = self.recalled.as_ref().map_or(0, |recall| prompt::text_tokens(&recall.text));
        let used = lines + summary + recalled;
        // Counting all tools takes a while, and a short conversation fits beside any.
        used * LEAST_ROOM > engine.settings().context_window(model) && used * 5 > self.room(engine, model) * 4
    }

    /// What the window of a model leaves for the conversation beside what is said before every one.
    fn room(&self, engine: &Engine, model: &ModelRef) -> usize {
        let window = engine.settings().context_window(model);
        let tools: usize = self.tools.iter().map(|tool| tool_tokens(&tool.spec)).sum();
        let client_tools: usize = self.client_tools.iter().map(|tool| tool_tokens(tool)).sum();
        let fixed = prompt::text_tokens(&self.system) + tools + client_tools;
        // One that is filled by tools alone would be folded for ever.
        window.saturating_sub(fixed).max(window / LEAST_ROOM)
    }

    /// Folds what does not fit into a third of the room. `false`: there was nothing to fold.
    pub async fn compact(&mut self, engine: &Engine, running: &Arc<Running>) -> Driven<bool> {
        let Some(model) = self.candidates.first() else { return Ok(false) };
        let manual = running.claim.kind == polyclaw_store::jobs::Kind::Compact;
        let keep = if manual { 0 } else { self.room(engine, model) / 3 };
        let at = prompt::cut(&self.lines, keep);
        if at == 0 {
            return Ok(false);
        }
        self.flush(engine, running, at).await?;
        let request = prompt::summary_request(self.compaction.summary.as_deref(), &self.lines[..at]);
        let ask = Prompt {
            system: SUMMARY_SYSTEM.to_owned(),
            messages: vec![PromptMessage::User(request)],
            ..Prompt::default()
        };
        let reply = self.ask_aside(engine, running, (ask, Duration::MAX)).await?.map_err(Halt::from)?;
        let compaction = Compaction { summary: Some(reply.text), through: self.lines[at - 1].ticket };
        self.store_compaction(engine, running, &compaction).await?;
        self.lines.drain(..at);
        self.compaction = compaction;
        Ok(true)
    }

    /// A call of this turn that is no step of it: nobody reads along. Whoever asks stores what it cost.
    pub async fn ask_aside(
        &mut self,
        engine: &Engine,
        running: &Running,
        (mut ask, patience): (Prompt, Duration),
    ) -> Driven<Result<Reply, ProviderError>> {
        let Some(model) = self.candidates.first() else { return Err(Halt::no_model(engine)) };
        let redactor = engine.redactor();
        redactor.prompt(&mut ask);
        let reservation = budget::reserve(engine, running, self, &mut ask).await?;
        running.spend(Some(Spent::begun(model, reservation.clone())));
        let sink = |_: Delta| running.pulse();
        let asked = engine.provider().stream(&self.candidates, &ask, &sink);
        match tokio::time::timeout(patience, asked).await.unwrap_or_else(|_| Err(too_slow(model))) {
            Ok(mut reply) => {
                redact::reply(&redactor, &mut reply);
                let spent = Spent::replied(engine, &reply, reservation);
                self.spend(&spent);
                running.spend(Some(spent));
                Ok(Ok(reply))
            }
            Err(error) => {
                running.spend(None);
                budget::release(engine, &running.claim, reservation.as_deref()).await?;
                Ok(Err(redact::provider_error(&redactor, error)))
            }
        }
    }

    async fn store_compaction(
        &self,
        engine: &Engine,
        running: &Running,
        compaction: &Compaction,
    ) -> Driven<()> {
        let (claim, id, compaction, now, spent) = (
            running.claim.clone(),
            self.session_id.clone(),
            compaction.clone(),
            engine.now(),
            running.spent(),
        );
        let write = move |tx: &mut Tx<'_>| {
            sessions::set_compaction(tx, &claim.session, &id, &compaction)?;
            let hold = check_claim(tx, &claim)?;
            let notices = spent.as_ref().map_or(Ok(Vec::new()), |spent| spent.store(tx, &claim, now))?;
            let data = json!({ "through_ticket": compaction.through });
            events::record(tx, &event(&claim, EventKind::SessionCompacted, data), now)?;
            Ok((hold, notices))
        };
        let (hold, notices) = lost(engine.persist(write).await)?;
        running.spend(None);
        budget::tell(engine, &running.claim, notices);
        unless_stopping(hold)
    }
}

fn too_slow(model: &ModelRef) -> ProviderError {
    let message = "it took too long".to_owned();
    ProviderError { class: ErrorClass::Timeout, model: model.to_string(), message, retry_after_ms: None }
}
