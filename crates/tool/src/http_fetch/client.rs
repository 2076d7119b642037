//! HTTP client that resolves each name once and connects only to checked addresses, so no second lookup can return
//! something else.

use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, Url};

use crate::error::{Error, Result};

/// Whether an address may be connected to.
pub type AddressRule = fn(IpAddr) -> bool;

pub struct WebClient {
    rule: AddressRule,
    /// Created on first use, because loading the certificates takes time.
    client: OnceLock<std::result::Result<Client, String>>,
}

impl WebClient {
    pub fn new(rule: AddressRule) -> Self {
        Self { rule, client: OnceLock::new() }
    }

    pub async fn send(&self, method: &Method, url: &Url, headers: &HeaderMap) -> Result<Response> {
        self.send_body(method, url, headers, Vec::new()).await
    }

    pub async fn send_body(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response> {
        self.check_literal(url)?;
        let client =
            self.client.get_or_init(|| build_client(self.rule).map_err(|error| innermost_cause(&error)));
        let client = client.as_ref().map_err(|error| Error::Fetch(error.clone()))?;
        let mut request = client.request(method.clone(), url.clone()).headers(headers.clone());
        if !body.is_empty() {
            request = request.body(body);
        }
        request
            .send()
            .await
            .map_err(|error| address_refusal(&error).unwrap_or_else(|| Error::Fetch(innermost_cause(&error))))
    }

    /// Checks a literal IP address, which never reaches the resolver. The URL parser has already normalized other
    /// notations (octal, hexadecimal, single number).
    fn check_literal(&self, url: &Url) -> Result<()> {
        let host = url.host_str().unwrap_or_default();
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) if !(self.rule)(address) => Err(Error::Address(host.to_owned())),
            _ => Ok(()),
        }
    }
}

fn build_client(rule: AddressRule) -> reqwest::Result<Client> {
    Client::builder()
        .user_agent(concat!("polyclaw/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(CheckedResolver(rule))
        .redirect(Policy::none())
        .no_proxy()
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .connect_timeout(Duration::from_secs(10))
        .pool_max_idle_per_host(1)
        .pool_idle_timeout(Duration::from_secs(30))
        .build()
}

struct CheckedResolver(AddressRule);

#[derive(Debug, thiserror::Error)]
#[error("'{0}' has no public address")]
struct NotPublic(String);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = self.0;
        Box::pin(async move {
            let all: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let is_known = !all.is_empty();
            let allowed: Vec<SocketAddr> = all.into_iter().filter(|address| rule(address.ip())).collect();
            if is_known && allowed.is_empty() {
                return Err(NotPublic(name.as_str().to_owned()).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Extracts the resolver's refusal from the client's error.
fn address_refusal(error: &reqwest::Error) -> Option<Error> {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(NotPublic(name)) = inner.downcast_ref() {
            return Some(Error::Address(name.clone()));
        }
        source = inner.source();
    }
    None
}

/// Returns the innermost cause, which says what happened.
pub fn innermost_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
