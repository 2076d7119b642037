//! Discord's REST API.

use std::time::Duration;

use polyclaw_domain::backoff::Backoff;
use polyclaw_domain::channel::SendOutcome;
use polyclaw_domain::config::Secret;
use reqwest::header::{AUTHORIZATION, USER_AGENT};
use reqwest::{Client, Method, RequestBuilder, Url};
use serde_json::Value;

use crate::client;
use crate::response::{self, PlatformCallError, PlatformResponse};

/// Fits a hundred messages of maximum length with their metadata.
const MAX_RESPONSE_BYTES: usize = 8 << 20;
/// Maximum attempts of a read.
const MAX_READ_ATTEMPTS: usize = 3;
/// Discord rejects clients that do not identify themselves.
const DISCORD_USER_AGENT: &str = concat!("DiscordBot (polyclaw, ", env!("CARGO_PKG_VERSION"), ")");

pub(super) struct DiscordApi {
    pub root: Url,
    pub token: Secret,
    pub client: Client,
}

impl DiscordApi {
    pub fn token(&self) -> &str {
        self.token.expose()
    }

    /// Builds the request for a public file. The token is not sent.
    pub fn download_request(&self, url: Url) -> RequestBuilder {
        self.client.get(url)
    }

    /// Whether a URL belongs to Discord's file hosts or the configured API. Other URLs in messages are never fetched.
    pub fn is_trusted_file_url(&self, url: &Url) -> bool {
        const FILE_HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];
        let host = url.host_str().unwrap_or_default();
        (url.scheme() == "https" && FILE_HOSTS.contains(&host))
            || (url.origin() == self.root.origin() && url.scheme() == self.root.scheme())
    }

    pub async fn call(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&Value>,
    ) -> Result<Value, PlatformCallError> {
        let mut request = self.build_request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        send_request(request).await
    }

    /// Reads a resource and retries transient failures.
    pub async fn get(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        mut backoff: Backoff,
    ) -> Result<Value, PlatformCallError> {
        let mut url = self.endpoint_url(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut left = MAX_READ_ATTEMPTS;
        loop {
            left -= 1;
            let found = send_request(self.build_request_to(Method::GET, url.clone())).await;
            match found.and_then(|body| {
                if body.is_null() { Err(PlatformCallError::unreadable_response()) } else { Ok(body) }
            }) {
                Err(refusal) if left > 0 && refusal.is_transient() => {
                    let pause = backoff.next_delay();
                    tokio::time::sleep(refusal.after.map_or(pause, |after| after.max(pause))).await;
                }
                decided => return decided,
            }
        }
    }

    /// Creates or changes a visible message. `is_idempotent`: the request may be repeated at any time if its outcome is
    /// unknown.
    pub async fn write_message(
        &self,
        method: Method,
        path: &[&str],
        body: &Value,
        is_idempotent: bool,
    ) -> SendOutcome {
        match self.build_request(method, path).json(body).send().await {
            Ok(response) => {
                let answer = normalize_response(PlatformResponse::read(response, MAX_RESPONSE_BYTES).await);
                answer.send_outcome(is_idempotent, |body| body.get("id"))
            }
            Err(error) => response::send_failure(error),
        }
    }

    fn build_request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.build_request_to(method, self.endpoint_url(path))
    }

    fn build_request_to(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.client.request(method, url).header(USER_AGENT, DISCORD_USER_AGENT);
        request.header(AUTHORIZATION, format!("Bot {}", self.token.expose()))
    }

    fn endpoint_url(&self, path: &[&str]) -> Url {
        client::join_path(&self.root, path)
    }
}

async fn send_request(request: RequestBuilder) -> Result<Value, PlatformCallError> {
    match request.send().await {
        Ok(response) => {
            normalize_response(PlatformResponse::read(response, MAX_RESPONSE_BYTES).await).into_result()
        }
        Err(error) => Err(PlatformCallError::from_transport_error(error)),
    }
}

/// Prefers the retry delay in the body, which is finer than the one in the header, and extracts the error message.
fn normalize_response(mut answer: PlatformResponse) -> PlatformResponse {
    let seconds = answer.body.get("retry_after").and_then(Value::as_f64);
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let millis = seconds.map(|pause| u64::try_from(pause.as_micros().div_ceil(1000)).unwrap_or(u64::MAX));
    answer.retry_after_ms = millis.or(answer.retry_after_ms);
    answer.words = answer.body.get("message").and_then(Value::as_str).map(str::to_owned);
    answer
}
