//! Errors of model calls. The class decides what happens next; the message is for people.

mod detail;

use std::error::Error as _;

use genai::Error;
use polyclaw_domain::provider::{ErrorClass, ModelRef, ProviderError};
use polyclaw_domain::redact::MIN_SECRET_BYTES;
use reqwest::header::HeaderMap;
use serde_json::Value;

use self::detail::ProviderErrorDetail;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelCallError {
    pub class: ErrorClass,
    pub message: String,
    pub retry_after_ms: Option<u64>,
    /// The request is too large in bytes. Images may be the reason.
    pub is_too_large: bool,
    /// The connection broke before the answer started. A pooled one may have been dead; a retry on a fresh one tells.
    pub is_stale_connection: bool,
}

impl ModelCallError {
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            retry_after_ms: None,
            is_too_large: false,
            is_stale_connection: false,
        }
    }

    pub fn malformed(message: &str) -> Self {
        Self::new(ErrorClass::Malformed, message)
    }

    pub fn cut_off() -> Self {
        Self::malformed("the response ended before it was complete")
    }

    /// The model sent nothing for too long, before or during its answer.
    pub fn silence_timeout(has_started: bool) -> Self {
        let message = if has_started {
            "the model stopped sending in the middle of its response"
        } else {
            "the model sent no first token in time"
        };
        Self::new(ErrorClass::Timeout, message)
    }

    /// Whether the provider rejects this request. A different one may succeed.
    pub fn is_about_request(&self) -> bool {
        self.is_too_large || matches!(self.class, ErrorClass::BadRequest | ErrorClass::NotConfigured)
    }

    /// Builds the port's error. Messages quote the provider only about rejected requests; even there it may repeat the
    /// key, so the key is redacted.
    pub fn into_error(self, model: &ModelRef, key: Option<&str>) -> ProviderError {
        let message = match key {
            Some(key) if !key.is_empty() => redact_key(&self.message, key),
            _ => self.message,
        };
        ProviderError {
            class: self.class,
            model: model.to_string(),
            message,
            retry_after_ms: self.retry_after_ms,
        }
    }
}

/// Redacts the key. A short one, which may be part of ordinary words, is redacted only if it stands alone.
fn redact_key(message: &str, key: &str) -> String {
    const REDACTED_KEY: &str = "[key]";
    if key.len() >= MIN_SECRET_BYTES {
        return message.replace(key, REDACTED_KEY);
    }
    let (mut clean, mut rest) = (String::new(), message);
    while let Some(at) = rest.find(key) {
        let (before, after) = (&rest[..at], &rest[at + key.len()..]);
        let touches = |edge: Option<char>| edge.is_some_and(char::is_alphanumeric);
        let last = before.chars().next_back().or_else(|| clean.chars().next_back());
        let is_within = touches(last) || touches(after.chars().next());
        clean.push_str(before);
        clean.push_str(if is_within { key } else { REDACTED_KEY });
        rest = after;
    }
    clean + rest
}

impl From<Error> for ModelCallError {
    fn from(error: Error) -> Self {
        match error {
            Error::WebStream { error, .. } => from_transport(error.as_ref()),
            Error::HttpError { status, body, headers, .. } => from_status(status.as_u16(), &body, &headers),
            Error::WebModelCall { webc_error, .. } => from_call(webc_error),
            Error::ChatResponse { body, .. } => from_event(&body),
            Error::StreamParse { .. }
            | Error::InvalidJsonResponseElement { .. }
            | Error::NoChatResponse { .. }
            | Error::JsonValueExt(_)
            | Error::SerdeJson(_)
            | Error::ChatResponseGeneration { .. } => Self::malformed("cannot parse the response"),
            Error::RequiresApiKey { .. } | Error::NoAuthData { .. } | Error::NoAuthResolver { .. } => {
                Self::new(ErrorClass::Auth, "no API key")
            }
            // The remaining errors are requests that the library refuses to send. Its texts may contain the request.
            _ => {
                Self::new(ErrorClass::BadRequest, "the request cannot be expressed in this provider's format")
            }
        }
    }
}

impl From<reqwest::Error> for ModelCallError {
    fn from(error: reqwest::Error) -> Self {
        from_transport(&error)
    }
}

/// Converts the error of a call without streaming.
fn from_call(error: genai::webc::Error) -> ModelCallError {
    match error {
        genai::webc::Error::ResponseFailedStatus { status, body, headers } => {
            from_status(status.as_u16(), &body, &headers)
        }
        genai::webc::Error::Reqwest(error) => from_transport(&error),
        _ => ModelCallError::malformed("cannot parse the response"),
    }
}

fn from_transport(error: &(dyn std::error::Error + Send + Sync + 'static)) -> ModelCallError {
    if let Some(Error::HttpError { status, body, headers, .. }) = error.downcast_ref::<Error>() {
        return from_status(status.as_u16(), body, headers);
    }
    if is_out_of_descriptors(error) {
        return ModelCallError::new(ErrorClass::OutOfDescriptors, "this machine has no free file descriptor");
    }
    match error.downcast_ref::<reqwest::Error>() {
        Some(error) if error.is_connect() => {
            ModelCallError::new(ErrorClass::Unreachable, cannot_connect(error))
        }
        Some(error) if error.is_timeout() => ModelCallError::new(ErrorClass::Timeout, "no response in time"),
        Some(error) if error.is_builder() => ModelCallError::new(
            ErrorClass::BadRequest,
            "the base URL or the API key is not valid in a request",
        ),
        Some(error) => ModelCallError {
            is_stale_connection: error.is_request(),
            ..ModelCallError::new(ErrorClass::Unreachable, "the connection was lost")
        },
        None => ModelCallError::malformed("the response is not text"),
    }
}

/// Whether the operating system has no file descriptor left, for the process or the machine.
fn is_out_of_descriptors(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let code = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
        if matches!(code, Some(EMFILE | ENFILE)) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn cannot_connect(error: &reqwest::Error) -> String {
    let place = error.url().and_then(|url| {
        let port = url.port_or_known_default()?;
        Some(format!("{}:{port}", url.host_str()?))
    });
    let place = place.unwrap_or_else(|| "the server".to_owned());
    // The innermost cause comes from the operating system: refused, not found, certificate.
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(|cause| cause.source()) {
        cause = Some(inner);
    }
    match cause {
        Some(cause) => format!("cannot connect to {place}: {}", detail::to_short_line(&cause.to_string())),
        None => format!("cannot connect to {place}"),
    }
}

pub(crate) fn from_status(status: u16, body: &str, headers: &HeaderMap) -> ModelCallError {
    let detail = ProviderErrorDetail::from_body(body);
    let class = match status {
        402 => ErrorClass::Quota,
        _ if detail.is_out_of_credit() => ErrorClass::Quota,
        401 | 403 => ErrorClass::Auth,
        429 => ErrorClass::RateLimit,
        404 => ErrorClass::NotConfigured,
        408 | 504 | 524 => ErrorClass::Timeout,
        413 => ErrorClass::ContextTooLong,
        // Local servers report a prompt that is too long as a server error.
        400 | 422 | 500 if detail.is_context_too_long() => ErrorClass::ContextTooLong,
        400 if detail.is_bad_key() => ErrorClass::Auth,
        500.. => ErrorClass::Overload,
        400.. => ErrorClass::BadRequest,
        _ => ErrorClass::Malformed,
    };
    let message = describe_failure(class, &detail, &format!("HTTP {status}"));
    let retry_after_ms = retry_after(headers).or_else(|| detail.retry_after());
    ModelCallError { retry_after_ms, is_too_large: status == 413, ..ModelCallError::new(class, message) }
}

/// Converts an error event in a stream that had started.
pub(crate) fn from_event(body: &Value) -> ModelCallError {
    let detail = ProviderErrorDetail::from_json(body);
    let class = if detail.is_out_of_credit() {
        ErrorClass::Quota
    } else if detail.is_context_too_long() {
        ErrorClass::ContextTooLong
    } else {
        detail.error_class().unwrap_or(ErrorClass::Overload)
    };
    let message = describe_failure(class, &detail, "while streaming");
    ModelCallError { retry_after_ms: detail.retry_after(), ..ModelCallError::new(class, message) }
}

fn describe_failure(class: ErrorClass, detail: &ProviderErrorDetail, place: &str) -> String {
    let words = match class {
        ErrorClass::Auth => "the provider rejected the API key",
        ErrorClass::Quota => "the provider account has no credit or quota left",
        ErrorClass::RateLimit => "rate limit reached",
        ErrorClass::Overload => "the provider is overloaded or failing",
        ErrorClass::Timeout => "the provider timed out waiting for the model",
        ErrorClass::ContextTooLong => "the conversation is too long for this model",
        ErrorClass::NotConfigured => "the provider does not know this model or URL",
        ErrorClass::BadRequest => "the provider rejected the request",
        ErrorClass::Unreachable | ErrorClass::Malformed => "cannot parse the response",
        ErrorClass::Empty => "the response is empty",
        ErrorClass::OutOfDescriptors => "this machine has no free file descriptor",
    };
    match (class, detail.message()) {
        (ErrorClass::BadRequest | ErrorClass::NotConfigured, Some(text)) => {
            format!("{words} ({place}): {text}")
        }
        _ => format!("{words} ({place})"),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let header = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let ms = header("retry-after-ms").or_else(|| header("retry-after").map(|seconds| seconds * 1000.0))?;
    (ms.is_finite() && ms >= 0.0).then_some(ms as u64)
}

#[cfg(test)]
mod tests;
