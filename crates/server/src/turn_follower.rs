//! Follows a turn from its acceptance to its answer, across steering, slow readers and other nodes.

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
use crate::sse::{self, KEEP_ALIVE_INTERVAL};

/// A piece of a turn for its reader.
pub enum TurnPiece {
    Text(String),
    /// Nothing happened for a while.
    Quiet,
    End(Result<TurnAnswer>),
}

/// Bytes written for a client but not sent yet.
pub type PendingBytes = VecDeque<Bytes>;

/// Writes a turn in the format of one kind of client.
pub trait TurnWriter: Send + 'static {
    fn write_text(&mut self, text: &str);
    fn write_end(&mut self, answer: Result<TurnAnswer>) -> impl Future<Output = ()> + Send;
    fn pending_bytes(&mut self) -> &mut PendingBytes;
}

/// Streams a turn. A client that disconnects ends the stream but not the turn.
pub fn stream_turn(follow: TurnFollower, tell: impl TurnWriter) -> Response {
    sse::stream_response(TurnStream { follower: follow, writer: tell })
}

struct TurnStream<T> {
    follower: TurnFollower,
    writer: T,
}

impl<T: TurnWriter> sse::EventSource for TurnStream<T> {
    async fn next_bytes(&mut self) -> Option<Bytes> {
        while self.writer.pending_bytes().is_empty() {
            match self.follower.next_piece().await? {
                TurnPiece::Text(text) => self.writer.write_text(&text),
                TurnPiece::Quiet => self.writer.pending_bytes().push_back(sse::KEEP_ALIVE_COMMENT),
                TurnPiece::End(answer) => self.writer.write_end(answer).await,
            }
        }
        self.writer.pending_bytes().pop_front()
    }
}

pub struct TurnFollower {
    engine: Engine,
    watch: HubSubscription,
    session: SessionKey,
    /// The requested turn.
    asked: TurnId,
    /// The turn that works on it now. It changes when the task is steered and continued.
    turn: TurnId,
    /// The database must be checked for the end, because frames may have been missed.
    look: bool,
    /// Text sent since the last step.
    sent: String,
    /// The next text starts a new paragraph, because sent text cannot be taken back.
    paragraph: bool,
    end: Option<Result<TurnAnswer>>,
    over: bool,
}

impl TurnFollower {
    /// Follows an accepted message. `watch` must have been created before the message was accepted.
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

    /// Waits for the answer and drops the pieces.
    pub async fn wait_for_answer(mut self) -> Result<TurnAnswer> {
        loop {
            match self.next_piece().await {
                Some(TurnPiece::End(answer)) => return answer,
                Some(_) => {}
                None => return Err(Error::Panicked),
            }
        }
    }

    /// Returns the next piece, or `None` after the end.
    pub async fn next_piece(&mut self) -> Option<TurnPiece> {
        loop {
            if let Some(end) = self.end.take() {
                self.over = true;
                return Some(TurnPiece::End(end));
            }
            if self.over {
                return None;
            }
            if std::mem::take(&mut self.look)
                && let Some(text) = self.check_store().await
            {
                return Some(TurnPiece::Text(text));
            }
            if self.end.is_some() {
                continue;
            }
            match tokio::time::timeout(KEEP_ALIVE_INTERVAL, self.watch.recv()).await {
                Err(_) => {
                    self.look = true;
                    return Some(TurnPiece::Quiet);
                }
                Ok(Some(frame)) => {
                    if let Some(text) = self.apply_frame(&frame).await {
                        return Some(TurnPiece::Text(text));
                    }
                }
                // The reader fell too far behind: subscribes again and checks whether the turn ended meanwhile.
                Ok(None) => {
                    self.watch = self.engine.hub.subscribe(&self.session);
                    self.look = true;
                }
            }
        }
    }

    async fn apply_frame(&mut self, frame: &Arc<HubFrame>) -> Option<String> {
        match &frame.kind {
            FrameKind::Started { turn_id, resumes, .. } if resumes.contains(&self.turn) => {
                self.turn = turn_id.clone();
                None
            }
            FrameKind::Delta { turn_id, text, .. } if *turn_id == self.turn => Some(self.emit_text(text)),
            FrameKind::Restarted { turn_id } | FrameKind::ToolStarted { turn_id, .. }
                if *turn_id == self.turn =>
            {
                self.paragraph |= !self.sent.is_empty();
                self.sent.clear();
                None
            }
            FrameKind::Ended { turn_id, state, .. } if *turn_id == self.turn => match state {
                // The task continues in another turn, which says so when it starts.
                JobState::Steered => None,
                _ => match TurnAnswer::from_frame(&frame.kind) {
                    Some(answer) => self.set_answer(answer),
                    None => self.check_store().await,
                },
            },
            // The end of another turn may be the end of this task, if its start was missed.
            FrameKind::Ended { .. } | FrameKind::Changed => {
                self.look = true;
                None
            }
            _ => None,
        }
    }

    fn emit_text(&mut self, text: &str) -> String {
        self.sent.push_str(text);
        match std::mem::take(&mut self.paragraph) {
            true => format!("\n\n{text}"),
            false => text.to_owned(),
        }
    }

    async fn check_store(&mut self) -> Option<String> {
        match self.engine.poll_answer(&self.asked).await {
            Ok(Some(answer)) => self.set_answer(answer),
            Ok(None) => None,
            Err(error) => {
                self.end = Some(Err(error.into()));
                None
            }
        }
    }

    /// Records the end, and returns the part of the answer that was not sent yet.
    fn set_answer(&mut self, answer: TurnAnswer) -> Option<String> {
        let rest = match answer.text.strip_prefix(self.sent.as_str()) {
            _ if answer.state != JobState::Done => String::new(),
            Some(rest) => rest.to_owned(),
            None => {
                self.paragraph = true;
                answer.text.clone()
            }
        };
        self.end = Some(Ok(answer));
        (!rest.is_empty()).then(|| self.emit_text(&rest))
    }
}
