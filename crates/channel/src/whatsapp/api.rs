//! The parts of Meta's Graph API that WhatsApp needs.

use polyclaw_domain::channel::SendOutcome;
use polyclaw_domain::config::Secret;
use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

use crate::client;
use crate::response::{self, PlatformResponse};

/// Maximum response size.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Domains of Meta's file hosts.
const FILE_HOSTS: [&str; 3] = [".fbsbx.com", ".whatsapp.net", ".facebook.com"];

pub(super) struct WhatsappApi {
    client: Client,
    base: Url,
    token: Secret,
}

impl WhatsappApi {
    pub fn new(client: Client, base: Url, token: Secret) -> Self {
        Self { client, base, token }
    }

    pub async fn send_message(&self, number: &str, body: &Value) -> SendOutcome {
        match self.post(&[number, "messages"], body).await {
            Ok(answer) => send_outcome(&answer),
            Err(error) => response::send_failure(error),
        }
    }

    /// Configures the number's command menu.
    pub async fn configure_number(&self, number: &str, body: &Value) -> Result<(), String> {
        let answer = self
            .post(&[number, "conversational_automation"], body)
            .await
            .map_err(response::transport_error_message)?;
        answer.into_result().map(drop).map_err(|refusal| refusal.reason)
    }

    async fn post(&self, path: &[&str], body: &Value) -> Result<PlatformResponse, reqwest::Error> {
        let request = self.client.post(self.endpoint_url(path)).bearer_auth(self.token.expose());
        Ok(PlatformResponse::read(request.json(body).send().await?, MAX_RESPONSE_BYTES).await)
    }

    /// Builds the request for a file, after looking up its URL. The token is sent only to Meta's servers and the
    /// configured API.
    pub async fn file_request(&self, id: &str) -> Option<RequestBuilder> {
        let about =
            self.client.get(self.endpoint_url(&[id])).bearer_auth(self.token.expose()).send().await.ok()?;
        let about = PlatformResponse::read(about, MAX_RESPONSE_BYTES).await;
        let url = Url::parse(about.body["url"].as_str()?).ok().filter(|url| self.is_trusted_file_url(url))?;
        Some(self.client.get(url).bearer_auth(self.token.expose()))
    }

    fn is_trusted_file_url(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let is_meta = url.scheme() == "https" && FILE_HOSTS.iter().any(|end| host.ends_with(end));
        is_meta || url.origin() == self.base.origin()
    }

    fn endpoint_url(&self, path: &[&str]) -> Url {
        client::join_path(&self.base, path)
    }
}

/// Returns the outcome of a send. Meta's error code is more specific than the status.
fn send_outcome(answer: &PlatformResponse) -> SendOutcome {
    let code = answer.body["error"]["code"].as_u64();
    let reason = |code: u64| format!("WhatsApp responded with error {code}");
    match code {
        // Rate limits: of the app, the business, the number, and for this recipient.
        Some(code @ (4 | 80_007 | 130_429 | 131_056)) => {
            SendOutcome::Retry { reason: reason(code), after_ms: answer.retry_after_ms }
        }
        Some(code @ 131_047) => {
            let why = "the person's last message is more than 24 hours old, so only templates can be sent";
            SendOutcome::Rejected { reason: format!("{}: {why}", reason(code)) }
        }
        Some(code) if answer.status.is_client_error() && answer.status != 429 => {
            SendOutcome::Rejected { reason: reason(code) }
        }
        _ => answer.send_outcome(false, |body| body.pointer("/messages/0/id")),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn api_responses_map_to_send_outcomes() {
        let sent = |status, body| {
            let status = StatusCode::from_u16(status).unwrap();
            send_outcome(&PlatformResponse { status, body, retry_after_ms: None, words: None })
        };
        let error = |code: u64| json!({ "error": { "code": code, "message": "secret words" } });
        let ok = json!({ "messages": [{ "id": "wamid.1" }] });
        assert_eq!(sent(200, ok), SendOutcome::Accepted { platform_id: Some("wamid.1".into()) });
        for code in [4, 80_007, 130_429, 131_056] {
            assert!(matches!(sent(400, error(code)), SendOutcome::Retry { .. }), "{code}");
        }
        for code in [190, 131_047, 131_026, 100] {
            assert!(matches!(sent(400, error(code)), SendOutcome::Rejected { .. }), "{code}");
        }
        assert!(matches!(sent(429, error(1)), SendOutcome::Retry { .. }));
        assert!(matches!(sent(500, error(131_000)), SendOutcome::Unknown { .. }));
        assert!(matches!(sent(503, Value::Null), SendOutcome::Unknown { .. }));
    }

    #[test]
    fn token_is_sent_only_to_meta_hosts() {
        let base = Url::parse("https://graph.facebook.com/v23.0").unwrap();
        let api = WhatsappApi::new(Client::new(), base, Secret::new("EAA"));
        for (place, own) in [
            ("https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1", true),
            ("http://lookaside.fbsbx.com/x", false),
            ("https://evilfbsbx.com/x", false),
            ("https://evil.example/.fbsbx.com", false),
        ] {
            assert_eq!(api.is_trusted_file_url(&Url::parse(place).unwrap()), own, "{place}");
        }
    }
}
