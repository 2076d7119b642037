//! Plan approval: a member that was added with it may only read and write messages to its team until the lead has
//! approved its plan.

use serde::Serialize;

/// State of a plan that is not approved yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum PlanApproval {
    /// The member has not sent a plan, or its last one was rejected.
    Required,
    /// The lead has not answered yet.
    Submitted { request_id: String },
}

impl PlanApproval {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Submitted { .. } => "submitted",
        }
    }

    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Required => None,
            Self::Submitted { request_id } => Some(request_id),
        }
    }

    /// Parses the stored status and the id of the open request.
    pub fn parse(status: &str, request_id: Option<String>) -> Option<Self> {
        match (status, request_id) {
            ("required", _) => Some(Self::Required),
            ("submitted", Some(request_id)) => Some(Self::Submitted { request_id }),
            _ => None,
        }
    }

    /// Returns the instruction for the member in every turn.
    pub fn member_instruction(&self) -> &'static str {
        match self {
            Self::Required => {
                "Plan approval is required. Until then, you have read-only tools. Prepare a plan and submit it with \
                 SendMessage, type plan_approval_request, with the plan as its content; then end your turn. You get \
                 the other tools when the lead approves the plan."
            }
            Self::Submitted { .. } => {
                "Your plan waits for the lead's approval. Until then, you have read-only tools. End your turn: you \
                 will receive the answer as a message."
            }
        }
    }

    /// Returns [`Self::label`] for a stored status.
    pub fn label_of(status: &str) -> Option<&'static str> {
        Self::parse(status, Some(String::new())).map(|plan| plan.label())
    }

    /// Returns a short label for a list of members.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Required => "plan required",
            Self::Submitted { .. } => "plan waits for approval",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_plan_approval_parses_back() {
        for plan in [PlanApproval::Required, PlanApproval::Submitted { request_id: "r".into() }] {
            let read = PlanApproval::parse(plan.as_str(), plan.request_id().map(str::to_owned));
            assert_eq!(read, Some(plan));
        }
        assert_eq!(PlanApproval::parse("submitted", None), None);
        assert_eq!(PlanApproval::parse("approved", None), None);
    }
}
