//! Parses the body of an error. Each provider has its own format for the same few cases.

use polyclaw_domain::provider::ErrorClass;
use serde_json::Value;

/// Enough for one sentence, and not for a prompt that is sent back.
const MAX_MESSAGE_CHARS: usize = 200;

#[derive(Debug, Default)]
pub(super) struct ProviderErrorDetail {
    message: String,
    /// Type, code and status in lower case, separated by spaces.
    labels: String,
    retry_after_ms: Option<u64>,
}

impl ProviderErrorDetail {
    pub fn from_body(body: &str) -> Self {
        serde_json::from_str(body).map(|body: Value| Self::from_json(&body)).unwrap_or_default()
    }

    pub fn from_json(body: &Value) -> Self {
        // Gemini wraps its errors in a list, most others in `error`.
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let message = error.as_str().map(str::to_owned).unwrap_or_else(|| text(&error["message"]));
        let labels = ["type", "code", "status"].map(|key| text(&error[key])).join(" ").to_lowercase();
        Self { message, labels, retry_after_ms: retry_delay(error) }
    }

    pub fn message(&self) -> Option<String> {
        (!self.message.trim().is_empty()).then(|| to_short_line(&self.message))
    }

    pub fn retry_after(&self) -> Option<u64> {
        self.retry_after_ms
    }

    pub fn is_out_of_credit(&self) -> bool {
        self.mentions_any(
            &["insufficient_quota", "billing", "insufficient_balance", "insufficient_credits"],
            &["credit balance", "insufficient balance", "insufficient credits", "more credits"],
        )
    }

    pub fn is_context_too_long(&self) -> bool {
        self.mentions_any(
            &["context_length", "exceed_context", "context_window"],
            &[
                "context length",
                "context window",
                "context size",
                "prompt is too long",
                "input is too long",
                "input token count",
                "reduce the length",
                "too many tokens",
            ],
        )
    }

    pub fn is_bad_key(&self) -> bool {
        self.mentions_any(&["invalid_api_key", "authentication"], &["api key not valid", "invalid api key"])
    }

    /// Returns the class that the labels name, for errors without a status.
    pub fn error_class(&self) -> Option<ErrorClass> {
        let named = |labels: &[&str]| self.mentions_any(labels, &[]);
        if named(&["rate_limit", "429", "resource_exhausted"]) {
            Some(ErrorClass::RateLimit)
        } else if named(&[
            "overloaded",
            "server_error",
            "api_error",
            "unavailable",
            "500",
            "502",
            "503",
            "529",
        ]) {
            Some(ErrorClass::Overload)
        } else if named(&["authentication", "permission", "invalid_api_key", "401", "403"]) {
            Some(ErrorClass::Auth)
        } else if named(&["timeout", "408", "504"]) {
            Some(ErrorClass::Timeout)
        } else if named(&["not_found", "404"]) {
            Some(ErrorClass::NotConfigured)
        } else if named(&["invalid_request", "invalid_argument", "400", "422"]) {
            Some(ErrorClass::BadRequest)
        } else {
            None
        }
    }

    fn mentions_any(&self, labels: &[&str], words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        labels.iter().any(|label| self.labels.contains(label))
            || words.iter().any(|word| message.contains(word))
    }
}

/// Gemini puts its Retry-After into the body: `{"retryDelay": "37s"}`.
fn retry_delay(error: &Value) -> Option<u64> {
    let details = error["details"].as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1000.0) as u64)
}

/// Joins a text into one line of bounded length.
pub(super) fn to_short_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
