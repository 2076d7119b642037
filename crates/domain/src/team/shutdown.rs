//! Team shutdown: every member is asked, and missing answers are decided at a deadline.

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// A member's answer to a shutdown request, or the one assumed at the deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum ShutdownAnswer {
    Approved,
    Refused {
        reason: String,
    },
    /// No answer, but idle: nothing is lost.
    Idle,
    /// The request was cancelled.
    Stopped,
}

impl ShutdownAnswer {
    pub fn allows_shutdown(&self) -> bool {
        !matches!(self, Self::Refused { .. })
    }
}

/// The request to one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownRequest {
    pub id: String,
    pub member: String,
    pub deadline: Millis,
    pub answer: Option<ShutdownAnswer>,
}

/// Returns the answer assumed at a request's deadline. `None` if there is time left or an answer.
pub fn answer_at_deadline(
    request: &ShutdownRequest,
    is_working: bool,
    now: Millis,
) -> Option<ShutdownAnswer> {
    if request.answer.is_some() || now < request.deadline {
        return None;
    }
    Some(match is_working {
        true => ShutdownAnswer::Refused { reason: "no answer in time; still running".to_owned() },
        false => ShutdownAnswer::Idle,
    })
}

/// State of a shutdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShutdownVerdict {
    Waiting,
    /// Nobody objects.
    Ends,
    /// The first objection keeps the team.
    Rejected {
        member: String,
        reason: String,
    },
}

pub fn shutdown_verdict(requests: &[ShutdownRequest]) -> ShutdownVerdict {
    for request in requests {
        if let Some(ShutdownAnswer::Refused { reason }) = &request.answer {
            return ShutdownVerdict::Rejected { member: request.member.clone(), reason: reason.clone() };
        }
    }
    match requests.iter().all(|request| request.answer.is_some()) {
        true => ShutdownVerdict::Ends,
        false => ShutdownVerdict::Waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(answer: Option<ShutdownAnswer>) -> ShutdownRequest {
        ShutdownRequest { id: "r".into(), member: "ann".into(), deadline: Millis(60), answer }
    }

    #[test]
    fn silence_at_deadline_approves_if_idle_and_refuses_if_working() {
        assert_eq!(answer_at_deadline(&request(None), true, Millis(59)), None);
        assert_eq!(answer_at_deadline(&request(None), false, Millis(60)), Some(ShutdownAnswer::Idle));
        assert!(!answer_at_deadline(&request(None), true, Millis(60)).unwrap().allows_shutdown());
        assert_eq!(answer_at_deadline(&request(Some(ShutdownAnswer::Approved)), true, Millis(99)), None);
    }

    #[test]
    fn shutdown_verdict_needs_all_approvals() {
        let no = || Some(ShutdownAnswer::Refused { reason: "busy".into() });
        assert_eq!(shutdown_verdict(&[]), ShutdownVerdict::Ends);
        assert_eq!(
            shutdown_verdict(&[request(Some(ShutdownAnswer::Approved)), request(None)]),
            ShutdownVerdict::Waiting
        );
        assert_eq!(
            shutdown_verdict(&[request(Some(ShutdownAnswer::Approved)), request(Some(ShutdownAnswer::Idle))]),
            ShutdownVerdict::Ends
        );
        let kept = ShutdownVerdict::Rejected { member: "ann".into(), reason: "busy".into() };
        assert_eq!(shutdown_verdict(&[request(None), request(no())]), kept);
    }
}
