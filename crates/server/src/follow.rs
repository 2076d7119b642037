//! Follows one turn from its acceptance to its answer, across steering, a slow reader and other nodes.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::job::JobState;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::hub::{FrameKind, HubFrame, HubSubscription};
use polyclaw_engine::ingress::AcceptedMessage;
use polyclaw_engine::{Engine, TurnAnswer};

use crate::error::{Error, Result};
use crate::sse::{self, QUIET};

/// What a reader of a turn gets.
pub enum Piece {
    Text(String),
    /// Nothing happened for a while.
    Quiet,
    End(Result<TurnAnswer>),
}

/// What was written for a client and not yet taken.
pub type Out = VecDeque<Bytes>;

/// Tells a turn in the words of one kind of client.
pub trait Tell: Send + 'static {
    fn text(&mut self, text: &str);
    fn end(&mut self, answer: Result<TurnAnswer>) -> impl Future<Output = ()> + Send;
    fn out(&mut self) -> &mut Out;
}

/// A turn as it is written. A client that hangs up ends this stream, never the turn.
pub fn told(follow: Follow, tell: impl Tell) -> Response {
    sse::response(Told { follow, tell })
}

struct Told<T> {
    follow: Follow,
    tell: T,
}

impl<T: Tell> sse::Source for Told<T> {
    async fn next(&mut self) -> Option<Bytes> {
        while self.tell.out().is_empty() {
            match self.follow.next().await? {
                Piece::Text(text) => self.tell.text(&text),
                Piece::Quiet => self.tell.out().push_back(sse::KEEP_ALIVE),
                Piece::End(answer) => self.tell.end(answer).await,
            }
        }
        self.tell.out().pop_front()
    }
}

pub struct Follow {
    engine: Engine,
    watch: HubSubscription,
    session: SessionKey,
    /// The turn that was asked for.
    asked: TurnId,
    /// The turn that works on it now.
    turn: TurnId,
    /// The database must be asked whether it is over: frames may have been missed.
    look: bool,
    /// Text handed out since the last step.
    sent: String,
    /// The next text begins a new paragraph, because what was handed out can not be taken back.
    paragraph: bool,
    end: Option<Result<TurnAnswer>>,
    over: bool,
}

impl Follow {
    /// `watch` was begun before the message was accepted.
    pub fn new(engine: Engine, watch: HubSubscription, accepted: &AcceptedMessage) -> Self {
        Self {
            engine,
            watch,
            session: accepted.session_key.clone(),
            asked: accepted.turn_id.clone(),
            turn: accepted.turn_id.clone(),
            look: accepted.duplicate,
            sent: String::new(),
            paragraph: false,
            end: None,
            over: false,
        }
    }

    /// The answer alone.
    pub async fn answer(mut self) -> Result<TurnAnswer> {
        loop {
            match self.next().await {
                Some(Piece::End(answer)) => return answer,
                Some(_) => {}
                None => return Err(Error::Panicked),
            }
        }
    }

    /// The next piece; `None` after the end.
    pub async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(end) = self.end.take() {
                self.over = true;
                return Some(Piece::End(end));
            }
            if self.over {
                return None;
            }
            if std::mem::take(&mut self.look)
                && let Some(text) = self.look_up().await
            {
                return Some(Piece::Text(text));
            }
            if self.end.is_some() {
                continue;
            }
            match tokio::time::timeout(QUIET, self.watch.recv()).await {
                Err(_) => {
                    self.look = true;
                    return Some(Piece::Quiet);
                }
                Ok(Some(frame)) => {
                    if let Some(text) = self.take(&frame).await {
                        return Some(Piece::Text(text));
                    }
                }
                // Too far behind: watch anew, and look whether it ended meanwhile.
                Ok(None) => {
                    self.watch = self.engine.hub.subscribe(&self.session);
                    self.look = true;
                }
            }
        }
    }

    async fn take(&mut self, frame: &Arc<HubFrame>) -> Option<String> {
        match &frame.kind {
            FrameKind::Started { turn_id, resumes, .. } if resumes.contains(&self.turn) => {
                self.turn = turn_id.clone();
                None
            }
            FrameKind::Delta { turn_id, text, .. } if *turn_id == self.turn => Some(self.hand_out(text)),
            FrameKind::Restarted { turn_id } | FrameKind::ToolStarted { turn_id, .. }
                if *turn_id == self.turn =>
            {
                self.paragraph |= !self.sent.is_empty();
                self.sent.clear();
                None
            }
            FrameKind::Ended { turn_id, state, .. } if *turn_id == self.turn => match state {
                // Its task goes on in a turn that says so when it starts.
                JobState::Steered => None,
                _ => match TurnAnswer::from_frame(&frame.kind) {
                    Some(answer) => self.finish(answer),
                    None => self.look_up().await,
                },
            },
            // The end of another turn may be the end of this task: its start may have been missed.
            FrameKind::Ended { .. } | FrameKind::Changed => {
                self.look = true;
                None
            }
            _ => None,
        }
    }

    fn hand_out(&mut self, text: &str) -> String {
        self.sent.push_str(text);
        match std::mem::take(&mut self.paragraph) {
            true => format!("\n\n{text}"),
            false => text.to_owned(),
        }
    }

    async fn look_up(&mut self) -> Option<String> {
        match self.engine.poll_answer(&self.asked).await {
            Ok(Some(answer)) => self.finish(answer),
            Ok(None) => None,
            Err(error) => {
                self.end = Some(Err(error.into()));
                None
            }
        }
    }

    /// Ends, and returns what of the answer was not handed out yet.
    fn finish(&mut self, answer: TurnAnswer) -> Option<String> {
        let rest = match answer.text.strip_prefix(self.sent.as_str()) {
            _ if answer.state != JobState::Done => String::new(),
            Some(rest) => rest.to_owned(),
            None => {
                self.paragraph = true;
                answer.text.clone()
            }
        };
        self.end = Some(Ok(answer));
        (!rest.is_empty()).then(|| self.hand_out(&rest))
    }
}
