//! The HTTP clients: built once, kept alive, shared by every call.

use std::time::Duration;

use crate::error::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Shorter than the idle timeout of the servers we know, so that a pooled connection is rarely a dead one.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// For providers on the network. HTTP/1.1, because there dropping an answer closes its connection, and that is
/// what makes a server stop generating.
pub(crate) fn remote_client() -> Result<reqwest::Client, Error> {
    build_client(base_builder())
}

/// For servers on this machine: a system proxy must not get between.
pub(crate) fn local_client() -> Result<reqwest::Client, Error> {
    build_client(base_builder().no_proxy())
}

/// The same with no connection kept: each call has a fresh one.
pub(crate) fn unpooled_client(is_local: bool) -> Result<reqwest::Client, Error> {
    let client = base_builder().pool_max_idle_per_host(0);
    build_client(if is_local { client.no_proxy() } else { client })
}

/// For finding out what is there, which must not take long.
pub(crate) fn probe_client(connect: Duration, total: Duration) -> Result<reqwest::Client, Error> {
    build_client(reqwest::Client::builder().no_proxy().no_gzip().connect_timeout(connect).timeout(total))
}

fn base_builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .http1_only()
        .tcp_nodelay(true)
        // A compressed stream arrives in blocks, not in tokens.
        .no_gzip()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .pool_max_idle_per_host(64)
}

fn build_client(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, Error> {
    builder.build().map_err(|error| Error::Client(error.to_string()))
}
