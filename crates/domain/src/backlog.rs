//! Steer-backlog: what happens to a message that arrives, and what a turn takes up when it starts.

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, TurnId};

/// Waiting items of people one session may hold, and as many of all other senders; the next of them is told it is full.
pub const MAX_WAITING_ITEMS: usize = 50;

/// Announces that one turn takes up as messages of their own. Older ones are merged into one message when it starts.
pub const MAX_ANNOUNCES: usize = 50;

/// What is already going on in the session a message arrives at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionLoad {
    pub running: Option<TurnId>,
    pub queued: Option<TurnId>,
    /// Inputs and interrupted tasks not yet taken up.
    pub waiting: usize,
}

impl SessionLoad {
    /// Nothing runs and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.running.is_none() && self.queued.is_none() && self.waiting == 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BacklogAdmission {
    /// Nothing is going on: a turn of its own, ready at once.
    Run,
    /// A turn is waiting to start: the message becomes part of it.
    Join(TurnId),
    /// A turn runs: a turn of its own, held until that one ends or is steered.
    Hold,
    Full,
}

pub fn admit_message(load: &SessionLoad) -> BacklogAdmission {
    match (&load.running, &load.queued) {
        _ if load.waiting >= MAX_WAITING_ITEMS => BacklogAdmission::Full,
        (_, Some(queued)) => BacklogAdmission::Join(queued.clone()),
        (Some(_), None) => BacklogAdmission::Hold,
        (None, None) => BacklogAdmission::Run,
    }
}

/// A task a newer message interrupted: enough to go on from its stored tool results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeToken {
    /// The message that began the task.
    pub message_id: MessageId,
    /// The turn that was interrupted.
    pub turn_id: TurnId,
    /// How often the task has been steered away from.
    pub steer_count: u32,
}

/// An interrupted task, with what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BacklogTask {
    pub token: ResumeToken,
    pub task: String,
}

/// The single user message that drains the backlog.
pub fn render_backlog(tasks: &[BacklogTask]) -> String {
    let mut text = String::from("[Backlog]");
    for interrupted in tasks {
        text.push_str(
            "\nContinue this interrupted task from the tool results already above, then answer it: ",
        );
        text.push_str(&task_excerpt(&interrupted.task));
    }
    text
}

fn task_excerpt(task: &str) -> String {
    const MAX_EXCERPT_CHARS: usize = 2_000;
    match task.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &task[..end]),
        None => task.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(id: &str) -> Option<TurnId> {
        Some(TurnId::new(id))
    }

    #[test]
    fn a_message_runs_joins_or_is_held_by_what_is_going_on() {
        let load = |running, queued, waiting| SessionLoad { running, queued, waiting };
        assert_eq!(admit_message(&load(None, None, 0)), BacklogAdmission::Run);
        assert_eq!(admit_message(&load(turn("r"), None, 0)), BacklogAdmission::Hold);
        assert_eq!(admit_message(&load(turn("r"), turn("q"), 1)), BacklogAdmission::Join(TurnId::new("q")));
        assert_eq!(admit_message(&load(None, turn("q"), 1)), BacklogAdmission::Join(TurnId::new("q")));
        assert_eq!(admit_message(&load(turn("r"), turn("q"), MAX_WAITING_ITEMS)), BacklogAdmission::Full);
    }

    #[test]
    fn everything_waiting_is_drained_into_one_message() {
        let task = |id: &str, task: &str| BacklogTask {
            token: ResumeToken { message_id: MessageId::new(id), turn_id: TurnId::new("t"), steer_count: 1 },
            task: task.to_owned(),
        };
        let text = render_backlog(&[task("a", "count the files"), task("b", "name the largest")]);
        assert!(text.starts_with("[Backlog]\n") && text.matches("[Backlog]").count() == 1);
        assert!(text.contains("count the files") && text.ends_with("name the largest"));
    }
}
