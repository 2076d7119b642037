//! HTTP clients, built once and shared by all calls.

use std::time::Duration;

use crate::error::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Shorter than the idle timeout of known servers, so that a pooled connection is rarely dead.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Client for remote providers. Uses HTTP/1.1, because there dropping a response closes its connection, which makes the
/// server stop generating.
pub(crate) fn remote_client() -> Result<reqwest::Client, Error> {
    build_client(base_builder())
}

/// Client for servers on this machine, without the system proxy.
pub(crate) fn local_client() -> Result<reqwest::Client, Error> {
    build_client(base_builder().no_proxy())
}

/// Client without a connection pool, so that each call uses a fresh connection.
pub(crate) fn unpooled_client(is_local: bool) -> Result<reqwest::Client, Error> {
    let client = base_builder().pool_max_idle_per_host(0);
    build_client(if is_local { client.no_proxy() } else { client })
}

/// Client for probing servers, with short timeouts.
pub(crate) fn probe_client(connect: Duration, total: Duration) -> Result<reqwest::Client, Error> {
    build_client(reqwest::Client::builder().no_proxy().no_gzip().connect_timeout(connect).timeout(total))
}

fn base_builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .http1_only()
        .tcp_nodelay(true)
        // A compressed stream arrives in blocks instead of tokens.
        .no_gzip()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .pool_max_idle_per_host(64)
}

fn build_client(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, Error> {
    builder.build().map_err(|error| Error::Client(error.to_string()))
}
