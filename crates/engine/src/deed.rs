//! Deeds: what is done in one transaction with the receipt of whatever asked for it, so that it is done once; and what
//! follows when that is stored.

use polyclaw_domain::id::TurnId;
use polyclaw_domain::job::JobLane;
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Tx, sessions};

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::family::Closed;
use crate::hub::FrameKind;

/// It may be run again, like every transaction.
pub(crate) type Deed = Box<dyn Fn(&mut Tx<'_>) -> polyclaw_store::Result<Done> + Send>;

/// What a deed came to.
pub(crate) struct Done {
    /// An error says why it was not done.
    pub said: Result<String>,
    pub after: Vec<After>,
}

/// What this process and whoever watches it are told once a deed is stored.
pub(crate) enum After {
    Stop(TurnId),
    Publish(SessionKey, FrameKind),
    Wake(JobLane),
    Closed(Closed),
}

impl Done {
    pub fn said(text: impl Into<String>) -> Self {
        Self { said: Ok(text.into()), after: Vec::new() }
    }

    pub fn refused(error: Error) -> Self {
        Self { said: Err(error), after: Vec::new() }
    }

    /// What is said about it in a chat.
    pub fn sentence(&self) -> String {
        match &self.said {
            Ok(text) => text.clone(),
            Err(Error::UnknownSession(_)) => "Nothing was said here yet.".to_owned(),
            Err(error) => format!("That does not count: {error}."),
        }
    }
}

/// Nothing but words.
pub(crate) fn say(text: impl Into<String>) -> Deed {
    let text = text.into();
    Box::new(move |_| Ok(Done::said(text.clone())))
}

/// A deed on a session, which has to be there.
pub(crate) fn on<F>(key: &SessionKey, change: F) -> Deed
where
    F: Fn(&mut Tx<'_>, &Session) -> polyclaw_store::Result<Done> + Send + 'static,
{
    let key = key.clone();
    Box::new(move |tx| match sessions::get(tx, &key)? {
        Some(session) => change(tx, &session),
        None => Ok(Done::refused(Error::UnknownSession(key.to_string()))),
    })
}

impl Engine {
    /// Does it for somebody who waits for the answer here.
    pub(crate) async fn perform(&self, deed: Deed) -> Result<String> {
        let Done { said, after } = self.db().write(deed).await?;
        self.follow(after);
        said
    }

    pub(crate) fn follow(&self, after: Vec<After>) {
        for one in after {
            match one {
                After::Stop(turn) => self.stop_here(&turn),
                After::Publish(session, frame) => {
                    self.hub.publish(&session, frame);
                }
                After::Wake(lane) => self.lanes.wake(lane),
                After::Closed(closed) => self.tell_closed(closed),
            }
        }
    }
}
