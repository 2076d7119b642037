//! Chooses the embedding model: the configured provider, else the built-in model if its weights are present.

use std::sync::Arc;

use polyclaw_domain::config::Config;
use polyclaw_domain::embedding::Embedder;
use polyclaw_provider::embedded::{EMBEDDED_PROVIDER, LocalEmbeddings};
use polyclaw_provider::{ProviderSettings, RemoteEmbeddings};

use crate::failure::CommandFailure;
use crate::model_selection::ModelSelection;
use crate::weights::{EMBEDDING_WEIGHTS, ModelDir};

/// Returns `None` if there is no embedding model; memories are then found by keyword only.
pub fn choose_embedder(
    config: &Config,
    choice: &ModelSelection,
    models: &ModelDir,
) -> Result<Option<Arc<dyn Embedder>>, CommandFailure> {
    match &config.memory.embeddings {
        Some(model) if model.provider != EMBEDDED_PROVIDER => {
            let settings = choice.providers.iter().find(|provider| provider.name == model.provider);
            let settings = settings.ok_or_else(|| unknown_model(&model.to_string()))?;
            let dim = usize::try_from(config.memory.dimensions.unwrap_or(0)).unwrap_or(0);
            remote_embedder(settings.clone(), &model.model, dim).map(Some)
        }
        _ if models.is_present(&EMBEDDING_WEIGHTS) => {
            Ok(Some(Arc::new(LocalEmbeddings::new(models.weights_path(&EMBEDDING_WEIGHTS)))))
        }
        _ => Ok(None),
    }
}

fn remote_embedder(
    settings: ProviderSettings,
    model: &str,
    dim: usize,
) -> Result<Arc<dyn Embedder>, CommandFailure> {
    let made = RemoteEmbeddings::new(settings, model, dim).map_err(|error| {
        CommandFailure::failed(error.code(), error.to_string())
            .hint("check [memory] and [providers] in config.toml")
    })?;
    Ok(Arc::new(made))
}

fn unknown_model(model: &str) -> CommandFailure {
    CommandFailure::failed("no_embeddings", format!("no provider is configured for the embeddings {model}"))
        .hint("add its [providers.…] section, or remove memory.embeddings from config.toml")
}
