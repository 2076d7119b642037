//! The Bot API: named methods, JSON in both directions. The token is part of every URL, so no URL is ever shown.

use std::time::Duration;

use polyclaw_domain::channel::SendOutcome;
use polyclaw_domain::config::Secret;
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde_json::Value;

use crate::client;
use crate::response::{self, PlatformCallError, PlatformResponse};

/// Far above the size of a hundred updates of maximum length.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

pub(super) struct TelegramApi {
    pub root: Url,
    pub token: Secret,
    pub client: Client,
}

impl TelegramApi {
    /// Calls a method that changes nothing visible, or that does no harm when repeated.
    pub async fn call(
        &self,
        method: &str,
        body: &Value,
        timeout: Option<Duration>,
    ) -> Result<Value, PlatformCallError> {
        let mut request = self.build_request(method, body);
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        match request.send().await {
            Ok(response) => {
                let mut body = normalize_response(PlatformResponse::read(response, MAX_RESPONSE_BYTES).await)
                    .into_result()?;
                body.get_mut("result").map(Value::take).ok_or_else(PlatformCallError::unreadable_response)
            }
            Err(error) => Err(PlatformCallError::from_transport_error(error)),
        }
    }

    /// Calls a method that creates or changes a visible message. `is_idempotent`: it may be repeated if its outcome is
    /// unknown.
    pub async fn write_message(&self, method: &str, body: &Value, is_idempotent: bool) -> SendOutcome {
        match self.build_request(method, body).send().await {
            Ok(response) => {
                let answer = normalize_response(PlatformResponse::read(response, MAX_RESPONSE_BYTES).await);
                match is_unmodified(&answer) {
                    true => SendOutcome::Accepted { platform_id: None },
                    false => answer.send_outcome(is_idempotent, |body| body.pointer("/result/message_id")),
                }
            }
            Err(error) => response::send_failure(error),
        }
    }

    /// Builds the request for the content of a file.
    pub fn download_request(&self, file_path: &str) -> RequestBuilder {
        let file = ["file".to_owned(), self.bot_path()];
        self.client
            .get(client::join_path(&self.root, file.iter().map(String::as_str).chain(file_path.split('/'))))
    }

    fn build_request(&self, method: &str, body: &Value) -> RequestBuilder {
        let bot = self.bot_path();
        self.client.post(client::join_path(&self.root, [bot.as_str(), method])).json(body)
    }

    fn bot_path(&self) -> String {
        format!("bot{}", self.token.expose())
    }
}

/// Copies the retry delay and error status from the body, because Telegram does not always set them in the header and
/// status line. Self-hosted servers may omit the status.
fn normalize_response(mut answer: PlatformResponse) -> PlatformResponse {
    let body = &answer.body;
    let seconds = body.pointer("/parameters/retry_after").and_then(Value::as_u64);
    answer.retry_after_ms = seconds.map(|seconds| seconds.saturating_mul(1000)).or(answer.retry_after_ms);
    if body.get("ok") == Some(&Value::Bool(false)) && answer.status.is_success() {
        let code = body.get("error_code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let status = code.and_then(|code| StatusCode::from_u16(code).ok());
        answer.status = status.unwrap_or(StatusCode::BAD_REQUEST);
    }
    answer.words = body.get("description").and_then(Value::as_str).map(str::to_owned);
    answer
}

/// Whether an edit was rejected because the message already has that text. Counts as success.
fn is_unmodified(answer: &PlatformResponse) -> bool {
    let words = answer.words.as_deref().unwrap_or_default();
    answer.status == StatusCode::BAD_REQUEST && words.contains("message is not modified")
}
