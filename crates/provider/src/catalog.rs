//! Which models there are: those configured, and what servers that were given no list say they have.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use polyclaw_domain::provider::{ModelInfo, ModelRef, ModelStatus};
use polyclaw_domain::time::Millis;
use reqwest::Url;
use serde::Deserialize;

use crate::endpoint::Endpoint;
use crate::settings::Kind;

/// Somebody waits for the list.
const PATIENCE: Duration = Duration::from_millis(500);
const FRESH: i64 = 30_000;

#[derive(Default)]
pub(crate) struct Catalog {
    listings: Mutex<HashMap<String, Listing>>,
    /// Providers that could not be reached when they were last asked something. A list says nothing about them until
    /// they answer again.
    lost: Mutex<HashSet<String>>,
}

#[derive(Clone, Default)]
struct Listing {
    at: Millis,
    models: Vec<Listed>,
    reachable: bool,
}

/// A model as a server lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub name: String,
    pub context_window: Option<u64>,
}

impl Catalog {
    pub async fn list(
        &self,
        endpoints: Vec<&Endpoint>,
        now: Millis,
        is_cooling: &(dyn Fn(&ModelRef) -> bool + Send + Sync),
    ) -> Vec<ModelInfo> {
        let listings = join_all(endpoints.iter().map(|endpoint| self.listing(endpoint, now))).await;
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

    pub fn lose(&self, provider: &str) {
        self.lost().insert(provider.to_owned());
    }

    /// It answered.
    pub fn find(&self, provider: &str) {
        let mut lost = self.lost();
        if !lost.is_empty() {
            lost.remove(provider);
        }
    }

    fn lost(&self) -> MutexGuard<'_, HashSet<String>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that was lost is asked whether it is there again; whatever it says then is an answer.
    async fn is_reachable(&self, endpoint: &Endpoint) -> bool {
        let is_lost = self.lost().contains(&endpoint.name);
        let answers =
            !is_lost || endpoint.http.get(endpoint.base.clone()).timeout(PATIENCE).send().await.is_ok();
        if is_lost && answers {
            self.find(&endpoint.name);
        }
        answers
    }

    async fn listing(&self, endpoint: &Endpoint, now: Millis) -> Listing {
        let reachable = self.is_reachable(endpoint).await;
        if !endpoint.models.is_empty() || !endpoint.lists_models() {
            let listed = |name: &String| Listed { name: name.clone(), context_window: None };
            return Listing { at: now, models: endpoint.models.iter().map(listed).collect(), reachable };
        }
        let known = self.known(&endpoint.name);
        let is_fresh = |known: &Listing| (reachable || !known.reachable) && now.since(known.at) < FRESH;
        if let Some(known) = known.clone().filter(is_fresh) {
            return known;
        }
        let listing = match fetch(endpoint).await {
            Some(models) => Listing { at: now, models, reachable: true },
            None => Listing { at: now, models: known.unwrap_or_default().models, reachable: false },
        };
        let mut cache = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        cache.insert(endpoint.name.clone(), listing.clone());
        listing
    }

    fn known(&self, name: &str) -> Option<Listing> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

async fn fetch(endpoint: &Endpoint) -> Option<Vec<Listed>> {
    let listing = if endpoint.kind == Kind::Ollama { Protocol::Ollama } else { Protocol::OpenAi };
    let mut request = endpoint.http.get(listing.url(&endpoint.base)?).timeout(PATIENCE);
    if let Some(key) = &endpoint.key {
        request = request.bearer_auth(key.expose());
    }
    listing.read(request).await
}

/// How a server is asked for its models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    OpenAi,
    Ollama,
}

impl Protocol {
    /// `base` is the address of the chat interface, `…/v1/`.
    pub fn url(self, base: &Url) -> Option<Url> {
        match self {
            Self::OpenAi => base.join("models").ok(),
            Self::Ollama => base.join("../api/tags").ok(),
        }
    }

    /// `None` unless the answer is what such a server would say.
    pub async fn read(self, request: reqwest::RequestBuilder) -> Option<Vec<Listed>> {
        let response = request.send().await.ok()?.error_for_status().ok()?;
        match self {
            Self::OpenAi => {
                let list: OpenAiList = response.json().await.ok()?;
                Some(list.data.into_iter().map(OpenAiModel::listed).collect())
            }
            Self::Ollama => {
                let list: OllamaList = response.json().await.ok()?;
                let listed = |tag: OllamaTag| Listed { name: tag.name, context_window: None };
                Some(list.models.into_iter().map(listed).collect())
            }
        }
    }
}

#[derive(Deserialize)]
struct OpenAiList {
    data: Vec<OpenAiModel>,
}

/// The size of the context is no part of OpenAI's list; each server that tells it has its own place for it.
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
    fn listed(self) -> Listed {
        let context_window = self.context_length.or(self.meta.and_then(|meta| meta.n_ctx));
        Listed { name: self.id, context_window }
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
