//! Embeddings of a remote provider, behind the same port as the embedded ones.

use polyclaw_domain::embedding::Embedder;
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::provider::{ModelRef, ProviderError};
use tracing::Dispatch;
use tracing::instrument::WithSubscriber;

use crate::endpoint::{ConnectionReuse, EndpointClients, ProviderEndpoint};
use crate::error::Error;
use crate::error_class::ModelCallError;
use crate::settings::{ApiKey, ProviderSettings};

/// Texts per request. Every provider accepts this many.
const REQUEST_BATCH_SIZE: usize = 64;

pub struct RemoteEmbeddings {
    endpoint: ProviderEndpoint,
    model: ModelRef,
    id: String,
    dim: usize,
}

impl RemoteEmbeddings {
    /// `dim` is the expected dimension. A vector of another length is an error.
    pub fn new(settings: ProviderSettings, model: &str, dim: usize) -> Result<Self, Error> {
        let model = ModelRef { provider: settings.name.clone(), model: model.to_owned() };
        let endpoint = ProviderEndpoint::new(settings, &mut EndpointClients::default())?;
        Ok(Self { endpoint, id: model.to_string(), model, dim })
    }

    async fn embed_texts(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ProviderError> {
        let has_words = |text: &&String| !text.trim().is_empty();
        let wanted: Vec<String> = texts.iter().filter(has_words).cloned().collect();
        let mut found = Vec::with_capacity(wanted.len());
        for batch in wanted.chunks(REQUEST_BATCH_SIZE) {
            let vectors = self.request_batch(batch.to_vec()).await;
            let key = self.endpoint.key.as_ref().map(ApiKey::expose);
            found.extend(vectors.map_err(|fault| fault.into_error(&self.model, key))?);
        }
        let mut found = found.into_iter();
        let vector =
            |text| if has_words(&text) { found.next().unwrap_or_default() } else { vec![0.0; self.dim] };
        Ok(texts.iter().map(vector).collect())
    }

    async fn request_batch(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, ModelCallError> {
        let count = texts.len();
        let client = self.endpoint.genai_client(ConnectionReuse::Pooled)?;
        let call = client.embed_batch(self.endpoint.service_target(&self.model.model), texts, None);
        let mut embeddings = call.with_subscriber(Dispatch::none()).await?.embeddings;
        embeddings.sort_by_key(genai::embed::Embedding::index);
        let vectors: Vec<Vec<f32>> =
            embeddings.into_iter().map(genai::embed::Embedding::into_vector).collect();
        if vectors.len() != count {
            return Err(ModelCallError::malformed(
                "the provider returned a different number of vectors than texts",
            ));
        }
        vectors.into_iter().map(|vector| self.to_unit_vector(vector)).collect()
    }

    /// Normalizes a vector to length one.
    fn to_unit_vector(&self, mut vector: Vec<f32>) -> Result<Vec<f32>, ModelCallError> {
        if vector.len() != self.dim {
            let message = format!("a vector has {} dimensions, expected {}", vector.len(), self.dim);
            return Err(ModelCallError::malformed(&message));
        }
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !length.is_finite() {
            return Err(ModelCallError::malformed("a vector contains a value that is not a number"));
        }
        let inverse = if length > 0.0 { 1.0 / length } else { 0.0 };
        vector.iter_mut().for_each(|value| *value *= inverse);
        Ok(vector)
    }
}

impl Embedder for RemoteEmbeddings {
    fn model_id(&self) -> &str {
        &self.id
    }

    fn dimensions(&self) -> usize {
        self.dim
    }

    fn batch_size(&self) -> usize {
        REQUEST_BATCH_SIZE
    }

    fn embed_texts<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ProviderError>> {
        Box::pin(self.embed_texts(texts))
    }
}
