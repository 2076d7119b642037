//! The model port: tries the candidates in order until one answers.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polyclaw_domain::port::{BoxFuture, WallClock};
use polyclaw_domain::provider::{
    DeltaSink, ErrorClass, ModelInfo, ModelProvider, ModelRef, ModelReply, ModelStatus, Prompt,
    ProviderError, StreamDelta,
};
use tracing::instrument::WithSubscriber;
use tracing::{Dispatch, warn};

use crate::answer::ModelAnswer;
use crate::catalog::ModelCatalog;
use crate::cooldown::{self, Cooldowns};
use crate::embedded::{self, EmbeddedChat};
use crate::endpoint::{ConnectionReuse, EndpointClients, ProviderEndpoint};
use crate::error::Error;
use crate::error_class::ModelCallError;
use crate::settings::{ApiKey, ModelProvidersSettings};
use crate::stream::AnswerReader;
use crate::{openai, prompt, tool_calls, wire};

/// Retry delay of a rate limit without Retry-After: short, because such limits pass quickly.
const RATE_LIMIT_RETRY_MS: u64 = 2_000;

/// Retry delay of other transient failures. Shorter than a rate limit, so they are retried first.
const TRANSIENT_RETRY_MS: u64 = 250;

/// A request to one candidate.
#[derive(Clone, Copy)]
pub(crate) struct CandidateRequest<'a> {
    pub prompt: &'a Prompt,
    pub sink: DeltaSink<'a>,
    /// Another candidate can be tried, so a silent model need not be waited for.
    pub has_next: bool,
    pub connection: ConnectionReuse,
}

impl CandidateRequest<'_> {
    /// Maximum silence, before the first token and after each one. `None`: no limit.
    pub fn silence_timeout(&self, endpoint: &ProviderEndpoint) -> Option<Duration> {
        self.has_next.then_some(endpoint.first_token_timeout)
    }
}

pub struct ModelProviders {
    endpoints: HashMap<String, ProviderEndpoint>,
    /// In configured order, for listing.
    names: Vec<String>,
    cooldowns: Cooldowns,
    catalog: ModelCatalog,
    clock: Arc<dyn WallClock>,
    embedded: Option<Arc<EmbeddedChat>>,
}

impl ModelProviders {
    pub fn new(settings: ModelProvidersSettings, clock: Arc<dyn WallClock>) -> Result<Self, Error> {
        let mut clients = EndpointClients::default();
        let mut endpoints: HashMap<String, ProviderEndpoint> = HashMap::new();
        let mut names = Vec::new();
        for (index, provider) in settings.providers.into_iter().enumerate() {
            let mut endpoint = ProviderEndpoint::new(provider, &mut clients)?;
            let twin = endpoints.values().find(|other| other.shares_limits_with(&endpoint));
            endpoint.credential = twin.map_or(index, |twin| twin.credential);
            let name = endpoint.name.clone();
            names.push(name.clone());
            if endpoints.insert(name.clone(), endpoint).is_some() {
                return Err(Error::Duplicate(name));
            }
        }
        if settings.embedded.is_some() && endpoints.contains_key(embedded::EMBEDDED_PROVIDER) {
            return Err(Error::Duplicate(embedded::EMBEDDED_PROVIDER.to_owned()));
        }
        Ok(Self {
            endpoints,
            names,
            cooldowns: Cooldowns::default(),
            catalog: ModelCatalog::default(),
            clock,
            embedded: settings.embedded,
        })
    }

    async fn first_answer(
        &self,
        candidates: &[ModelRef],
        prompt: &Prompt,
        sink: DeltaSink<'_>,
    ) -> Result<ModelReply, ProviderError> {
        let streamed = AtomicBool::new(false);
        let watched = |delta| {
            streamed.store(true, Ordering::Relaxed);
            sink(delta);
        };
        let mut failed: Vec<ProviderError> = Vec::new();
        let order = self.order_candidates(candidates);
        let last = order.len().saturating_sub(1);
        for (at, (model, has_next)) in order.into_iter().enumerate() {
            let question =
                CandidateRequest { prompt, sink: &watched, has_next, connection: ConnectionReuse::Pooled };
            if streamed.swap(false, Ordering::Relaxed) {
                sink(StreamDelta::Restart);
            }
            match self.ask_model(model, question).await {
                // An empty answer of the last candidate is returned, because it was paid for and the caller decides.
                Ok(reply) if reply.is_empty() && at < last => {
                    let fault = ModelCallError::new(ErrorClass::Empty, "the model returned an empty answer");
                    failed.push(self.record_failure(model, fault));
                }
                Ok(reply) => return Ok(reply),
                Err(fault) => {
                    let error = self.record_failure(model, fault);
                    let try_next = error.class.may_try_next();
                    failed.push(error);
                    if !try_next {
                        break;
                    }
                }
            }
        }
        Err(summarize_failures(failed))
    }

    /// Returns each candidate once, and whether another one of the same group follows. Cooling candidates come last:
    /// they are still tried, because an old failure does not help if no other model answers.
    fn order_candidates<'a>(&self, candidates: &'a [ModelRef]) -> Vec<(&'a ModelRef, bool)> {
        let is_first = |(at, model): &(usize, &ModelRef)| !candidates[..*at].contains(model);
        let each = candidates.iter().enumerate().filter(is_first).map(|(_, model)| model);
        let (cooling, ready): (Vec<_>, Vec<_>) = each.partition(|model| self.is_cooling(model));
        let followed = |models: Vec<&'a ModelRef>| {
            let last = models.len().saturating_sub(1);
            models.into_iter().enumerate().map(move |(at, model)| (model, at < last))
        };
        followed(ready).chain(followed(cooling)).collect()
    }

    fn is_cooling(&self, model: &ModelRef) -> bool {
        self.endpoints.get(&model.provider).is_some_and(|endpoint| {
            self.cooldowns.is_cooling(endpoint.credential, &model.model, self.clock.now())
        })
    }

    /// Asks a model. One without image support gets text placeholders. One that rejects a prompt with images is asked
    /// again without them, so that an unsupported image does not block a conversation for good.
    async fn ask_model(
        &self,
        model: &ModelRef,
        question: CandidateRequest<'_>,
    ) -> Result<ModelReply, ModelCallError> {
        if !question.prompt.has_images() {
            return self.ask_once(model, question).await;
        }
        let text_of = || question.prompt.without_images();
        let Some(endpoint) = self.image_endpoint(model) else {
            return self.ask_once(model, CandidateRequest { prompt: &text_of(), ..question }).await;
        };
        let fitting = prompt::without_oversized_images(question.prompt, endpoint.kind);
        let shown = CandidateRequest { prompt: fitting.as_ref().unwrap_or(question.prompt), ..question };
        match self.ask_watched(model, shown).await {
            Err(fault) if fault.is_about_request() => {
                warn!(model = %model, "model rejected a prompt with images; retrying without them");
                self.ask_once(model, CandidateRequest { prompt: &text_of(), ..question }).await
            }
            answered => answered,
        }
    }

    /// Like [`Self::ask_once`], but discards streamed text if the request was rejected.
    async fn ask_watched(
        &self,
        model: &ModelRef,
        question: CandidateRequest<'_>,
    ) -> Result<ModelReply, ModelCallError> {
        let streamed = AtomicBool::new(false);
        let watched = |delta| {
            streamed.store(true, Ordering::Relaxed);
            (question.sink)(delta);
        };
        let answered = self.ask_once(model, CandidateRequest { sink: &watched, ..question }).await;
        if answered.as_ref().is_err_and(ModelCallError::is_about_request) && streamed.load(Ordering::Relaxed)
        {
            (question.sink)(StreamDelta::Restart);
        }
        answered
    }

    /// Returns the endpoint of a model that accepts images.
    fn image_endpoint(&self, model: &ModelRef) -> Option<&ProviderEndpoint> {
        let endpoint = self.endpoints.get(&model.provider).filter(|endpoint| endpoint.images);
        endpoint.filter(|_| *model != embedded::chat_model())
    }

    async fn ask_once(
        &self,
        model: &ModelRef,
        question: CandidateRequest<'_>,
    ) -> Result<ModelReply, ModelCallError> {
        let mut answer = match &self.embedded {
            Some(chat) if *model == embedded::chat_model() => {
                chat.generate_answer(question.prompt, question.sink).await?
            }
            _ => self.ask_endpoint(model, question).await?,
        };
        tool_calls::make_ids_unique(&mut answer.calls, question.prompt);
        Ok(ModelReply {
            text: answer.text,
            calls: answer.calls,
            usage: answer.usage,
            model: model.clone(),
            truncated: answer.truncated,
        })
    }

    async fn ask_endpoint(
        &self,
        model: &ModelRef,
        question: CandidateRequest<'_>,
    ) -> Result<ModelAnswer, ModelCallError> {
        let endpoint = self.endpoints.get(&model.provider).ok_or_else(|| {
            ModelCallError::new(
                ErrorClass::NotConfigured,
                format!("no provider '{}' is configured", model.provider),
            )
        })?;
        if endpoint.lacks_key() {
            let message = format!("no API key is configured for provider '{}'", endpoint.name);
            return Err(ModelCallError::new(ErrorClass::Auth, message));
        }
        let answer = match ask_wire(endpoint, &model.model, question).await {
            // The pooled connection died while idle, which is no failure of the provider.
            Err(fault) if fault.is_stale_connection => {
                let afresh = CandidateRequest { connection: ConnectionReuse::Fresh, ..question };
                ask_wire(endpoint, &model.model, afresh).await?
            }
            answered => answered?,
        };
        self.cooldowns.clear(endpoint.credential, &model.model);
        self.catalog.mark_reachable(&endpoint.name);
        Ok(answer)
    }

    fn record_failure(&self, model: &ModelRef, fault: ModelCallError) -> ProviderError {
        let endpoint = self.endpoints.get(&model.provider);
        if let (Some(endpoint), Some(rest)) =
            (endpoint, cooldown::cooldown_ms(fault.class, fault.retry_after_ms))
        {
            self.cooldowns.start(endpoint.credential, &model.model, self.clock.now(), rest);
        }
        if fault.class == ErrorClass::Unreachable {
            self.catalog.mark_unreachable(&model.provider);
        }
        warn!(model = %model, class = fault.class.as_str(), "model call failed");
        let key = endpoint.and_then(|endpoint| endpoint.key.as_ref());
        fault.into_error(model, key.map(ApiKey::expose))
    }
}

async fn ask_wire(
    endpoint: &ProviderEndpoint,
    model: &str,
    question: CandidateRequest<'_>,
) -> Result<ModelAnswer, ModelCallError> {
    let Some(pieces) = wire::tool_call_streaming(endpoint.kind) else {
        return openai::ask_openai(endpoint, model, question).await;
    };
    let reading =
        AnswerReader { pieces, silence_timeout: question.silence_timeout(endpoint), sink: question.sink };
    let request = prompt::chat_request(question.prompt, endpoint.kind);
    let options = prompt::chat_options(question.prompt, endpoint.kind, model);
    let client = endpoint.genai_client(question.connection)?;
    let call = client.exec_chat_stream(endpoint.service_target(model), request, Some(&options));
    reading.read_stream(call.with_subscriber(Dispatch::none()).await?.stream).await
}

fn embedded_model_info(chat: &EmbeddedChat) -> ModelInfo {
    let model = embedded::chat_model();
    let status = match chat.weights_exist() {
        false => ModelStatus::Unreachable,
        true if chat.is_corrupt() => ModelStatus::Damaged,
        true => ModelStatus::Ready,
    };
    ModelInfo { model, context_window: Some(embedded::CHAT_CONTEXT_TOKENS), status, demo: true }
}

/// Returns the delay in milliseconds after which a retry may succeed, as callers use it.
fn retry_in_ms(error: &ProviderError) -> Option<u64> {
    match (error.class, error.retry_after_ms) {
        (ErrorClass::RateLimit | ErrorClass::Overload, Some(ms)) => Some(ms),
        (ErrorClass::RateLimit, None) => Some(RATE_LIMIT_RETRY_MS),
        (class, _) if class.is_transient() => Some(TRANSIENT_RETRY_MS),
        _ => None,
    }
}

/// Combines the failures. Returns the one that can be retried soonest, else the last one, and names the others. If the
/// last one says that the request is wrong, waiting does not help, and it is returned.
fn summarize_failures(mut failed: Vec<ProviderError>) -> ProviderError {
    let may_wait = failed.last().is_some_and(|error| error.class.may_try_next());
    let waits = failed.iter().enumerate().filter_map(|(at, error)| Some((retry_in_ms(error)?, Reverse(at))));
    let soonest = waits.min().filter(|_| may_wait).map(|(_, Reverse(at))| at);
    let Some(speaker) = soonest.or(failed.len().checked_sub(1)) else {
        return ProviderError {
            class: ErrorClass::NotConfigured,
            model: "none".to_owned(),
            message: "no model is configured".to_owned(),
            retry_after_ms: None,
        };
    };
    let mut speaks = failed.remove(speaker);
    if !failed.is_empty() {
        let others: Vec<_> =
            failed.iter().map(|error| format!("{} {}", error.model, error.class.as_str())).collect();
        let when = if speaker == failed.len() { "before" } else { "beside" };
        speaks.message = format!("{} ({when}: {})", speaks.message, others.join(", "));
    }
    speaks
}

impl ModelProvider for ModelProviders {
    fn stream_reply<'a>(
        &'a self,
        candidates: &'a [ModelRef],
        prompt: &'a Prompt,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        Box::pin(self.first_answer(candidates, prompt, sink))
    }

    fn list_models(&self) -> BoxFuture<'_, Vec<ModelInfo>> {
        let endpoints = self.names.iter().filter_map(|name| self.endpoints.get(name)).collect();
        let is_cooling = |model: &ModelRef| self.is_cooling(model);
        Box::pin(async move {
            let mut models = self.catalog.list_models(endpoints, self.clock.now(), &is_cooling).await;
            models.extend(self.embedded.as_deref().map(embedded_model_info));
            models
        })
    }
}
