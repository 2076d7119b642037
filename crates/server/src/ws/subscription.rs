//! The sessions one socket watches. Each has a task of its own, so a busy session never holds up another; a
//! socket that does not keep up fills its subscriptions, which then end and say so.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::ws::Message;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::hub::{HubFrame, HubSubscription};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::http::stream::{Missed, Notice, Position, Shown, open};
use crate::state::AppState;
use crate::ws::frame;

pub const MAX: usize = 256;

/// What a subscription has for its socket. Written when it is sent: a copy for each socket could be large.
pub enum Event {
    Frame(Arc<HubFrame>),
    Notice(Notice),
}

impl Event {
    pub fn message(&self) -> Message {
        match self {
            Self::Frame(kept) => frame::text(&Shown::of(kept)),
            Self::Notice(notice) => frame::text(notice),
        }
    }
}

pub struct Subscriptions {
    app: AppState,
    events: mpsc::Sender<Event>,
    tasks: HashMap<SessionKey, JoinHandle<()>>,
    /// The one that follows every session.
    everywhere: Option<JoinHandle<()>>,
}

impl Subscriptions {
    pub fn new(app: AppState, events: mpsc::Sender<Event>) -> Self {
        Self { app, events, tasks: HashMap::new(), everywhere: None }
    }

    /// Subscribing again starts over from the position given.
    pub fn add(&mut self, key: SessionKey, from: &Position) -> Result<Value> {
        self.tasks.retain(|_, task| !task.is_finished());
        self.remove(&key);
        if self.tasks.len() >= MAX {
            return Err(Error::invalid("session_key", format!("at most {MAX} subscriptions per socket")));
        }
        let (missed, watch) = open(&self.app, &key, from);
        let answer =
            json!({ "session_key": key, "epoch": self.app.epoch, "seq": self.app.engine.hub.last_seq() });
        let task = forward(key.clone(), missed, watch, self.events.clone());
        self.tasks.insert(key, tokio::spawn(task));
        Ok(answer)
    }

    /// All sessions from now on, without the pieces of what is told whole: for lists, not for readers.
    pub fn watch(&mut self) -> Value {
        self.everywhere.take().inspect(JoinHandle::abort);
        let answer = json!({ "epoch": self.app.epoch, "seq": self.app.engine.hub.last_seq() });
        self.everywhere = Some(tokio::spawn(everywhere(self.app.clone(), self.events.clone())));
        answer
    }

    pub fn remove(&mut self, key: &SessionKey) -> bool {
        self.tasks.remove(key).inspect(JoinHandle::abort).is_some()
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.tasks.values().chain(&self.everywhere).for_each(JoinHandle::abort);
    }
}

async fn forward(
    key: SessionKey,
    missed: Option<Vec<Arc<HubFrame>>>,
    mut watch: HubSubscription,
    events: mpsc::Sender<Event>,
) {
    let missed = missed.map_or_else(
        || vec![Event::Notice(Notice::of(Some(key.clone()), Missed::Gap))],
        |frames| frames.into_iter().map(Event::Frame).collect(),
    );
    for event in missed {
        if events.send(event).await.is_err() {
            return;
        }
    }
    while let Some(live) = watch.recv().await {
        if events.send(Event::Frame(live)).await.is_err() {
            return;
        }
    }
    tracing::info!(session.key = %key, "a socket fell too far behind");
    let _ = events.send(Event::Notice(Notice::of(Some(key), Missed::Behind))).await;
}

/// A reader that can not keep up is told so and goes on with what comes then: it looks at its lists again.
async fn everywhere(app: AppState, events: mpsc::Sender<Event>) {
    loop {
        let mut watch = app.engine.hub.subscribe_all();
        while let Some(frame) = watch.recv().await {
            if !frame.kind.is_partial() && events.send(Event::Frame(frame)).await.is_err() {
                return;
            }
        }
        if events.send(Event::Notice(Notice::of(None, Missed::Behind))).await.is_err() {
            return;
        }
    }
}
