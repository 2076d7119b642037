//! The API as the tools call it: in process or over the network.

use std::fmt;

use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::sanitize;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiMethod {
    Get,
    Post,
}

/// Calls paths below `/api/v1`.
pub trait InstanceApi: Send + Sync + 'static {
    fn call_instance<'a>(
        &'a self,
        verb: ApiMethod,
        path: &'a str,
        body: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Value, ApiRefusal>>;

    /// Returns a unique string, the idempotency key of messages that may be sent twice.
    fn new_nonce(&self) -> String;
}

/// Whether a failed call reached the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallDelivery {
    Yes,
    No,
    /// The connection broke before a response arrived.
    Perhaps,
}

/// Why a call failed.
#[derive(Clone, Debug)]
pub struct ApiRefusal {
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
    pub delivery: CallDelivery,
}

impl ApiRefusal {
    pub(super) fn invalid_arguments(message: impl Into<String>) -> Self {
        Self { code: "usage".to_owned(), message: message.into(), hint: None, delivery: CallDelivery::Yes }
    }
}

impl fmt::Display for ApiRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = self.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        write!(f, "{} [{}]{hint}", sanitize::limit_block(&self.message, 2_000), self.code)
    }
}

/// Percent-encodes a part of a path or query.
pub(super) fn encode_segment(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let one = |byte: u8| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}
