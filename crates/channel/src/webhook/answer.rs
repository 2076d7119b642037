//! What the platform's answer, or the lack of one, says about the message. In doubt it is unknown: a message
//! shown twice is worse than one an operator has to look at.

use polyclaw_domain::channel::Sent;
use reqwest::header::RETRY_AFTER;
use reqwest::{Response, StatusCode};
use serde_json::Value;

/// Longest answer worth reading for the platform's id.
const MAX_BODY: usize = 64 * 1024;
/// Longest id worth keeping.
const MAX_ID: usize = 256;

pub(super) async fn read(response: Response, is_idempotent: bool) -> Sent {
    let status = response.status();
    if status.is_success() {
        return Sent::Accepted { platform_id: platform_id(response).await };
    }
    let reason = format!("the platform answered {status}");
    let after_ms = retry_after_ms(&response);
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY => {
            Sent::Retry { reason, after_ms }
        }
        StatusCode::SERVICE_UNAVAILABLE if after_ms.is_some() => Sent::Retry { reason, after_ms },
        _ if status.is_server_error() && is_idempotent => Sent::Retry { reason, after_ms },
        // It was received and then something failed, perhaps after the message was shown.
        _ if status.is_server_error() => Sent::Unknown { reason },
        _ if status.is_redirection() => Sent::Rejected {
            reason: format!("{reason}: redirects are not followed, set reply_url to where it leads"),
        },
        _ => Sent::Rejected { reason },
    }
}

pub(super) fn failure(error: reqwest::Error) -> Sent {
    // The address may hold a secret.
    let error = error.without_url();
    if error.is_builder() {
        return Sent::Rejected { reason: "the message cannot be put into a request".to_owned() };
    }
    if error.is_connect() {
        let reason = format!("the platform cannot be reached: {}", root(&error));
        return Sent::Retry { reason, after_ms: None };
    }
    if error.is_timeout() {
        return Sent::Unknown { reason: "no answer from the platform in time".to_owned() };
    }
    Sent::Unknown { reason: format!("the connection broke before an answer came: {}", root(&error)) }
}

fn root(error: &reqwest::Error) -> String {
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

/// The status said yes; a body that is broken, endless or not JSON takes nothing from that.
async fn platform_id(mut response: Response) -> Option<String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BODY {
            return None;
        }
    }
    let answer: Value = serde_json::from_slice(&body).ok()?;
    let id = match answer.get("id")? {
        Value::String(id) => id.clone(),
        Value::Number(id) => id.to_string(),
        _ => return None,
    };
    (id.len() <= MAX_ID).then_some(id)
}
