//! Compaction: replaces old history with a summary before the context window is full. Never separates a tool call from
//! its result.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polyclaw_domain::event::EventKind;
use polyclaw_domain::prompt::{self, SUMMARY_SYSTEM_PROMPT};
use polyclaw_domain::provider::{
    ErrorClass, ModelRef, ModelReply, Prompt, PromptMessage, ProviderError, StreamDelta, TokenUsage,
};
use polyclaw_store::sessions::CompactionPoint;
use polyclaw_store::{Tx, events, sessions};
use serde_json::json;
use tokio::sync::Notify;

use crate::budget::{self, UnstoredModelCall};
use crate::context_usage::tool_tokens;
use crate::core::Engine;
use crate::prompt::TurnContext;
use crate::redact;
use crate::turn::{
    ModelRetryPolicy, TurnAbort, TurnResult, abort_if_stopping, check_claim, or_lost, turn_event,
};
use crate::worker::RunningTurn;

/// The conversation is assumed to have at least 1/8 of the context window.
const MIN_CONVERSATION_DIVISOR: usize = 8;

/// Maximum tokens of new team mail in one prompt. The rest comes with the next turn.
const MAX_MAIL_TOKENS: usize = 50_000;

/// A summary may take up to 1/6 of the conversation budget, so that there is room again next to the retained lines.
const SUMMARY_DIVISOR: usize = 6;

/// Compacting less than 1/16 of the conversation budget is not worth a model call; it would recur every turn.
const MIN_COMPACTION_DIVISOR: usize = 16;

/// Summaries are never cut below this size.
const MIN_SUMMARY_TOKENS: usize = 64;

/// Smallest context window that is tried. A model that still refuses does so for another reason.
const MIN_CONTEXT_WINDOW: usize = 256;

impl TurnContext {
    /// Whether the conversation uses more than 4/5 of its budget. It is compacted then, so that the answer still fits.
    pub fn is_too_long(&self, engine: &Engine) -> bool {
        let (used, window) = (self.conversation_tokens(), self.context_window(engine));
        // Counting the tokens of all tools is slow, and a short conversation fits with any tools.
        used * MIN_CONVERSATION_DIVISOR > window && used * 5 > self.conversation_budget(window) * 4
    }

    /// Tokens of the conversation: lines, summary, recalled memories and team mail.
    fn conversation_tokens(&self) -> usize {
        let lines: usize = self.lines.iter().map(prompt::estimate_line_tokens).sum();
        let summary = self.compaction.summary.as_deref().map_or(0, prompt::estimate_text_tokens);
        let recalled = self.recalled.as_ref().map_or(0, |recall| prompt::estimate_text_tokens(&recall.text));
        lines + summary + recalled + self.team_prompt.mail_tokens()
    }

    /// Tokens that precede every conversation: system prompt, tools and team state.
    fn fixed_tokens(&self) -> usize {
        let tools: usize = self.tools.iter().map(|tool| tool_tokens(&tool.spec)).sum();
        let client_tools: usize = self.client_tools.iter().map(|tool| tool_tokens(tool)).sum();
        let state: usize =
            self.team_prompt.state.iter().map(|block| prompt::estimate_text_tokens(block)).sum();
        prompt::estimate_text_tokens(&self.system) + tools + client_tools + state
    }

    fn context_window(&self, engine: &Engine) -> usize {
        let model = self.candidates.first();
        let usual = || engine.settings().default_context_window;
        self.window.unwrap_or_else(|| model.map_or_else(usual, |model| engine.context_window(model)))
    }

    /// The part of the window left for the conversation, at least 1/8. Otherwise tools that fill the window would cause
    /// endless compaction.
    fn conversation_budget(&self, window: usize) -> usize {
        window.saturating_sub(self.fixed_tokens()).max(window / MIN_CONVERSATION_DIVISOR)
    }

    /// Maximum tokens of new team mail. Together with a summary and the retained lines it stays under the limit of
    /// `is_too_long`.
    pub(crate) fn mail_token_budget(&self, engine: &Engine) -> usize {
        MAX_MAIL_TOKENS.min(self.conversation_budget(self.context_window(engine)) / 4)
    }

    /// Assumes a smaller window after the model rejected the prompt as too long, whatever its configured window is.
    /// `false`: the window is too small to be the cause.
    fn shrink_window(&mut self, engine: &Engine) -> bool {
        let window =
            self.context_window(engine).min(self.conversation_tokens() + self.fixed_tokens()) * 2 / 3;
        self.window = Some(window);
        window >= MIN_CONTEXT_WINDOW
    }

    /// Shrinks the conversation enough to justify another call. `false`: nothing can be removed.
    pub async fn compact_for_retry(
        &mut self,
        engine: &Engine,
        running: &Arc<RunningTurn>,
    ) -> TurnResult<bool> {
        while self.shrink_window(engine) {
            if self.compact_to_fit(engine, running).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Remembers the reduced window once the model accepts a prompt, so that the next turn need not find it again. An
    /// answer from a fallback model says nothing about the first model.
    pub fn learn_window(&self, engine: &Engine, answered: &ModelRef) {
        let first = self.candidates.first().filter(|model| *model == answered);
        if let (Some(window), Some(model)) = (self.window, first) {
            engine
                .context_windows
                .record_window(model, window.max(self.conversation_tokens() + self.fixed_tokens()));
        }
    }

    /// Makes the prompt fit: returns unread mail, compacts history, then shortens lines that are still too long. The
    /// stored messages stay complete.
    pub async fn compact_to_fit(&mut self, engine: &Engine, running: &Arc<RunningTurn>) -> TurnResult<bool> {
        let mut has_less = self.return_unread_mail(engine, &running.claim).await?;
        has_less |= self.shorten_stored_summary(engine, running).await?;
        has_less |= self.team_prompt.shorten_messages(self.conversation_budget(self.context_window(engine)));
        if has_less && !self.is_too_long(engine) {
            return Ok(true);
        }
        has_less |= self.compact_history(engine, running).await?;
        if !self.is_too_long(engine) {
            return Ok(has_less);
        }
        let most = self.conversation_budget(self.context_window(engine)) / 2;
        let shorten = |did: bool, line: &mut prompt::TranscriptLine| prompt::shorten_line(line, most) | did;
        let has_shortened = self.lines.iter_mut().fold(false, shorten);
        self.is_shortened |= has_shortened;
        Ok(has_shortened | has_less)
    }

    /// Summarizes all lines except the newest that fit a third of the budget after mail. A manual compaction keeps
    /// none. `false`: there was nothing to compact.
    pub async fn compact_history(&mut self, engine: &Engine, running: &Arc<RunningTurn>) -> TurnResult<bool> {
        let manual = running.claim.kind == polyclaw_store::jobs::TurnJobKind::Compact;
        let room = self
            .conversation_budget(self.context_window(engine))
            .saturating_sub(self.team_prompt.mail_tokens());
        let keep = if manual { 0 } else { room / 3 };
        let mut left = prompt::summary_cut(&self.lines, keep);
        let folded: usize = self.lines[..left].iter().map(prompt::estimate_line_tokens).sum();
        if left == 0 || !manual && folded * MIN_COMPACTION_DIVISOR < room {
            return Ok(false);
        }
        self.flush_memories(engine, running, left).await?;
        let mut retry = ModelRetryPolicy::default();
        while left > 0 {
            match self.summarize_lines(engine, running, left).await? {
                Ok(folded) => {
                    left -= folded;
                    retry = ModelRetryPolicy::default();
                }
                Err(error) if error.class == ErrorClass::ContextTooLong && self.shrink_window(engine) => {}
                Err(error) => retry.wait_or_fail(engine, running, self, error).await?,
            }
        }
        Ok(true)
    }

    /// Maximum tokens of one summary request, without the answer.
    pub(crate) fn summary_request_tokens(&self, engine: &Engine) -> usize {
        self.context_window(engine) / 2
    }

    /// Maximum tokens of a summary.
    fn max_summary_tokens(&self, engine: &Engine) -> usize {
        (self.conversation_budget(self.context_window(engine)) / SUMMARY_DIVISOR).max(MIN_SUMMARY_TOKENS)
    }

    /// Shortens a summary that was stored for a larger window or before summaries were bounded.
    async fn shorten_stored_summary(&mut self, engine: &Engine, running: &RunningTurn) -> TurnResult<bool> {
        let most = self.max_summary_tokens(engine);
        let mut compaction = self.compaction.clone();
        let is_shorter =
            compaction.summary.as_mut().is_some_and(|summary| prompt::shorten_text(summary, most));
        if is_shorter {
            self.store_compaction(engine, running, &compaction).await?;
            self.compaction = compaction;
        }
        Ok(is_shorter)
    }

    /// Summarizes as many of the first `left` lines as fit one request, and returns their number.
    async fn summarize_lines(
        &mut self,
        engine: &Engine,
        running: &Arc<RunningTurn>,
        left: usize,
    ) -> TurnResult<Result<usize, ProviderError>> {
        let most = self.summary_request_tokens(engine);
        let at = prompt::count_fitting_lines(&self.lines[..left], most);
        let request = prompt::summary_request(self.compaction.summary.as_deref(), &self.lines[..at], most);
        let most_summary = self.max_summary_tokens(engine);
        let ask = Prompt {
            system: format!("{SUMMARY_SYSTEM_PROMPT} Write at most {} words.", most_summary / 2),
            messages: vec![PromptMessage::user_text(request)],
            ..Prompt::default()
        };
        let limits = SideCallLimits { time: Duration::MAX, tokens: most_summary * 2 };
        let mut reply = match self.run_side_call(engine, running, (ask, limits)).await? {
            Ok(reply) => reply,
            Err(error) => return Ok(Err(error)),
        };
        prompt::shorten_text(&mut reply.text, most_summary);
        let compaction = CompactionPoint { summary: Some(reply.text), through: self.lines[at - 1].position };
        self.store_compaction(engine, running, &compaction).await?;
        self.lines.drain(..at);
        self.compaction = compaction;
        Ok(Ok(at))
    }

    /// Makes a model call of this turn that is not a step and is not shown to anyone. The caller stores its cost.
    pub async fn run_side_call(
        &mut self,
        engine: &Engine,
        running: &RunningTurn,
        (mut ask, limits): (Prompt, SideCallLimits),
    ) -> TurnResult<Result<ModelReply, ProviderError>> {
        let Some(model) = self.candidates.first() else { return Err(TurnAbort::no_model(engine)) };
        let redactor = engine.redactor();
        redactor.redact_prompt(&mut ask);
        let reservation = budget::reserve_budget(engine, running, self, &mut ask).await?;
        running.set_model_call(Some(UnstoredModelCall::in_flight(model, reservation.clone())));
        let written = PartialReply::new(limits.tokens);
        let sink = |delta: StreamDelta| {
            running.note_progress();
            written.push_delta(delta);
        };
        let asked =
            tokio::time::timeout(limits.time, engine.provider().stream_reply(&self.candidates, &ask, &sink));
        let answered = tokio::select! {
            biased;
            answered = asked => answered.unwrap_or_else(|_| Err(slow_call_error(model))),
            () = written.is_full.notified() => Ok(written.as_reply(model)),
        };
        match answered {
            Ok(mut reply) => {
                redact::redact_reply(&redactor, &mut reply);
                let spent = UnstoredModelCall::from_reply(engine, &reply, reservation);
                self.add_usage(&spent);
                running.set_model_call(Some(spent));
                Ok(Ok(reply))
            }
            Err(error) => {
                running.set_model_call(None);
                budget::release_reservation(engine, &running.claim, reservation.as_deref()).await?;
                Ok(Err(redact::redact_provider_error(&redactor, error)))
            }
        }
    }

    async fn store_compaction(
        &self,
        engine: &Engine,
        running: &RunningTurn,
        compaction: &CompactionPoint,
    ) -> TurnResult<()> {
        let (claim, id, compaction, now, spent) = (
            running.claim.clone(),
            self.session_id.clone(),
            compaction.clone(),
            engine.now(),
            running.model_call(),
        );
        let write = move |tx: &mut Tx<'_>| {
            sessions::set_compaction(tx, &claim.session, &id, &compaction)?;
            let hold = check_claim(tx, &claim)?;
            let notices =
                spent.as_ref().map_or(Ok(Vec::new()), |spent| spent.record_usage(tx, &claim, now))?;
            let data = json!({ "through_ticket": compaction.through });
            events::record(tx, &turn_event(&claim, EventKind::SessionCompacted, data), now)?;
            Ok((hold, notices))
        };
        let (hold, notices) = or_lost(engine.write_with_retry(write).await)?;
        running.set_model_call(None);
        budget::publish_budget_notices(engine, &running.claim, notices);
        abort_if_stopping(hold)
    }
}

/// Limits of a side call's duration and answer length.
#[derive(Clone, Copy)]
pub(crate) struct SideCallLimits {
    pub time: Duration,
    pub tokens: usize,
}

/// The part of an answer received so far. An answer that exceeds the limit is cut off.
struct PartialReply {
    text: Mutex<String>,
    max_bytes: usize,
    is_full: Notify,
}

impl PartialReply {
    fn new(most_tokens: usize) -> Self {
        // Upper bound of bytes per token in the estimate that all limits here use.
        const MAX_TOKEN_BYTES: usize = 8;
        let max_bytes = most_tokens.saturating_mul(MAX_TOKEN_BYTES);
        Self { text: Mutex::default(), max_bytes, is_full: Notify::new() }
    }

    fn push_delta(&self, delta: StreamDelta) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        match delta {
            StreamDelta::Text(more) => text.push_str(&more),
            StreamDelta::Reasoning(_) => {}
            StreamDelta::Restart => text.clear(),
        }
        if text.len() > self.max_bytes {
            self.is_full.notify_one();
        }
    }

    /// The text so far as a truncated reply. Its token usage is unknown.
    fn as_reply(&self, model: &ModelRef) -> ModelReply {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ModelReply {
            text,
            calls: Vec::new(),
            usage: TokenUsage::default(),
            model: model.clone(),
            truncated: true,
        }
    }
}

fn slow_call_error(model: &ModelRef) -> ProviderError {
    let message = "the model call timed out".to_owned();
    ProviderError { class: ErrorClass::Timeout, model: model.to_string(), message, retry_after_ms: None }
}
