//! Who makes embeddings: the provider the config names, else the model inside Polyclaw where its weights are.

use std::sync::Arc;

use polyclaw_domain::config::Config;
use polyclaw_domain::embedding::Embedder;
use polyclaw_provider::embedded::{EMBEDDED_PROVIDER, LocalEmbeddings};
use polyclaw_provider::{ProviderSettings, RemoteEmbeddings};

use crate::choice::Choice;
use crate::failure::Failure;
use crate::weights::{EMBEDDINGS, Shelf};

/// `None`: memories are found by their words alone.
pub fn choose(config: &Config, choice: &Choice, shelf: &Shelf) -> Result<Option<Arc<dyn Embedder>>, Failure> {
    match &config.memory.embeddings {
        Some(model) if model.provider != EMBEDDED_PROVIDER => {
            let settings = choice.providers.iter().find(|provider| provider.name == model.provider);
            let settings = settings.ok_or_else(|| unknown(&model.to_string()))?;
            let dim = usize::try_from(config.memory.dimensions.unwrap_or(0)).unwrap_or(0);
            remote(settings.clone(), &model.model, dim).map(Some)
        }
        _ if shelf.has(&EMBEDDINGS) => Ok(Some(Arc::new(LocalEmbeddings::new(shelf.path(&EMBEDDINGS))))),
        _ => Ok(None),
    }
}

fn remote(settings: ProviderSettings, model: &str, dim: usize) -> Result<Arc<dyn Embedder>, Failure> {
    let made = RemoteEmbeddings::new(settings, model, dim).map_err(|error| {
        Failure::failed(error.code(), error.to_string())
            .hint("look at [memory] and [providers] in config.toml")
    })?;
    Ok(Arc::new(made))
}

fn unknown(model: &str) -> Failure {
    Failure::failed("no_embeddings", format!("no provider is configured for the embeddings {model}"))
        .hint("add its [providers.…] section, or take memory.embeddings out of config.toml")
}
