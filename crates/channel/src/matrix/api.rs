//! Requests to a homeserver.

use std::time::Duration;

use polyclaw_domain::channel::SendOutcome;
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::session::{MatrixLogin, MatrixSession, is_unknown_token};
use crate::client;
use crate::response::{self, PlatformCallError, PlatformResponse};

/// Maximum response size. Fits a sync of many rooms after a long absence.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

pub(super) struct MatrixApi {
    client: Client,
    base: Url,
    login: MatrixLogin,
}

/// One request that can be repeated after a new login.
pub(super) struct MatrixRequest<'a> {
    pub method: Method,
    pub path: &'a [&'a str],
    pub query: &'a [(&'a str, &'a str)],
    pub body: Option<&'a Value>,
    /// Overrides the default timeout.
    pub timeout: Option<Duration>,
}

/// The reason why a request failed.
pub(super) enum MatrixRequestError {
    /// Login failed, so no request was made.
    Login(String),
    Wire(reqwest::Error),
    Refused(PlatformCallError),
}

impl<'a> MatrixRequest<'a> {
    pub fn get(path: &'a [&'a str]) -> Self {
        Self { method: Method::GET, path, query: &[], body: None, timeout: None }
    }

    pub fn put(path: &'a [&'a str], body: &'a Value) -> Self {
        Self { method: Method::PUT, body: Some(body), ..Self::get(path) }
    }

    pub fn post(path: &'a [&'a str], body: &'a Value) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path) }
    }
}

impl MatrixRequestError {
    pub fn into_reason(self) -> String {
        match self {
            Self::Login(reason) => reason,
            Self::Wire(error) => response::transport_error_message(error),
            Self::Refused(PlatformCallError { status: Some(status), reason, .. }) if status == 401 => {
                format!("{reason}: correct the access_token")
            }
            Self::Refused(refusal) => refusal.reason,
        }
    }

    /// Whether the same request will fail again, because its target does not exist or is not allowed.
    pub fn is_permanent(&self) -> bool {
        let Self::Refused(PlatformCallError { status: Some(status), .. }) = self else { return false };
        matches!(status.as_u16(), 400 | 403 | 404 | 410)
    }
}

impl MatrixApi {
    pub fn new(client: Client, base: Url, login: MatrixLogin) -> Self {
        Self { client, base, login }
    }

    pub async fn session(&self) -> Result<MatrixSession, MatrixRequestError> {
        self.login.session().await.map_err(MatrixRequestError::Login)
    }

    pub async fn request_json(&self, ask: &MatrixRequest<'_>) -> Result<Value, MatrixRequestError> {
        self.call_authenticated(ask).await?.into_result().map_err(MatrixRequestError::Refused)
    }

    /// Requests a value of a known shape. An unreadable response is an error, because a missing field would be read as
    /// an absent value.
    pub async fn request_as<T: DeserializeOwned>(
        &self,
        ask: &MatrixRequest<'_>,
    ) -> Result<T, MatrixRequestError> {
        serde_json::from_value(self.request_json(ask).await?)
            .map_err(|_| MatrixRequestError::Refused(PlatformCallError::unreadable_response()))
    }

    /// Sends a message under a transaction id that the homeserver deduplicates.
    pub async fn send_message(&self, ask: &MatrixRequest<'_>) -> SendOutcome {
        match self.call_authenticated(ask).await {
            Ok(answer) => answer.send_outcome(true, |body| body.get("event_id")),
            Err(MatrixRequestError::Wire(error)) => response::send_failure(error),
            Err(trouble) => SendOutcome::Retry { reason: trouble.into_reason(), after_ms: None },
        }
    }

    /// Builds the request for a file. The own homeserver serves files of every server.
    pub async fn file_request(&self, address: &str) -> Option<RequestBuilder> {
        let (server, id) = address.strip_prefix("mxc://")?.split_once('/')?;
        let session = self.session().await.ok()?;
        let url = endpoint_url(&self.base, &["v1", "media", "download", server, id]);
        Some(self.client.get(url).bearer_auth(session.token.expose()))
    }

    /// Sends the request. If the token is no longer valid, logs in again once, provided that there is a password.
    async fn call_authenticated(
        &self,
        ask: &MatrixRequest<'_>,
    ) -> Result<PlatformResponse, MatrixRequestError> {
        let session = self.session().await?;
        let answer = self.call_as(&session, ask).await?;
        if !is_unknown_token(&answer) || !self.login.forget_token(&session.token).await {
            return Ok(answer);
        }
        self.call_as(&self.session().await?, ask).await
    }

    async fn call_as(
        &self,
        session: &MatrixSession,
        ask: &MatrixRequest<'_>,
    ) -> Result<PlatformResponse, MatrixRequestError> {
        let mut url = endpoint_url(&self.base, ask.path);
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(ask.query);
        }
        let mut request = self.client.request(ask.method.clone(), url).bearer_auth(session.token.expose());
        if let Some(body) = ask.body {
            request = request.json(body);
        }
        if let Some(timeout) = ask.timeout {
            request = request.timeout(timeout);
        }
        let response = request.send().await.map_err(MatrixRequestError::Wire)?;
        Ok(read_response(response).await)
    }
}

/// Reads a response. The error text is only the `errcode`, stripped of other characters.
pub(super) async fn read_response(response: Response) -> PlatformResponse {
    let mut answer = PlatformResponse::read(response, MAX_RESPONSE_BYTES).await;
    let code = answer.body["errcode"].as_str().unwrap_or_default();
    let code: String = code.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')).collect();
    answer.words = Some(code).filter(|code| !code.is_empty());
    answer.retry_after_ms = answer.retry_after_ms.or(answer.body["retry_after_ms"].as_u64());
    answer
}

pub(super) fn endpoint_url(base: &Url, parts: &[&str]) -> Url {
    client::join_path(base, ["_matrix", "client"].iter().chain(parts))
}
