//! Steer backlog: decides what happens to an arriving message, and what a turn processes when it starts.

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, TurnId};

/// Maximum number of waiting messages of people in one session, and of all other senders together. Further ones are
/// rejected.
pub const MAX_WAITING_ITEMS: usize = 50;

/// Maximum number of announces that one turn handles as separate messages. Older ones are merged into one message when
/// it starts.
pub const MAX_ANNOUNCES: usize = 50;

/// What is going on in the session when a message arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionLoad {
    pub running: Option<TurnId>,
    pub queued: Option<TurnId>,
    /// Inputs and interrupted tasks that no turn processes yet.
    pub waiting: usize,
}

impl SessionLoad {
    /// Returns whether nothing runs and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.running.is_none() && self.queued.is_none() && self.waiting == 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BacklogAdmission {
    /// Nothing is going on: start a new turn immediately.
    Run,
    /// A turn is waiting to start: the message becomes part of it.
    Join(TurnId),
    /// A turn runs: create a new one, blocked until that one ends or is steered.
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

/// A task that a newer message interrupted, with what is needed to resume it from its stored tool results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeToken {
    /// The message that started the task.
    pub message_id: MessageId,
    /// The turn that was interrupted.
    pub turn_id: TurnId,
    /// How often the task was interrupted.
    pub steer_count: u32,
}

/// An interrupted task with its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BacklogTask {
    pub token: ResumeToken,
    pub task: String,
}

/// Renders the single user message that drains the backlog.
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
    fn session_load_decides_message_admission() {
        let load = |running, queued, waiting| SessionLoad { running, queued, waiting };
        assert_eq!(admit_message(&load(None, None, 0)), BacklogAdmission::Run);
        assert_eq!(admit_message(&load(turn("r"), None, 0)), BacklogAdmission::Hold);
        assert_eq!(admit_message(&load(turn("r"), turn("q"), 1)), BacklogAdmission::Join(TurnId::new("q")));
        assert_eq!(admit_message(&load(None, turn("q"), 1)), BacklogAdmission::Join(TurnId::new("q")));
        assert_eq!(admit_message(&load(turn("r"), turn("q"), MAX_WAITING_ITEMS)), BacklogAdmission::Full);
    }

    #[test]
    fn backlog_tasks_render_as_one_message() {
        let task = |id: &str, task: &str| BacklogTask {
            token: ResumeToken { message_id: MessageId::new(id), turn_id: TurnId::new("t"), steer_count: 1 },
            task: task.to_owned(),
        };
        let text = render_backlog(&[task("a", "count the files"), task("b", "name the largest")]);
        assert!(text.starts_with("[Backlog]\n") && text.matches("[Backlog]").count() == 1);
        assert!(text.contains("count the files") && text.ends_with("name the largest"));
    }
}
