//! The HTTP clients: built once, kept alive, shared by every call.

use std::time::Duration;

use crate::error::Error;

const CONNECT: Duration = Duration::from_secs(5);

/// Shorter than the idle timeout of the servers we know, so that a pooled connection is rarely a dead one.
const IDLE: Duration = Duration::from_secs(30);

/// For providers on the network. HTTP/1.1, because there dropping an answer closes its connection, and that is
/// what makes a server stop generating.
pub(crate) fn remote() -> Result<reqwest::Client, Error> {
    build(base())
}

/// For servers on this machine: a system proxy must not get between.
pub(crate) fn local() -> Result<reqwest::Client, Error> {
    build(base().no_proxy())
}

/// The same with no connection kept: each call has a fresh one.
pub(crate) fn fresh(is_local: bool) -> Result<reqwest::Client, Error> {
    let client = base().pool_max_idle_per_host(0);
    build(if is_local { client.no_proxy() } else { client })
}

/// For finding out what is there, which must not take long.
pub(crate) fn probe(connect: Duration, total: Duration) -> Result<reqwest::Client, Error> {
    build(reqwest::Client::builder().no_proxy().no_gzip().connect_timeout(connect).timeout(total))
}

fn base() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .http1_only()
        .tcp_nodelay(true)
        // A compressed stream arrives in blocks, not in tokens.
        .no_gzip()
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(64)
}

fn build(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, Error> {
    builder.build().map_err(|error| Error::Client(error.to_string()))
}
