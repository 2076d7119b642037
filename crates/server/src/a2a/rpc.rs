//! JSON-RPC 2.0 as A2A uses it: one call, one response.

use polyclaw_domain::redact::{Redactor, quote_safely};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::Error;
use crate::serde_errors;

/// Why a call failed, with the protocol's error number.
#[derive(Debug)]
pub struct RpcError {
    number: i32,
    message: String,
    /// Our error code, as in docs/errors.md.
    code: String,
}

impl RpcError {
    fn new(number: i32, code: &str, message: impl Into<String>) -> Self {
        Self { number, message: message.into(), code: code.to_owned() }
    }

    pub fn unknown_method(method: &str) -> Self {
        let method = quote_safely(method);
        Self::new(-32601, "unknown_method", format!("unknown method '{method}'"))
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, "invalid_body", message)
    }

    pub fn unknown_task(id: &str) -> Self {
        Self::new(-32001, "unknown_turn", format!("there is no task '{}'", quote_safely(id)))
    }

    pub fn not_cancelable() -> Self {
        Self::new(-32002, "task_finished", "the task has ended and cannot be cancelled")
    }

    /// The error for a message to a task that has ended.
    pub fn task_ended() -> Self {
        Self::new(-32004, "task_finished", "the task has ended; omit taskId to continue in its context")
    }

    pub fn unsupported_content(kind: &str) -> Self {
        Self::new(-32005, "attachment_not_supported", format!("parts of kind '{kind}' are not supported"))
    }
}

impl From<Error> for RpcError {
    fn from(error: Error) -> Self {
        error.log_internal();
        let number = match &error {
            Error::MalformedJson(_) | Error::InvalidUtf8 => -32700,
            Error::InvalidBody(_) => -32600,
            Error::AttachmentNotTaken(_) => -32005,
            error if error.status().is_client_error() => -32602,
            _ => -32603,
        };
        Self::new(number, error.code(), error.detail().message)
    }
}

impl From<polyclaw_engine::Error> for RpcError {
    fn from(error: polyclaw_engine::Error) -> Self {
        Error::from(error).into()
    }
}

pub struct RpcCall {
    /// The id as the caller sent it: a string, a number or null.
    pub id: Value,
    pub method: String,
    params: Value,
}

impl RpcCall {
    pub fn from_json(mut value: Value) -> Result<Self, RpcError> {
        let unfit = |message: &str| RpcError::new(-32600, "invalid_body", message);
        if value["jsonrpc"] != "2.0" {
            return Err(unfit("jsonrpc must be \"2.0\""));
        }
        let method = value["method"].as_str().ok_or_else(|| unfit("method is missing"))?.to_owned();
        let id = value["id"].take();
        if !(id.is_string() || id.is_number() || id.is_null()) {
            return Err(unfit("id must be a string or a number"));
        }
        Ok(Self { id, method, params: value["params"].take() })
    }

    pub fn parse_params<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        T::deserialize(&self.params)
            .map_err(|error| RpcError::invalid_params(serde_errors::plain_message(&error.to_string())))
    }
}

pub fn result_response(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Builds an error response. It may quote the request, so secrets are redacted.
pub fn error_response(id: &Value, fault: &RpcError, redactor: &Redactor) -> Value {
    let error = json!({ "code": fault.number, "message": fault.message, "data": { "code": fault.code } });
    let mut body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    redactor.redact_json(&mut body);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_error_hides_details_and_redacts_secrets() {
        let store = polyclaw_store::Error::Other("/home/me/sessions.db: disk I/O error".into());
        let redactor = Redactor::new(["hunter2-hunter2".to_owned()]);
        let text = error_response(&json!(1), &Error::from(store).into(), &redactor).to_string();
        assert!(text.contains("-32603") && !text.contains("sessions.db"), "{text}");
        let quoted = RpcError::invalid_params("'hunter2-hunter2' is no number");
        assert!(!error_response(&json!(1), &quoted, &redactor).to_string().contains("hunter2"));
    }
}
