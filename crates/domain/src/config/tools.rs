//! `[tools]`: what tools may do, for all agents together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::Report;
use super::secret::Secret;

/// What tools may do, for all agents together. An agent's own rules can only narrow it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tools {
    /// Lets web tools reach loopback and private addresses. Off, so that no web page can talk an agent into
    /// reading from your network.
    pub allow_private_addresses: bool,
    /// Tools that no agent has, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<String>,
    /// The service that `web_search` asks. Without it that tool is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_search: Option<WebSearch>,
}

/// A search service: `[tools.web_search]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearch {
    /// Whose protocol it speaks.
    pub kind: SearchKind,
    /// Where it is: needed for SearXNG, the service's own address for the others.
    #[schemars(url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its key, best as a reference: `env:BRAVE_API_KEY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// A SearXNG of your own; its settings must allow the format `json`.
    Searxng,
    Brave,
    Tavily,
}

impl Tools {
    pub(super) fn check(&self, report: &mut Report) {
        let Some(search) = &self.web_search else { return };
        match search.kind {
            SearchKind::Searxng if search.url.is_none() => {
                let hint = r#"add it, like url = "http://127.0.0.1:8888""#;
                report.error("tools.web_search", "url is missing, and SearXNG has no usual address", hint);
            }
            SearchKind::Brave | SearchKind::Tavily if search.api_key.is_none() => {
                let hint = r#"add it, like api_key = "env:SEARCH_API_KEY""#;
                report.error("tools.web_search", "api_key is missing, and this service asks for one", hint);
            }
            _ => {}
        }
    }
}
