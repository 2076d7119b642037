//! One configured provider, ready to be called.

use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use genai::resolver::AuthData;
use genai::{Client, ModelIden, ServiceTarget};
use polyclaw_domain::provider::ErrorClass;
use reqwest::Url;

use crate::error::Error;
use crate::error_class::ModelCallError;
use crate::settings::{ApiKey, ProviderSettings, ProviderVendor};
use crate::{http, wire};

pub(crate) struct ProviderEndpoint {
    pub name: String,
    pub kind: ProviderVendor,
    pub models: Vec<String>,
    pub first_token_timeout: Duration,
    /// Whether its models accept images.
    pub images: bool,
    pub http: reqwest::Client,
    client: Client,
    /// Clients without a connection pool, created when a pooled connection turned out to be dead.
    fresh: OnceLock<(reqwest::Client, Client)>,
    pub base: Url,
    pub key: Option<ApiKey>,
    /// Equal for entries that share rate limits: same URL and key.
    pub credential: usize,
    pub chat_url: Url,
    target: genai::resolver::Endpoint,
    auth: AuthData,
    has_own_url: bool,
}

/// HTTP clients, created when a provider first needs them, because loading the certificate store takes time.
#[derive(Default)]
pub(crate) struct EndpointClients {
    remote: Option<(reqwest::Client, Client)>,
    local: Option<(reqwest::Client, Client)>,
}

impl EndpointClients {
    fn for_url(&mut self, url: &Url) -> Result<(reqwest::Client, Client), Error> {
        let is_local = is_loopback(url);
        let slot = if is_local { &mut self.local } else { &mut self.remote };
        if let Some(clients) = slot {
            return Ok(clients.clone());
        }
        let http = if is_local { http::local_client() } else { http::remote_client() }?;
        Ok(slot.insert(with_library(http)?).clone())
    }
}

fn with_library(http: reqwest::Client) -> Result<(reqwest::Client, Client), Error> {
    let client = Client::builder().with_reqwest(http.clone()).build();
    Ok((http, client.map_err(|error| Error::Client(error.to_string()))?))
}

/// Which connection a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionReuse {
    Pooled,
    /// A new connection for the call, because the server may have closed a pooled one.
    Fresh,
}

impl ProviderEndpoint {
    pub fn new(settings: ProviderSettings, clients: &mut EndpointClients) -> Result<Self, Error> {
        let base = base_url(&settings)?;
        let (http, client) = clients.for_url(&base)?;
        Ok(Self {
            target: genai::resolver::Endpoint::from_owned(base.as_str()),
            chat_url: chat_url(&base),
            auth: auth_data(&settings),
            has_own_url: settings.base_url.is_none(),
            name: settings.name,
            kind: settings.kind,
            models: settings.models,
            first_token_timeout: settings.first_token_timeout,
            images: settings.images,
            key: settings.api_key,
            credential: 0,
            client,
            fresh: OnceLock::new(),
            http,
            base,
        })
    }

    pub fn http_client(&self, connection: ConnectionReuse) -> Result<&reqwest::Client, ModelCallError> {
        Ok(match connection {
            ConnectionReuse::Pooled => &self.http,
            ConnectionReuse::Fresh => &self.fresh_clients()?.0,
        })
    }

    /// Returns the client of the genai library.
    pub fn genai_client(&self, connection: ConnectionReuse) -> Result<&Client, ModelCallError> {
        Ok(match connection {
            ConnectionReuse::Pooled => &self.client,
            ConnectionReuse::Fresh => &self.fresh_clients()?.1,
        })
    }

    fn fresh_clients(&self) -> Result<&(reqwest::Client, Client), ModelCallError> {
        if let Some(clients) = self.fresh.get() {
            return Ok(clients);
        }
        let made = http::unpooled_client(is_loopback(&self.base)).and_then(with_library);
        let made = made.map_err(|error| ModelCallError::new(ErrorClass::Unreachable, error.to_string()))?;
        Ok(self.fresh.get_or_init(|| made))
    }

    pub fn service_target(&self, model: &str) -> ServiceTarget {
        let model = ModelIden::new(wire::adapter_kind(self.kind), wire::model_name(model));
        ServiceTarget { endpoint: self.target.clone(), auth: self.auth.clone(), model }
    }

    /// Whether a required key is missing. A provider's own URL requires one; for other URLs the server decides.
    pub fn lacks_key(&self) -> bool {
        self.key.is_none() && self.has_own_url && !self.kind.key_is_optional()
    }

    pub fn shares_limits_with(&self, other: &Self) -> bool {
        self.base == other.base && self.key == other.key
    }

    /// Whether the server can list its own models.
    pub fn lists_models(&self) -> bool {
        self.kind.key_is_optional() || is_loopback(&self.base)
    }
}

/// The library cannot send a call without a key. Servers that need none ignore an empty one.
fn auth_data(settings: &ProviderSettings) -> AuthData {
    AuthData::Key(settings.api_key.as_ref().map_or_else(String::new, |key| key.expose().to_owned()))
}

/// Keeps the query of the base URL, because some providers have a version there.
fn chat_url(base: &Url) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}chat/completions", base.path()));
    url
}

/// Normalizes a base URL: with a final slash and with a version if it has no path.
fn base_url(settings: &ProviderSettings) -> Result<Url, Error> {
    let given = settings.base_url.as_deref().or_else(|| settings.kind.official_url());
    let given = given.ok_or_else(|| Error::NoBaseUrl { provider: settings.name.clone() })?;
    let bad = || Error::BaseUrl { provider: settings.name.clone(), url: given.to_owned() };
    let mut url = Url::parse(given.trim()).map_err(|_| bad())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad());
    }
    let path = match url.path().trim_end_matches('/') {
        "" if settings.kind == ProviderVendor::Gemini => "/v1beta/".to_owned(),
        "" => "/v1/".to_owned(),
        path => format!("{path}/"),
    };
    url.set_path(&path);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(kind: ProviderVendor, url: &str) -> String {
        base_url(&ProviderSettings::new("p", kind).base_url(url)).unwrap().to_string()
    }

    #[test]
    fn missing_base_url_path_is_completed() {
        assert_eq!(
            base(ProviderVendor::OpenAiCompatible, "http://localhost:8080"),
            "http://localhost:8080/v1/"
        );
        assert_eq!(base(ProviderVendor::OpenAiCompatible, "http://h/api/v3"), "http://h/api/v3/");
        assert_eq!(base(ProviderVendor::Anthropic, "https://proxy/v1/"), "https://proxy/v1/");
        assert_eq!(base(ProviderVendor::Gemini, "https://proxy"), "https://proxy/v1beta/");
    }

    #[test]
    fn invalid_base_url_is_refused() {
        for url in ["", "localhost:8080", "ftp://h/", "http://"] {
            let settings = ProviderSettings::new("p", ProviderVendor::OpenAi).base_url(url);
            assert_eq!(base_url(&settings).unwrap_err().code(), "provider_base_url", "{url}");
        }
        let settings = ProviderSettings::new("p", ProviderVendor::OpenAiCompatible);
        assert_eq!(base_url(&settings).unwrap_err().code(), "provider_no_base_url");
    }

    #[test]
    fn only_local_urls_are_loopback() {
        for url in ["http://localhost/", "http://127.0.0.1:1/", "http://[::1]:1/"] {
            assert!(is_loopback(&Url::parse(url).unwrap()), "{url}");
        }
        assert!(!is_loopback(&Url::parse("http://localhost.example/").unwrap()));
    }
}
