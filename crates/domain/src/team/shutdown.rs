//! Ending a team: every member is asked, and silence has a meaning.

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// What a member said to the question whether it can stop, or what its silence meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    Approved,
    Refused {
        reason: String,
    },
    /// Silent, and idle: it has nothing to lose.
    Idle,
    /// Nobody waits for its answer any more.
    Stopped,
}

impl Answer {
    pub fn lets_end(&self) -> bool {
        !matches!(self, Self::Refused { .. })
    }
}

/// One member that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub id: String,
    pub member: String,
    pub deadline: Millis,
    pub answer: Option<Answer>,
}

/// What silence means at a request's deadline. `None`: there is time left, or an answer.
pub fn at_deadline(request: &Request, is_working: bool, now: Millis) -> Option<Answer> {
    if request.answer.is_some() || now < request.deadline {
        return None;
    }
    Some(match is_working {
        true => Answer::Refused { reason: "no answer in time, and still at work".to_owned() },
        false => Answer::Idle,
    })
}

/// Where a shutdown stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Waiting,
    /// Nobody objects.
    Ends,
    /// The first that objects keeps the team.
    Kept {
        member: String,
        reason: String,
    },
}

pub fn verdict(requests: &[Request]) -> Verdict {
    for request in requests {
        if let Some(Answer::Refused { reason }) = &request.answer {
            return Verdict::Kept { member: request.member.clone(), reason: reason.clone() };
        }
    }
    match requests.iter().all(|request| request.answer.is_some()) {
        true => Verdict::Ends,
        false => Verdict::Waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(answer: Option<Answer>) -> Request {
        Request { id: "r".into(), member: "ann".into(), deadline: Millis(60), answer }
    }

    #[test]
    fn silence_is_consent_of_the_idle_and_refusal_of_those_at_work() {
        assert_eq!(at_deadline(&request(None), true, Millis(59)), None);
        assert_eq!(at_deadline(&request(None), false, Millis(60)), Some(Answer::Idle));
        assert!(!at_deadline(&request(None), true, Millis(60)).unwrap().lets_end());
        assert_eq!(at_deadline(&request(Some(Answer::Approved)), true, Millis(99)), None);
    }

    #[test]
    fn a_team_ends_when_nobody_objects() {
        let no = || Some(Answer::Refused { reason: "busy".into() });
        assert_eq!(verdict(&[]), Verdict::Ends);
        assert_eq!(verdict(&[request(Some(Answer::Approved)), request(None)]), Verdict::Waiting);
        assert_eq!(verdict(&[request(Some(Answer::Approved)), request(Some(Answer::Idle))]), Verdict::Ends);
        let kept = Verdict::Kept { member: "ann".into(), reason: "busy".into() };
        assert_eq!(verdict(&[request(None), request(no())]), kept);
    }
}
