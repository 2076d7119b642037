//! HTTP clients for sending. They never redirect, retry or reuse a connection, so the outcome of a request is the
//! outcome of the message in it.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Url};

use crate::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Total timeout of a request. Below the engine's own timeout, so that the adapter reports what it knows.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(25);

/// One client for remote hosts and one without a proxy for this machine.
pub(crate) struct PlatformClients {
    remote: Client,
    loopback: Client,
}

impl PlatformClients {
    /// `timeout`: default total timeout of a request.
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
        // If the platform closes a reused connection during a request, the outcome is unknown although nothing arrived.
        // A fresh connection either connects, or nothing was sent.
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT_TIMEOUT)
}

fn build_client(builder: ClientBuilder) -> Result<Client, Error> {
    builder.build().map_err(|error| Error::Client(error.to_string()))
}

/// Builds a client for WebSocket upgrades: HTTP/1.1 only and without a total timeout.
pub(crate) fn websocket_client(url: &Url) -> Result<Client, Error> {
    let builder = client_builder().http1_only();
    build_client(if is_loopback(url) { builder.no_proxy() } else { builder })
}

/// Parses the base URL of a platform: absolute, `http` or `https`.
pub(crate) fn parse_base_url(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Like [`parse_base_url`], for a setting of an account.
pub(crate) fn parse_url_setting(
    text: &str,
    channel: &'static str,
    account: &str,
    setting: &'static str,
) -> Result<Url, Error> {
    parse_base_url(text).ok_or_else(|| Error::Url { channel, account: account.to_owned(), setting })
}

/// Appends path segments to a URL. Each segment is escaped, because ids may contain reserved characters.
pub(crate) fn join_path<P: AsRef<str>>(root: &Url, path: impl IntoIterator<Item = P>) -> Url {
    let mut url = root.clone();
    // Only URLs that cannot be a base have no path segments, and http URLs always can.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}
