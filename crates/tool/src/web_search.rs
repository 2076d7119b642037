//! The `web_search` tool: queries the configured search service. Without one the tool is unavailable.

mod service;

use std::sync::OnceLock;
use std::time::Duration;

use polyclaw_domain::config::WebSearch;
use polyclaw_domain::sanitize;
use polyclaw_domain::tool::{ToolOutcome, ToolRisk, ToolSpec};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments;
use crate::error::{Error, Result};
use crate::http_fetch::innermost_cause;

pub const TOOL_NAME: &str = "web_search";
const SEARCH_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;
const MAX_QUERY_LEN: usize = 400;
const MAX_RESULTS: usize = 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearchArguments {
    /// What to search for, in a few words.
    query: String,
    /// Maximum number of results, up to 20. Default: 5.
    count: Option<usize>,
}

/// The risk is high: queries go to an external service, and results are untrusted.
pub fn spec() -> ToolSpec {
    ToolSpec {
        risk: ToolRisk::High,
        ..arguments::build_tool_spec::<WebSearchArguments>(
            TOOL_NAME,
            "Searches the web. Returns titles, URLs and short extracts; use http_fetch to read a page.",
        )
    }
}

/// The configured search service.
pub struct SearchService {
    settings: WebSearch,
    /// Created on first use, because loading the certificates takes time.
    client: OnceLock<std::result::Result<Client, String>>,
}

/// A search result as returned by the service.
#[derive(Debug, PartialEq, Eq)]
struct SearchHit {
    title: String,
    url: String,
    text: String,
}

impl SearchService {
    pub fn new(settings: WebSearch) -> Self {
        Self { settings, client: OnceLock::new() }
    }

    pub async fn run(&self, arguments: WebSearchArguments) -> Result<ToolOutcome> {
        let query = sanitize::to_single_line(&arguments.query, MAX_QUERY_LEN);
        if query.is_empty() {
            return Err(Error::Arguments("the query is empty".to_owned()));
        }
        let count = arguments.count.unwrap_or(5).clamp(1, MAX_RESULTS);
        let found = tokio::time::timeout(SEARCH_TIMEOUT, self.query_service(&query, count)).await;
        let found = found.unwrap_or(Err(Error::OutOfTime(SEARCH_TIMEOUT.as_secs())))?;
        Ok(ToolOutcome::ok(render_hits(&query, &found[..found.len().min(count)])))
    }

    async fn query_service(&self, query: &str, count: usize) -> Result<Vec<SearchHit>> {
        let client = self.client.get_or_init(|| build_client().map_err(|error| innermost_cause(&error)));
        let client = client.as_ref().map_err(|error| Error::Search(error.clone()))?;
        let request = service::build_request(client, &self.settings, query, count)?;
        // The error may contain the URL, which may contain a key.
        let response =
            request.send().await.map_err(|error| Error::Search(innermost_cause(&error.without_url())))?;
        check_status(&response)?;
        let body = read_body(response).await?;
        let value: Value = serde_json::from_slice(&body)
            .map_err(|_| Error::Search("the search service did not respond with JSON".to_owned()))?;
        Ok(service::parse_hits(self.settings.kind, &value))
    }
}

fn build_client() -> reqwest::Result<Client> {
    Client::builder()
        .user_agent(concat!("polyclaw/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .pool_max_idle_per_host(1)
        .build()
}

fn check_status(response: &Response) -> Result<()> {
    let what = match response.status().as_u16() {
        200..300 => return Ok(()),
        401 | 403 => {
            "the search service rejected the API key or the JSON format (SearXNG: search.formats)".to_owned()
        }
        402 | 429 => "the rate limit or quota of the search service is reached; try again later".to_owned(),
        status => format!("the search service responded with status {status}"),
    };
    Err(Error::Search(what))
}

async fn read_body(mut response: Response) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let broken = |error: reqwest::Error| Error::Search(innermost_cause(&error.without_url()));
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        if bytes.len() + piece.len() > MAX_ANSWER_BYTES {
            return Err(Error::Search(format!("the response exceeds {MAX_ANSWER_BYTES} bytes")));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn render_hits(query: &str, hits: &[SearchHit]) -> String {
    if hits.is_empty() {
        return format!("No results for \"{query}\".");
    }
    let line = |(n, hit): (usize, &SearchHit)| {
        let text = sanitize::to_single_line(&hit.text, 500);
        let below = if text.is_empty() { String::new() } else { format!("\n   {text}") };
        format!(
            "{}. {}\n   {}{below}",
            n + 1,
            sanitize::to_single_line(&hit.title, 200),
            sanitize::to_single_line(&hit.url, 1_000)
        )
    };
    hits.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}
