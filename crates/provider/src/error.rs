//! Errors in the settings. Errors of calls are `polyclaw_domain::provider::ProviderError`.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("provider '{provider}': base_url '{url}' is not an http or https URL")]
    BaseUrl { provider: String, url: String },
    #[error("provider '{provider}': kind openai_compatible requires a base_url")]
    NoBaseUrl { provider: String },
    #[error("provider '{0}' is defined twice")]
    Duplicate(String),
    #[error("unknown provider kind '{0}'")]
    Kind(String),
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Self::BaseUrl { .. } => "provider_base_url",
            Self::NoBaseUrl { .. } => "provider_no_base_url",
            Self::Duplicate(_) => "provider_duplicate",
            Self::Kind(_) => "provider_kind",
            Self::Client(_) => "provider_client",
        }
    }
}
