//! Plans of team members that may only read until the plan is approved.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct PlanView {
    /// `required`: no plan was submitted, or the last one was rejected. `submitted`: a plan waits for approval.
    /// `none`: the member needs no approval.
    pub status: String,
    /// The id of the pending plan.
    pub request_id: Option<String>,
    /// The text of the pending plan.
    pub content: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerPlan {
    /// Whether the plan is approved.
    pub approve: bool,
    /// A comment to the member. Required for a rejection, to say what to change.
    #[serde(default)]
    pub content: String,
    /// The plan that is meant. Defaults to the pending one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}
