//! Command actions: each runs in one transaction with the receipt of its message, so that it happens once. Its effects
//! follow after the commit.

use polyclaw_domain::id::TurnId;
use polyclaw_domain::job::JobLane;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Tx, sessions};

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::hub::FrameKind;
use crate::reply_text;
use crate::subagents::RunCompletion;

/// May run several times, like every transaction.
pub(crate) type CommandAction = Box<dyn Fn(&mut Tx<'_>) -> polyclaw_store::Result<ActionOutcome> + Send>;

/// Result of a command action.
pub(crate) struct ActionOutcome {
    /// An error is the reason why nothing was done.
    pub reply: Result<String>,
    pub effects: Vec<PostCommitEffect>,
}

/// An effect on this process and its watchers after the action is committed.
pub(crate) enum PostCommitEffect {
    Stop(TurnId),
    Publish(SessionKey, FrameKind),
    Wake(JobLane),
    RunCompleted(RunCompletion),
}

impl ActionOutcome {
    pub fn with_reply(text: impl Into<String>) -> Self {
        Self { reply: Ok(text.into()), effects: Vec::new() }
    }

    pub fn with_error(error: Error) -> Self {
        Self { reply: Err(error), effects: Vec::new() }
    }

    /// The chat reply for this result.
    pub fn reply_text(&self, locale: Locale) -> String {
        match &self.reply {
            Ok(text) => text.clone(),
            Err(error) => reply_text::command::command_failed(locale, error),
        }
    }
}

/// An action that only replies.
pub(crate) fn reply_only(text: impl Into<String>) -> CommandAction {
    let text = text.into();
    Box::new(move |_| Ok(ActionOutcome::with_reply(text.clone())))
}

/// An action on an existing session.
pub(crate) fn on_session<F>(key: &SessionKey, change: F) -> CommandAction
where
    F: Fn(&mut Tx<'_>, &Session) -> polyclaw_store::Result<ActionOutcome> + Send + 'static,
{
    let key = key.clone();
    Box::new(move |tx| match sessions::get(tx, &key)? {
        Some(session) => change(tx, &session),
        None => Ok(ActionOutcome::with_error(Error::UnknownSession(key.to_string()))),
    })
}

impl Engine {
    /// Runs an action for a caller that waits for the reply.
    pub(crate) async fn perform_action(&self, action: CommandAction) -> Result<String> {
        let ActionOutcome { reply, effects: after } = self.db().write(action).await?;
        self.apply_effects(after);
        reply
    }

    pub(crate) fn apply_effects(&self, after: Vec<PostCommitEffect>) {
        for one in after {
            match one {
                PostCommitEffect::Stop(turn) => self.stop_local_turn(&turn),
                PostCommitEffect::Publish(session, frame) => {
                    self.hub.publish(&session, frame);
                }
                PostCommitEffect::Wake(lane) => self.lanes.wake(lane),
                PostCommitEffect::RunCompleted(closed) => self.publish_run_completion(closed),
            }
        }
    }
}
