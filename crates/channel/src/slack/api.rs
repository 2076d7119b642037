//! Slack's Web API. It reports most errors with status 200.

use polyclaw_domain::channel::SendOutcome;
use polyclaw_domain::config::Secret;
use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

use crate::client;
use crate::response::{self, PlatformResponse};

/// Maximum response size.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;
/// Slack's file host.
const FILE_HOST: &str = "files.slack.com";

pub(super) struct SlackApi {
    client: Client,
    base: Url,
}

impl SlackApi {
    pub fn new(client: Client, base: Url) -> Self {
        Self { client, base }
    }

    /// Calls a method that changes nothing people see.
    pub async fn query(&self, method: &str, token: &Secret, body: &Value) -> Result<Value, String> {
        let answer = self.call(method, token, body).await.map_err(response::transport_error_message)?;
        let body = answer.into_result().map_err(|refusal| refusal.reason)?;
        match body["ok"] == true {
            true => Ok(body),
            false => Err(format!("Slack rejected {method}: {}", error_code(&body))),
        }
    }

    /// Posts or edits a message.
    pub async fn send_message(&self, method: &str, token: &Secret, body: &Value) -> SendOutcome {
        match self.call(method, token, body).await {
            Ok(answer) => send_outcome(&answer),
            Err(error) => response::send_failure(error),
        }
    }

    /// Builds the request for a file if it is on Slack's file host or the configured API.
    pub fn file_request(&self, place: &str, token: &Secret) -> Option<RequestBuilder> {
        let url = Url::parse(place).ok()?;
        let is_slack = url.scheme() == "https" && url.host_str() == Some(FILE_HOST);
        let is_here = url.origin() == self.base.origin();
        (is_slack || is_here).then(|| self.client.get(url).bearer_auth(token.expose()))
    }

    async fn call(
        &self,
        method: &str,
        token: &Secret,
        body: &Value,
    ) -> Result<PlatformResponse, reqwest::Error> {
        let request =
            self.client.post(client::join_path(&self.base, [method])).bearer_auth(token.expose()).json(body);
        Ok(PlatformResponse::read(request.send().await?, MAX_RESPONSE_BYTES).await)
    }
}

/// Returns the outcome of a send. After `fatal_error` and similar errors the message may have been shown, as Slack
/// documents.
fn send_outcome(answer: &PlatformResponse) -> SendOutcome {
    let is_shown = answer.body["ok"].is_boolean();
    if !answer.status.is_success() && !is_shown {
        return answer.send_outcome(false, |_| None);
    }
    if answer.body["ok"] == true {
        let field = |name: &str| answer.body[name].as_str();
        let id = field("channel").zip(field("ts")).map(|(channel, ts)| format!("{channel}:{ts}"));
        return SendOutcome::Accepted { platform_id: id };
    }
    let error = error_code(&answer.body);
    let reason = format!("Slack responded with the error {error}");
    match error.as_str() {
        _ if answer.status == 429 => SendOutcome::Retry { reason, after_ms: answer.retry_after_ms },
        "ratelimited" | "rate_limited" | "team_added_to_org" => {
            SendOutcome::Retry { reason, after_ms: answer.retry_after_ms }
        }
        "fatal_error" | "internal_error" | "request_timeout" | "service_unavailable" | "nothing" => {
            SendOutcome::Unknown { reason }
        }
        _ if answer.status.is_server_error() => SendOutcome::Unknown { reason },
        _ => SendOutcome::Rejected { reason },
    }
}

/// Adds the name of the setting to a token error, which Slack leaves out.
pub(super) fn with_setting_hint(reason: String, setting: &str) -> String {
    const TOKEN_ERRORS: [&str; 7] = [
        "invalid_auth",
        "not_authed",
        "account_inactive",
        "token_revoked",
        "token_expired",
        "not_allowed_token_type",
        "missing_scope",
    ];
    match TOKEN_ERRORS.iter().any(|word| reason.ends_with(word)) {
        true => format!("{reason}: correct the {setting}"),
        false => reason,
    }
}

/// Returns Slack's error code, stripped of other characters.
fn error_code(body: &Value) -> String {
    let error = body["error"].as_str().unwrap_or("nothing");
    error.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect()
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn api_responses_map_to_send_outcomes() {
        let sent = |status, body, retry_after_ms| {
            let status = StatusCode::from_u16(status).unwrap();
            send_outcome(&PlatformResponse { status, body, retry_after_ms, words: None })
        };
        let no = |error: &str| json!({ "ok": false, "error": error });
        let ok = json!({ "ok": true, "channel": "C1", "ts": "1.2" });
        assert_eq!(sent(200, ok, None), SendOutcome::Accepted { platform_id: Some("C1:1.2".into()) });
        for error in ["channel_not_found", "not_in_channel", "msg_too_long", "invalid_auth"] {
            assert!(matches!(sent(200, no(error), None), SendOutcome::Rejected { .. }), "{error}");
        }
        for error in ["fatal_error", "internal_error", "service_unavailable"] {
            assert!(matches!(sent(200, no(error), None), SendOutcome::Unknown { .. }), "{error}");
        }
        assert!(matches!(sent(200, Value::Null, None), SendOutcome::Unknown { .. }));
        assert!(matches!(sent(500, Value::Null, None), SendOutcome::Unknown { .. }));
        assert!(matches!(sent(500, no("scripted"), None), SendOutcome::Unknown { .. }));
        for body in [no("ratelimited"), no("other"), Value::Null] {
            let retry = sent(429, body, Some(7000));
            assert!(matches!(retry, SendOutcome::Retry { after_ms: Some(7000), .. }), "{retry:?}");
        }
    }

    #[test]
    fn token_is_sent_only_to_slack_hosts() {
        let api = SlackApi::new(Client::new(), Url::parse("https://slack.com/api").unwrap());
        let token = Secret::new("xoxb-1");
        for (place, taken) in [
            ("https://files.slack.com/files-pri/T1-F1/download/notes.txt", true),
            ("http://files.slack.com/notes.txt", false),
            ("https://files.slack.com.evil.example/notes.txt", false),
            ("https://evil.example/notes.txt", false),
            ("https://slack.com/api/x", true),
            ("not an address", false),
        ] {
            assert_eq!(api.file_request(place, &token).is_some(), taken, "{place}");
        }
    }
}
