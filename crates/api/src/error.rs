//! Errors in one format: `{"error":{"code","message","hint"?}}`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every error response.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorBodyDetail,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ErrorBodyDetail {
    /// A stable code that programs may depend on.
    pub code: String,
    /// What went wrong, for people.
    pub message: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Additional data for programs, if there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub details: Option<serde_json::Value>,
}
