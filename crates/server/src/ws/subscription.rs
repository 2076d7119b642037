//! The subscriptions of a socket. Each has its own task, so that a busy session does not delay others. If a socket
//! does not keep up, its subscriptions fill, end and say so.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::ws::Message;
use polyclaw_api::stream::{MissedFrames, ReaderNotice};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::hub::{HubFrame, HubSubscription};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::http::stream::{FrameView, StreamCursor, reader_notice, watch_from};
use crate::state::AppState;
use crate::ws::frame;

pub const MAX_SUBSCRIPTIONS: usize = 256;

/// An event for a socket. It is encoded when sent, because a copy for every socket could be large.
pub enum SubscriptionEvent {
    Frame(Arc<HubFrame>),
    Notice(ReaderNotice),
}

impl SubscriptionEvent {
    pub fn to_message(&self) -> Message {
        match self {
            Self::Frame(kept) => frame::text_frame(&FrameView::from_frame(kept)),
            Self::Notice(notice) => frame::text_frame(notice),
        }
    }
}

pub struct SocketSubscriptions {
    app: AppState,
    events: mpsc::Sender<SubscriptionEvent>,
    tasks: HashMap<SessionKey, JoinHandle<()>>,
    /// The subscription to all sessions.
    everywhere: Option<JoinHandle<()>>,
}

impl SocketSubscriptions {
    pub fn new(app: AppState, events: mpsc::Sender<SubscriptionEvent>) -> Self {
        Self { app, events, tasks: HashMap::new(), everywhere: None }
    }

    /// Subscribes to a session. Subscribing again starts over from the given position.
    pub fn add_session(&mut self, key: SessionKey, from: &StreamCursor) -> Result<Value> {
        self.tasks.retain(|_, task| !task.is_finished());
        self.remove_session(&key);
        if self.tasks.len() >= MAX_SUBSCRIPTIONS {
            return Err(Error::invalid_field(
                "session_key",
                format!("at most {MAX_SUBSCRIPTIONS} subscriptions per socket are allowed"),
            ));
        }
        let (missed, watch) = watch_from(&self.app, &key, from);
        let answer =
            json!({ "session_key": key, "epoch": self.app.epoch, "seq": self.app.engine.hub.last_seq() });
        let task = forward_session(key.clone(), missed, watch, self.events.clone());
        self.tasks.insert(key, tokio::spawn(task));
        Ok(answer)
    }

    /// Subscribes to all sessions from now on, without partial text. For lists, not for reading along.
    pub fn watch_all(&mut self) -> Value {
        self.everywhere.take().inspect(JoinHandle::abort);
        let answer = json!({ "epoch": self.app.epoch, "seq": self.app.engine.hub.last_seq() });
        self.everywhere = Some(tokio::spawn(forward_all(self.app.clone(), self.events.clone())));
        answer
    }

    pub fn remove_session(&mut self, key: &SessionKey) -> bool {
        self.tasks.remove(key).inspect(JoinHandle::abort).is_some()
    }
}

impl Drop for SocketSubscriptions {
    fn drop(&mut self) {
        self.tasks.values().chain(&self.everywhere).for_each(JoinHandle::abort);
    }
}

async fn forward_session(
    key: SessionKey,
    missed: Option<Vec<Arc<HubFrame>>>,
    mut watch: HubSubscription,
    events: mpsc::Sender<SubscriptionEvent>,
) {
    let missed = missed.map_or_else(
        || vec![SubscriptionEvent::Notice(reader_notice(Some(key.clone()), MissedFrames::Gap))],
        |frames| frames.into_iter().map(SubscriptionEvent::Frame).collect(),
    );
    for event in missed {
        if events.send(event).await.is_err() {
            return;
        }
    }
    while let Some(live) = watch.recv().await {
        if events.send(SubscriptionEvent::Frame(live)).await.is_err() {
            return;
        }
    }
    tracing::info!(session.key = %key, "socket fell too far behind; ending its subscription");
    let _ = events.send(SubscriptionEvent::Notice(reader_notice(Some(key), MissedFrames::Behind))).await;
}

/// Forwards frames of all sessions. A slow reader is notified and continues with new frames; it must reload its lists.
async fn forward_all(app: AppState, events: mpsc::Sender<SubscriptionEvent>) {
    loop {
        let mut watch = app.engine.hub.subscribe_all();
        while let Some(frame) = watch.recv().await {
            if !frame.kind.is_partial() && events.send(SubscriptionEvent::Frame(frame)).await.is_err() {
                return;
            }
        }
        if events.send(SubscriptionEvent::Notice(reader_notice(None, MissedFrames::Behind))).await.is_err() {
            return;
        }
    }
}
