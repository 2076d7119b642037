//! Derives the outcome of a send from the platform's response, or from its absence. In doubt the outcome is unknown: a
//! message shown twice is worse than one that an operator has to check.

use std::time::Duration;

use polyclaw_domain::channel::SendOutcome;
use reqwest::header::RETRY_AFTER;
use reqwest::{Response, StatusCode};
use serde_json::Value;

/// Maximum length of a stored platform id.
const MAX_PLATFORM_ID_LEN: usize = 256;

/// A response, completely read.
#[derive(Clone, Debug)]
pub(crate) struct PlatformResponse {
    pub status: StatusCode,
    /// Null if the body is incomplete, too long or not JSON: the status says what matters.
    pub body: Value,
    pub retry_after_ms: Option<u64>,
    /// The platform's error message, if the adapter knows where to find it.
    pub words: Option<String>,
}

impl PlatformResponse {
    /// Reads at most `max_body` bytes.
    pub async fn read(response: Response, max_body: usize) -> Self {
        let (status, retry_after_ms) = (response.status(), retry_after_ms(&response));
        let body =
            read_bounded_body(response, max_body).await.and_then(|body| serde_json::from_slice(&body).ok());
        Self { status, body: body.unwrap_or_default(), retry_after_ms, words: None }
    }

    /// Returns the outcome of a send. `id` extracts the platform's message id from the body. `is_idempotent`: the
    /// platform deduplicates repeats, so an unknown outcome may be retried.
    pub fn send_outcome(
        &self,
        is_idempotent: bool,
        id: impl FnOnce(&Value) -> Option<&Value>,
    ) -> SendOutcome {
        if self.status.is_success() {
            return SendOutcome::Accepted { platform_id: id(&self.body).and_then(platform_id) };
        }
        let (reason, after_ms) = (self.failure_reason(), self.retry_after_ms);
        match self.status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY => {
                SendOutcome::Retry { reason, after_ms }
            }
            StatusCode::SERVICE_UNAVAILABLE if after_ms.is_some() => SendOutcome::Retry { reason, after_ms },
            status if status.is_server_error() && is_idempotent => SendOutcome::Retry { reason, after_ms },
            // The platform received the request and then failed, perhaps after showing the message.
            status if status.is_server_error() => SendOutcome::Unknown { reason },
            status if status.is_redirection() => SendOutcome::Rejected {
                reason: format!("{reason}: redirects are not followed; configure the target URL"),
            },
            _ => SendOutcome::Rejected { reason },
        }
    }

    /// Returns the body of a successful response.
    pub fn into_result(self) -> Result<Value, PlatformCallError> {
        match self.status.is_success() {
            true => Ok(self.body),
            false => Err(PlatformCallError {
                status: Some(self.status),
                reason: self.failure_reason(),
                after: self.retry_after_ms.map(Duration::from_millis),
            }),
        }
    }

    fn failure_reason(&self) -> String {
        let words = self.words.as_ref().map(|words| format!(": {words:.200}")).unwrap_or_default();
        format!("the platform responded with {}{words}", self.status)
    }
}

/// Failure of a call that sends no message.
pub(crate) struct PlatformCallError {
    /// `None` if there was no response.
    pub status: Option<StatusCode>,
    pub reason: String,
    /// The retry delay that the platform requests.
    pub after: Option<Duration>,
}

impl PlatformCallError {
    pub fn from_transport_error(error: reqwest::Error) -> Self {
        Self { status: None, reason: transport_error_message(error), after: None }
    }

    /// The call succeeded, but its response could not be read.
    pub fn unreadable_response() -> Self {
        Self { status: None, reason: "cannot parse the platform's response".to_owned(), after: None }
    }

    /// Whether a retry may help.
    pub fn is_transient(&self) -> bool {
        self.status.is_none_or(|status| status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error())
    }
}

/// Returns the outcome of a send that got no response.
pub(crate) fn send_failure(error: reqwest::Error) -> SendOutcome {
    if error.is_builder() {
        return SendOutcome::Rejected { reason: "the message is not valid in a request".to_owned() };
    }
    if error.is_connect() {
        return SendOutcome::Retry { reason: transport_error_message(error), after_ms: None };
    }
    SendOutcome::Unknown { reason: transport_error_message(error) }
}

/// Describes why a request got no response, without the URL, which may contain a secret.
pub(crate) fn transport_error_message(error: reqwest::Error) -> String {
    let error = error.without_url();
    if error.is_connect() {
        return format!("cannot connect to the platform: {}", root_cause(&error));
    }
    if error.is_timeout() {
        return "no response from the platform in time".to_owned();
    }
    format!("the connection was lost before a response arrived: {}", root_cause(&error))
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// Accepts seconds only: a date would depend on the clock of this machine agreeing with the platform's.
fn retry_after_ms(response: &Response) -> Option<u64> {
    let seconds: u64 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.saturating_mul(1000))
}

/// Returns the body, or `None` if it is incomplete or longer than `max`.
pub(crate) async fn read_bounded_body(mut response: Response, max: usize) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > max {
            return None;
        }
    }
    Some(body)
}

fn platform_id(id: &Value) -> Option<String> {
    let id = match id {
        Value::String(id) => id.clone(),
        Value::Number(id) => id.to_string(),
        _ => return None,
    };
    (id.len() <= MAX_PLATFORM_ID_LEN).then_some(id)
}
