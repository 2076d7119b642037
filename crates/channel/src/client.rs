//! HTTP clients for sending: whatever one says about a request is true of the message in it.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Url};

use crate::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request may take in all. Below the engine's own limit, so that the adapter is the one to say what is
/// known.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(25);

/// One client for what is elsewhere and one for this machine, which no proxy stands before.
pub(crate) struct PlatformClients {
    remote: Client,
    loopback: Client,
}

impl PlatformClients {
    /// `patience`: how long a request may take in all, if it does not say otherwise.
    pub fn new(timeout: Duration) -> Result<Self, Error> {
        let remote = || client_builder().timeout(timeout);
        Ok(Self { remote: build_client(remote())?, loopback: build_client(remote().no_proxy())? })
    }

    pub fn client_for(&self, url: &Url) -> Client {
        if is_loopback(url) { &self.loopback } else { &self.remote }.clone()
    }
}

fn client_builder() -> ClientBuilder {
    Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        // A kept connection that the platform closes under a request leaves a message unknown that never
        // arrived. A fresh one either connects, or nothing was sent.
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT_TIMEOUT)
}

fn build_client(builder: ClientBuilder) -> Result<Client, Error> {
    builder.build().map_err(|error| Error::Client(error.to_string()))
}

/// A client whose connections become WebSockets: those start as HTTP/1.1 and have no end in time.
pub(crate) fn websocket_client(url: &Url) -> Result<Client, Error> {
    let builder = client_builder().http1_only();
    build_client(if is_loopback(url) { builder.no_proxy() } else { builder })
}

/// The address of a platform: whole, and reached by HTTP.
pub(crate) fn parse_base_url(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// The same for a setting of an account.
pub(crate) fn parse_url_setting(
    text: &str,
    channel: &'static str,
    account: &str,
    setting: &'static str,
) -> Result<Url, Error> {
    parse_base_url(text).ok_or_else(|| Error::Url { channel, account: account.to_owned(), setting })
}

/// What lies below an address. Every part is escaped: ids may hold what has a meaning in addresses.
pub(crate) fn join_path<P: AsRef<str>>(root: &Url, path: impl IntoIterator<Item = P>) -> Url {
    let mut url = root.clone();
    // An http address always has a path; there is no other kind here.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}
