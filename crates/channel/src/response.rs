//! What the platform's answer, or the lack of one, says about the message. In doubt it is unknown: a message
//! shown twice is worse than one an operator has to look at.

use std::time::Duration;

use polyclaw_domain::channel::SendOutcome;
use reqwest::header::RETRY_AFTER;
use reqwest::{Response, StatusCode};
use serde_json::Value;

/// Longest id worth keeping.
const MAX_PLATFORM_ID_LEN: usize = 256;

/// One answer, read to its end.
#[derive(Clone, Debug)]
pub(crate) struct PlatformResponse {
    pub status: StatusCode,
    /// Null when it is broken, too long or not JSON: the status says what matters.
    pub body: Value,
    pub retry_after_ms: Option<u64>,
    /// What the platform said in words, where its adapter knows where to find them.
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

    /// What became of the message. `id` finds the platform's id in the body; `is_idempotent` says that the platform
    /// recognises a repeat, so that it may be sent again where it is not known to have failed.
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
            // It was received and then something failed, perhaps after the message was shown.
            status if status.is_server_error() => SendOutcome::Unknown { reason },
            status if status.is_redirection() => SendOutcome::Rejected {
                reason: format!("{reason}: redirects are not followed, configure the address it leads to"),
            },
            _ => SendOutcome::Rejected { reason },
        }
    }

    /// The body, if the platform said yes.
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
        format!("the platform answered {}{words}", self.status)
    }
}

/// Why a call that is no message came to nothing.
pub(crate) struct PlatformCallError {
    /// None where no answer came.
    pub status: Option<StatusCode>,
    pub reason: String,
    /// The pause that the platform asks for.
    pub after: Option<Duration>,
}

impl PlatformCallError {
    pub fn from_transport_error(error: reqwest::Error) -> Self {
        Self { status: None, reason: transport_error_message(error), after: None }
    }

    /// It was granted, but what came with that did not arrive whole.
    pub fn unreadable_response() -> Self {
        Self { status: None, reason: "the platform's answer is not understood".to_owned(), after: None }
    }

    /// Trying again may help.
    pub fn is_transient(&self) -> bool {
        self.status.is_none_or(|status| status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error())
    }
}

/// What is known about a message whose request had no answer.
pub(crate) fn send_failure(error: reqwest::Error) -> SendOutcome {
    if error.is_builder() {
        return SendOutcome::Rejected { reason: "the message cannot be put into a request".to_owned() };
    }
    if error.is_connect() {
        return SendOutcome::Retry { reason: transport_error_message(error), after_ms: None };
    }
    SendOutcome::Unknown { reason: transport_error_message(error) }
}

/// Why a request had no answer, without the address: it may hold a secret.
pub(crate) fn transport_error_message(error: reqwest::Error) -> String {
    let error = error.without_url();
    if error.is_connect() {
        return format!("the platform cannot be reached: {}", root_cause(&error));
    }
    if error.is_timeout() {
        return "no answer from the platform in time".to_owned();
    }
    format!("the connection broke before an answer came: {}", root_cause(&error))
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// Seconds only: a date would be read by this machine's clock, which need not be the platform's.
fn retry_after_ms(response: &Response) -> Option<u64> {
    let seconds: u64 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.saturating_mul(1000))
}

/// The body, unless it breaks off or is longer than that.
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
