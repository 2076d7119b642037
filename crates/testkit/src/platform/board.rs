//! The state of a scripted platform: received calls, outcomes of the next calls, and visible messages.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::Value;
use tokio::sync::watch;

use super::server::ConnectionCut;
use super::state::lock;
use super::{ReplyOutcome, WAIT_TIMEOUT};

/// A message as a person sees it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisibleMessage {
    /// The account that wrote it: its token or user.
    pub bot: String,
    pub chat: String,
    pub thread: Option<String>,
    pub id: String,
    pub text: String,
}

/// A call of a bot.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    pub bot: String,
    pub method: String,
    pub body: Value,
}

#[derive(Debug, PartialEq, Eq)]
pub enum EditOutcome {
    Changed,
    Same,
    Missing,
}

/// The labels of buttons with their values.
pub type MessageButtons = Vec<(String, String)>;

pub struct MessageBoard {
    calls: Mutex<Vec<RecordedCall>>,
    outcomes: Mutex<HashMap<String, VecDeque<ReplyOutcome>>>,
    visible: Mutex<Vec<VisibleMessage>>,
    /// Buttons under messages, by conversation and message ID.
    buttons: Mutex<HashMap<(String, String), MessageButtons>>,
    /// Counts changes, for waiters.
    changes: watch::Sender<u64>,
}

impl Default for MessageBoard {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            outcomes: Mutex::default(),
            visible: Mutex::default(),
            buttons: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl MessageBoard {
    pub fn push(&self, method: &str, outcome: ReplyOutcome) {
        lock(&self.outcomes).entry(method.to_owned()).or_default().push_back(outcome);
    }

    /// Records the call and returns its outcome.
    pub fn record_call(&self, called: RecordedCall) -> ReplyOutcome {
        let next = lock(&self.outcomes).get_mut(&called.method).and_then(VecDeque::pop_front);
        lock(&self.calls).push(called);
        self.notify_change();
        next.unwrap_or(ReplyOutcome::Shown)
    }

    pub fn calls(&self, method: &str) -> Vec<RecordedCall> {
        lock(&self.calls).iter().filter(|called| called.method == method).cloned().collect()
    }

    pub fn show_message(&self, message: VisibleMessage) {
        lock(&self.visible).push(message);
        self.notify_change();
    }

    /// Adds buttons to a message.
    pub fn set_buttons(&self, chat: &str, id: &str, buttons: MessageButtons) {
        lock(&self.buttons).insert((chat.to_owned(), id.to_owned()), buttons);
    }

    /// Returns the value of a button under a message, by its label.
    ///
    /// # Panics
    /// If there is no such button.
    pub fn button_value(&self, message: &VisibleMessage, label: &str) -> String {
        let buttons = lock(&self.buttons);
        let under = buttons.get(&(message.chat.clone(), message.id.clone()));
        let button = under.into_iter().flatten().find(|(says, _)| says == label);
        button.map(|(_, means)| means.clone()).unwrap_or_else(|| panic!("there is no button {label:?}"))
    }

    pub fn edit_message(&self, chat: &str, id: &str, text: &str) -> EditOutcome {
        let mut shown = lock(&self.visible);
        let Some(message) = shown.iter_mut().find(|message| message.chat == chat && message.id == id) else {
            return EditOutcome::Missing;
        };
        if message.text == text {
            return EditOutcome::Same;
        }
        text.clone_into(&mut message.text);
        EditOutcome::Changed
    }

    pub fn visible_messages(&self) -> Vec<VisibleMessage> {
        lock(&self.visible).clone()
    }

    /// Clears a conversation and returns its messages.
    pub fn wipe_chat(&self, chat: &str) -> Vec<VisibleMessage> {
        lock(&self.visible).extract_if(.., |message| message.chat == chat).collect()
    }

    pub fn notify_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Waits until a condition holds. Checks it again after each change.
    pub async fn wait_until(&self, is_so: impl Fn() -> bool) -> bool {
        let mut changes = self.changes.subscribe();
        // Not `wait_for`, which holds a lock during the check; the check may cause a change.
        let so = async { while !is_so() && changes.changed().await.is_ok() {} };
        tokio::time::timeout(WAIT_TIMEOUT, so).await.is_ok()
    }

    /// Returns a receiver of every further change.
    pub fn watch_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// Applies a scripted outcome to a call. `perform` is the platform's normal reaction; `refuse` renders an error.
pub(super) async fn apply_outcome(
    outcome: ReplyOutcome,
    perform: impl FnOnce() -> Response<Body>,
    refuse: impl FnOnce(u16, Option<u64>) -> Response<Body>,
) -> Result<Response<Body>, ConnectionCut> {
    match outcome {
        ReplyOutcome::Shown => Ok(perform()),
        ReplyOutcome::ShownThenStatus(status) => {
            perform();
            Ok(refuse(status, None))
        }
        ReplyOutcome::ShownThenCut => {
            perform();
            Err(ConnectionCut)
        }
        ReplyOutcome::ShownThenHang => {
            perform();
            std::future::pending().await
        }
        ReplyOutcome::Status(status) => Ok(refuse(status, None)),
        ReplyOutcome::Later { status, seconds } => Ok(refuse(status, Some(seconds))),
        ReplyOutcome::Cut => Err(ConnectionCut),
    }
}

pub(super) fn json_response(status: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn with_retry_after(mut response: Response<Body>, seconds: Option<u64>) -> Response<Body> {
    if let Some(seconds) = seconds {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
