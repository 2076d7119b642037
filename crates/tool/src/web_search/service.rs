//! Requests to each search service and parsing of its responses.

use polyclaw_domain::config::{SearchKind, Secret, WebSearch};
use reqwest::{Client, RequestBuilder, Url};
use serde_json::{Value, json};

use super::SearchHit;
use crate::error::{Error, Result};

pub fn build_request(
    client: &Client,
    settings: &WebSearch,
    query: &str,
    count: usize,
) -> Result<RequestBuilder> {
    let base = settings.url.as_deref().unwrap_or(default_url(settings.kind)).trim_end_matches('/');
    let key = settings.api_key.as_ref().map(Secret::expose).unwrap_or_default();
    let address = |path: &str, words: &[(&str, &str)]| {
        let mut url = Url::parse(&format!("{base}{path}"))
            .map_err(|_| Error::Search("invalid url in the config".to_owned()))?;
        if !words.is_empty() {
            url.query_pairs_mut().extend_pairs(words);
        }
        Ok(url)
    };
    Ok(match settings.kind {
        SearchKind::Searxng => {
            let request = client.get(address("/search", &[("q", query), ("format", "json")])?);
            if key.is_empty() { request } else { request.bearer_auth(key) }
        }
        SearchKind::Brave => client
            .get(address("/res/v1/web/search", &[("q", query), ("count", &count.to_string())])?)
            .header("Accept", "application/json")
            .header("X-Subscription-Token", key),
        SearchKind::Tavily => client
            .post(address("/search", &[])?)
            .bearer_auth(key)
            .json(&json!({ "query": query, "max_results": count })),
    })
}

fn default_url(kind: SearchKind) -> &'static str {
    match kind {
        // The config requires a URL for this service.
        SearchKind::Searxng => "",
        SearchKind::Brave => "https://api.search.brave.com",
        SearchKind::Tavily => "https://api.tavily.com",
    }
}

/// Parses the results. Omits those without a web URL, so that a result cannot refer to a local file.
pub fn parse_hits(kind: SearchKind, answer: &Value) -> Vec<SearchHit> {
    let (list, text) = match kind {
        SearchKind::Searxng | SearchKind::Tavily => (&answer["results"], "content"),
        SearchKind::Brave => (&answer["web"]["results"], "description"),
    };
    let word = |hit: &Value, key: &str| hit[key].as_str().unwrap_or_default().to_owned();
    let hits = list.as_array().into_iter().flatten().map(|hit| SearchHit {
        title: word(hit, "title"),
        url: word(hit, "url"),
        text: word(hit, text),
    });
    hits.filter(|hit| hit.url.starts_with("https://") || hit.url.starts_with("http://")).collect()
}
