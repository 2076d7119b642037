//! Parses webhook requests of platforms and builds responses. A rejected request gets no details.

use polyclaw_domain::channel::{IngestOutcome, WebhookRequest, WebhookResponse};

pub(crate) fn find_header<'a>(call: &'a WebhookRequest, name: &str) -> Option<&'a str> {
    call.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
}

/// Parses a query string or a form body.
pub(crate) fn parse_form(form: &str) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://form/?{form}"));
    url.map(|url| url.query_pairs().into_owned().collect()).unwrap_or_default()
}

pub(crate) fn text_response(status: u16, body: &str) -> WebhookResponse {
    WebhookResponse { status, media_type: "text/plain", body: body.to_owned() }
}

/// Acknowledges an accepted delivery. Any other outcome asks the platform to deliver again.
pub(crate) fn ingest_response(taken: &IngestOutcome) -> WebhookResponse {
    match taken {
        IngestOutcome::Done => text_response(200, ""),
        IngestOutcome::Retry { reason } => {
            tracing::warn!(reason, "could not accept an inbound message; the platform must redeliver it");
            text_response(503, "")
        }
    }
}
