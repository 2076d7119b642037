//! The intent classifier: a small model that may replace the default agent by a better one. If it is too slow, not
//! confident enough or malformed, the default agent stays.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::inbound::InboundContext;
use polyclaw_domain::intent::{self, IntentClassification};
use polyclaw_domain::provider::{ModelRef, Prompt, TokenUsage};
use polyclaw_domain::sanitize;
use serde_json::json;

use super::route::session_key_for;
use super::sessionless_event;
use crate::budget::{self, OutOfTurnCall};
use crate::core::Engine;
use crate::error::Result;
use crate::redact;

/// Maximum number of cached decisions.
const MAX_CACHED_INTENTS: usize = 1_000;

/// Maximum characters of the text in the routing event.
const MAX_SHOWN_TEXT_CHARS: usize = 80;

/// Earlier decisions by identical text.
#[derive(Default)]
pub(crate) struct ClassifierCache(Mutex<ClassifierCacheState>);

#[derive(Default)]
struct ClassifierCacheState {
    by_text: HashMap<String, (IntentClassification, u64)>,
    /// Use counter, to find the least recently used entry.
    uses: u64,
}

impl ClassifierCache {
    fn get(&self, text: &str) -> Option<IntentClassification> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        let (intent, used) = kept.by_text.get_mut(text)?;
        *used = now;
        Some(intent.clone())
    }

    fn insert(&self, text: String, intent: IntentClassification) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        if kept.by_text.len() >= MAX_CACHED_INTENTS {
            let oldest = kept.by_text.iter().min_by_key(|(_, (_, used))| *used).map(|(text, _)| text.clone());
            oldest.map(|text| kept.by_text.remove(&text));
        }
        kept.by_text.insert(text, (intent, now));
    }

    /// Clears the cache after the agents changed.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).by_text.clear();
    }
}

impl Engine {
    /// The agent that the classifier is confident about. `None`: keep the default.
    pub(super) async fn classify_message(
        &self,
        message: &InboundMessage,
        text: &str,
    ) -> Result<Option<AgentId>> {
        let settings = self.settings();
        let classifier = &settings.inbound.classifier;
        let Some(model) = &classifier.model else { return Ok(None) };
        let agents = self.list_agents().await?;
        let choices: Vec<(AgentId, String)> =
            agents.iter().map(|one| (one.spec.agent_id.clone(), one.spec.description.clone())).collect();
        if choices.len() < 2 {
            return Ok(None);
        }
        let text = self.redactor().redact_text(text).into_owned();
        let (judged, from) = match self.classifier_cache.get(&text) {
            Some(intent) => (Ok(intent), "cache"),
            None => {
                let timeout = Duration::from_millis(classifier.timeout_ms.into());
                let ask = intent::classifier_prompt(&choices, &text, &self.nonce());
                (self.ask_classifier(model, ask, &message.context, (&choices, timeout)).await, "model")
            }
        };
        if let (Ok(intent), "model") = (&judged, from) {
            self.classifier_cache.insert(text.clone(), intent.clone());
        }
        Ok(self.record_decision(judged, from, (message, &text)).await)
    }

    /// Calls the model, within the budget and the timeout. A call that timed out is charged as estimated.
    async fn ask_classifier(
        &self,
        model: &ModelRef,
        ask: Prompt,
        arrival: &InboundContext,
        (choices, timeout): (&[(AgentId, String)], Duration),
    ) -> std::result::Result<IntentClassification, String> {
        let settings = self.settings();
        let session = session_key_for(&settings.inbound, &settings.default_agent, arrival);
        let aside = OutOfTurnCall { session, agent: settings.default_agent.clone(), model: model.clone() };
        let estimate = budget::estimate_if_affordable(self, &aside, &ask).await?;
        let candidates = [model.clone()];
        let asked = self.provider().stream_reply(&candidates, &ask, &|_| {});
        let Ok(reply) = tokio::time::timeout(timeout, asked).await else {
            budget::record_spending(self, aside, TokenUsage::default(), estimate);
            return Err("it took too long".to_owned());
        };
        let clean = |error| redact::redact_provider_error(&self.redactor(), error).message;
        let mut reply = reply.map_err(clean)?;
        redact::redact_reply(&self.redactor(), &mut reply);
        budget::record_spending(self, aside, reply.usage, estimate);
        let ids: Vec<&AgentId> = choices.iter().map(|(id, _)| id).collect();
        intent::parse(&reply.text, &ids).map_err(str::to_owned)
    }

    /// Records the decision with its reason and returns the chosen agent.
    async fn record_decision(
        &self,
        judged: std::result::Result<IntentClassification, String>,
        from: &str,
        (message, text): (&InboundMessage, &str),
    ) -> Option<AgentId> {
        let (chosen, mut data) = match judged {
            Ok(intent) => {
                let is_sure = intent.is_confident();
                let data = json!({ "layer": "classifier", "agent": intent.agent.as_str(), "from": from,
                    "confidence": intent.confidence, "reasoning": intent.reasoning, "used": is_sure });
                (is_sure.then_some(intent.agent), data)
            }
            Err(why) => (None, json!({ "layer": "classifier", "used": false, "failed": why })),
        };
        // Identifies the message by its platform id and first words.
        data["platform_id"] = json!(message.platform_id);
        data["text"] = json!(sanitize::to_single_line(text, MAX_SHOWN_TEXT_CHARS));
        let settings = self.settings();
        let agent = chosen.clone().unwrap_or_else(|| settings.default_agent.clone());
        let session = Some(session_key_for(&settings.inbound, &agent, &message.context));
        let routed = sessionless_event(EventKind::MessageRouted, data);
        self.record_event(NewEvent { session, agent: Some(agent), ..routed }).await;
        chosen
    }
}
