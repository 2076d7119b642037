//! The list of available models: configured ones, and for servers without a configured list the ones that they report.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use polyclaw_domain::provider::{ModelInfo, ModelRef, ModelStatus};
use polyclaw_domain::time::Millis;
use reqwest::Url;
use serde::Deserialize;

use crate::endpoint::ProviderEndpoint;
use crate::settings::ProviderVendor;

/// Kept short, because somebody waits for the list.
const LISTING_TIMEOUT: Duration = Duration::from_millis(500);
const LISTING_TTL_MS: i64 = 30_000;

#[derive(Default)]
pub(crate) struct ModelCatalog {
    listings: Mutex<HashMap<String, ModelListing>>,
    /// Providers that were unreachable at the last call. A cached listing does not clear this; an answer does.
    lost: Mutex<HashSet<String>>,
}

#[derive(Clone, Default)]
struct ModelListing {
    at: Millis,
    models: Vec<ListedModel>,
    reachable: bool,
}

/// A model as listed by its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedModel {
    pub name: String,
    pub context_window: Option<u64>,
}

impl ModelCatalog {
    pub async fn list_models(
        &self,
        endpoints: Vec<&ProviderEndpoint>,
        now: Millis,
        is_cooling: &(dyn Fn(&ModelRef) -> bool + Send + Sync),
    ) -> Vec<ModelInfo> {
        let listings = join_all(endpoints.iter().map(|endpoint| self.fetch_listing(endpoint, now))).await;
        let mut models = Vec::new();
        for (endpoint, listing) in endpoints.into_iter().zip(listings) {
            for listed in listing.models {
                let model = ModelRef { provider: endpoint.name.clone(), model: listed.name };
                let status = match listing.reachable {
                    false => ModelStatus::Unreachable,
                    true if is_cooling(&model) => ModelStatus::Cooling,
                    true => ModelStatus::Ready,
                };
                models.push(ModelInfo { model, context_window: listed.context_window, status, demo: false });
            }
        }
        models
    }

    pub fn mark_unreachable(&self, provider: &str) {
        self.unreachable_providers().insert(provider.to_owned());
    }

    /// Records that the provider answered.
    pub fn mark_reachable(&self, provider: &str) {
        let mut lost = self.unreachable_providers();
        if !lost.is_empty() {
            lost.remove(provider);
        }
    }

    fn unreachable_providers(&self) -> MutexGuard<'_, HashSet<String>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Probes a provider that was unreachable. Any response counts as reachable.
    async fn is_reachable(&self, endpoint: &ProviderEndpoint) -> bool {
        let is_lost = self.unreachable_providers().contains(&endpoint.name);
        let answers = !is_lost
            || endpoint.http.get(endpoint.base.clone()).timeout(LISTING_TIMEOUT).send().await.is_ok();
        if is_lost && answers {
            self.mark_reachable(&endpoint.name);
        }
        answers
    }

    async fn fetch_listing(&self, endpoint: &ProviderEndpoint, now: Millis) -> ModelListing {
        let reachable = self.is_reachable(endpoint).await;
        if !endpoint.models.is_empty() || !endpoint.lists_models() {
            let listed = |name: &String| ListedModel { name: name.clone(), context_window: None };
            return ModelListing { at: now, models: endpoint.models.iter().map(listed).collect(), reachable };
        }
        let known = self.cached_listing(&endpoint.name);
        let is_fresh =
            |known: &ModelListing| (reachable || !known.reachable) && now.since(known.at) < LISTING_TTL_MS;
        if let Some(known) = known.clone().filter(is_fresh) {
            return known;
        }
        let listing = match fetch_models(endpoint).await {
            Some(models) => ModelListing { at: now, models, reachable: true },
            None => ModelListing { at: now, models: known.unwrap_or_default().models, reachable: false },
        };
        let mut cache = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(endpoint.name.clone(), listing.clone());
        listing
    }

    fn cached_listing(&self, name: &str) -> Option<ModelListing> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

async fn fetch_models(endpoint: &ProviderEndpoint) -> Option<Vec<ListedModel>> {
    let listing = if endpoint.kind == ProviderVendor::Ollama {
        ListingProtocol::Ollama
    } else {
        ListingProtocol::OpenAi
    };
    let mut request = endpoint.http.get(listing.list_url(&endpoint.base)?).timeout(LISTING_TIMEOUT);
    if let Some(key) = &endpoint.key {
        request = request.bearer_auth(key.expose());
    }
    listing.read_models(request).await
}

/// The API for listing models of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListingProtocol {
    OpenAi,
    Ollama,
}

impl ListingProtocol {
    /// `base` is the base URL of the chat API, `…/v1/`.
    pub fn list_url(self, base: &Url) -> Option<Url> {
        match self {
            Self::OpenAi => base.join("models").ok(),
            Self::Ollama => base.join("../api/tags").ok(),
        }
    }

    /// Returns `None` if the response is not a model list of this kind.
    pub async fn read_models(self, request: reqwest::RequestBuilder) -> Option<Vec<ListedModel>> {
        let response = request.send().await.ok()?.error_for_status().ok()?;
        match self {
            Self::OpenAi => {
                let list: OpenAiList = response.json().await.ok()?;
                Some(list.data.into_iter().map(OpenAiModel::into_listed_model).collect())
            }
            Self::Ollama => {
                let list: OllamaList = response.json().await.ok()?;
                let listed = |tag: OllamaTag| ListedModel { name: tag.name, context_window: None };
                Some(list.models.into_iter().map(listed).collect())
            }
        }
    }
}

#[derive(Deserialize)]
struct OpenAiList {
    data: Vec<OpenAiModel>,
}

/// OpenAI's list has no context size. Each server that reports it uses a field of its own.
#[derive(Deserialize)]
struct OpenAiModel {
    id: String,
    #[serde(alias = "max_model_len", alias = "max_context_length", default)]
    context_length: Option<u64>,
    #[serde(default)]
    meta: Option<LlamaCppMeta>,
}

#[derive(Deserialize)]
struct LlamaCppMeta {
    #[serde(default)]
    n_ctx: Option<u64>,
}

impl OpenAiModel {
    fn into_listed_model(self) -> ListedModel {
        let context_window = self.context_length.or(self.meta.and_then(|meta| meta.n_ctx));
        ListedModel { name: self.id, context_window }
    }
}

#[derive(Deserialize)]
struct OllamaList {
    models: Vec<OllamaTag>,
}

#[derive(Deserialize)]
struct OllamaTag {
    name: String,
}
