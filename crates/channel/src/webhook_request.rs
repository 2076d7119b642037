//! Reading what a platform asks of this instance, and answering it. Who is refused learns nothing else.

use polyclaw_domain::channel::{IngestOutcome, WebhookRequest, WebhookResponse};

pub(crate) fn find_header<'a>(call: &'a WebhookRequest, name: &str) -> Option<&'a str> {
    call.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
}

/// The parts of a query, or of a form that was posted.
pub(crate) fn parse_form(form: &str) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://form/?{form}"));
    url.map(|url| url.query_pairs().into_owned().collect()).unwrap_or_default()
}

pub(crate) fn text_response(status: u16, body: &str) -> WebhookResponse {
    WebhookResponse { status, media_type: "text/plain", body: body.to_owned() }
}

/// The platform may forget what was taken. Everything else it has to deliver again.
pub(crate) fn ingest_response(taken: &IngestOutcome) -> WebhookResponse {
    match taken {
        IngestOutcome::Done => text_response(200, ""),
        IngestOutcome::Retry { reason } => {
            tracing::warn!(reason, "a letter is not taken now: the platform has to deliver it again");
            text_response(503, "")
        }
    }
}
