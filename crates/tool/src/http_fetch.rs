//! The `http_fetch` tool: returns one page of the public web as text.

mod address;
mod client;
mod page;
mod target;

use std::collections::BTreeMap;
use std::time::Duration;

use polyclaw_domain::tool::{ToolOutcome, ToolRisk, ToolSpec};
use reqwest::Url;
use reqwest::header::{HeaderMap, LOCATION};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::timeout;

use crate::arguments;
use crate::error::{Error, Result};

pub use address::is_public;
pub use client::{WebClient, innermost_cause};

pub const TOOL_NAME: &str = "http_fetch";
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 5;
const MAX_BODY_BYTES: usize = 1024 * 1024;
const DEFAULT_MAX_BODY_BYTES: usize = 256 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpFetchArguments {
    /// The http or https URL.
    url: String,
    /// The HTTP method. Default: GET.
    method: Option<FetchMethod>,
    /// Request headers. Dropped when the page redirects to another site.
    headers: Option<BTreeMap<String, String>>,
    /// Maximum bytes of the body to return, up to 1048576. Default: 262144.
    max_bytes: Option<usize>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum FetchMethod {
    Get,
    Head,
}

/// The risk is high: page content is untrusted, and a URL can carry data out.
pub fn spec() -> ToolSpec {
    ToolSpec {
        risk: ToolRisk::High,
        ..arguments::build_tool_spec::<HttpFetchArguments>(
            TOOL_NAME,
            "Fetches a web page or an API response as text, following up to 5 redirects. Binary content is refused.",
        )
    }
}

pub async fn run(web: &WebClient, arguments: HttpFetchArguments) -> Result<ToolOutcome> {
    let fetched = timeout(FETCH_TIMEOUT, fetch_page(web, arguments)).await;
    fetched.unwrap_or(Err(Error::OutOfTime(FETCH_TIMEOUT.as_secs())))
}

async fn fetch_page(web: &WebClient, arguments: HttpFetchArguments) -> Result<ToolOutcome> {
    let mut url = target::parse(&arguments.url)?;
    let mut headers = target::parse_headers(&arguments.headers.unwrap_or_default())?;
    let method = match arguments.method {
        Some(FetchMethod::Head) => reqwest::Method::HEAD,
        Some(FetchMethod::Get) | None => reqwest::Method::GET,
    };
    for _ in 0..=MAX_REDIRECTS {
        let response = web.send(&method, &url, &headers).await?;
        match redirect_target(&response, &url)? {
            None => {
                let limit = arguments.max_bytes.unwrap_or(DEFAULT_MAX_BODY_BYTES).clamp(1, MAX_BODY_BYTES);
                return page::read_page(response, &url, limit).await;
            }
            Some(next) => {
                if next.origin() != url.origin() {
                    headers = HeaderMap::new();
                }
                url = next;
            }
        }
    }
    Err(Error::Fetch(format!("more than {MAX_REDIRECTS} redirects")))
}

/// Returns the redirect target, if any. It is checked like the first URL.
fn redirect_target(response: &reqwest::Response, from: &Url) -> Result<Option<Url>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let refused = || Error::Fetch("it redirects to an invalid URL".to_owned());
    let location = location.to_str().map_err(|_| refused())?;
    let next = from.join(location).map_err(|_| refused())?;
    target::check_url(&next)?;
    Ok(Some(next))
}

#[cfg(test)]
mod tests;
