//! Ending a team: every member is asked, and silence has a meaning.

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// What a member said to the question whether it can stop, or what its silence meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum ShutdownAnswer {
    Approved,
    Refused {
        reason: String,
    },
    /// Silent, and idle: it has nothing to lose.
    Idle,
    /// Nobody waits for its answer any more.
    Stopped,
}

impl ShutdownAnswer {
    pub fn allows_shutdown(&self) -> bool {
        !matches!(self, Self::Refused { .. })
    }
}

/// One member that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownRequest {
    pub id: String,
    pub member: String,
    pub deadline: Millis,
    pub answer: Option<ShutdownAnswer>,
}

/// What silence means at a request's deadline. `None`: there is time left, or an answer.
pub fn answer_at_deadline(
    request: &ShutdownRequest,
    is_working: bool,
    now: Millis,
) -> Option<ShutdownAnswer> {
    if request.answer.is_some() || now < request.deadline {
        return None;
    }
    Some(match is_working {
        true => ShutdownAnswer::Refused { reason: "no answer in time, and still at work".to_owned() },
        false => ShutdownAnswer::Idle,
    })
}

/// Where a shutdown stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShutdownVerdict {
    Waiting,
    /// Nobody objects.
    Ends,
    /// The first that objects keeps the team.
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
    fn silence_is_consent_of_the_idle_and_refusal_of_those_at_work() {
        assert_eq!(answer_at_deadline(&request(None), true, Millis(59)), None);
        assert_eq!(answer_at_deadline(&request(None), false, Millis(60)), Some(ShutdownAnswer::Idle));
        assert!(!answer_at_deadline(&request(None), true, Millis(60)).unwrap().allows_shutdown());
        assert_eq!(answer_at_deadline(&request(Some(ShutdownAnswer::Approved)), true, Millis(99)), None);
    }

    #[test]
    fn a_team_ends_when_nobody_objects() {
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
