//! What a scripted platform keeps: the calls it got, what is to happen to the next ones, and what people see.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::Value;
use tokio::sync::watch;

use super::server::Cut;
use super::state::lock;
use super::{Outcome, PATIENCE};

/// One message as a person sees it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The account that wrote it: its token, or the user it is.
    pub bot: String,
    pub chat: String,
    pub thread: Option<String>,
    pub id: String,
    pub text: String,
}

/// One call of a bot.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    pub bot: String,
    pub method: String,
    pub body: Value,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Edited {
    Changed,
    Same,
    Missing,
}

/// What each button says, and what it stands for.
pub type Buttons = Vec<(String, String)>;

pub struct Board {
    calls: Mutex<Vec<Called>>,
    outcomes: Mutex<HashMap<String, VecDeque<Outcome>>>,
    shown: Mutex<Vec<Shown>>,
    /// The buttons under a message, by its conversation and id.
    buttons: Mutex<HashMap<(String, String), Buttons>>,
    /// Counts what happened, for those who wait.
    changes: watch::Sender<u64>,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            outcomes: Mutex::default(),
            shown: Mutex::default(),
            buttons: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Board {
    pub fn push(&self, method: &str, outcome: Outcome) {
        lock(&self.outcomes).entry(method.to_owned()).or_default().push_back(outcome);
    }

    /// Keeps the call and says what is to happen to it.
    pub fn called(&self, called: Called) -> Outcome {
        let next = lock(&self.outcomes).get_mut(&called.method).and_then(VecDeque::pop_front);
        lock(&self.calls).push(called);
        self.changed();
        next.unwrap_or(Outcome::Shown)
    }

    pub fn calls(&self, method: &str) -> Vec<Called> {
        lock(&self.calls).iter().filter(|called| called.method == method).cloned().collect()
    }

    pub fn show(&self, message: Shown) {
        lock(&self.shown).push(message);
        self.changed();
    }

    /// Puts buttons under a message.
    pub fn offer(&self, chat: &str, id: &str, buttons: Buttons) {
        lock(&self.buttons).insert((chat.to_owned(), id.to_owned()), buttons);
    }

    /// What a button of this name under a message stands for.
    ///
    /// # Panics
    /// When there is no such button: nobody can press it.
    pub fn pressed(&self, message: &Shown, label: &str) -> String {
        let buttons = lock(&self.buttons);
        let under = buttons.get(&(message.chat.clone(), message.id.clone()));
        let button = under.into_iter().flatten().find(|(says, _)| says == label);
        button.map(|(_, means)| means.clone()).unwrap_or_else(|| panic!("there is no button {label:?}"))
    }

    pub fn edit(&self, chat: &str, id: &str, text: &str) -> Edited {
        let mut shown = lock(&self.shown);
        let Some(message) = shown.iter_mut().find(|message| message.chat == chat && message.id == id) else {
            return Edited::Missing;
        };
        if message.text == text {
            return Edited::Same;
        }
        text.clone_into(&mut message.text);
        Edited::Changed
    }

    pub fn shown(&self) -> Vec<Shown> {
        lock(&self.shown).clone()
    }

    /// Wipes what people see in one conversation, and says what it was.
    pub fn wipe(&self, chat: &str) -> Vec<Shown> {
        lock(&self.shown).extract_if(.., |message| message.chat == chat).collect()
    }

    pub fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Waits until something is so; asks again after each change.
    pub async fn until(&self, is_so: impl Fn() -> bool) -> bool {
        let mut changes = self.changes.subscribe();
        // Not `wait_for`: it holds a lock while it asks, and asking may change something.
        let so = async { while !is_so() && changes.changed().await.is_ok() {} };
        tokio::time::timeout(PATIENCE, so).await.is_ok()
    }

    /// A receiver that sees every change from now on.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// Does to one call what its script says. `perform` is what the platform does by itself; `refuse` words a refusal.
pub(super) async fn carry_out(
    outcome: Outcome,
    perform: impl FnOnce() -> Response<Body>,
    refuse: impl FnOnce(u16, Option<u64>) -> Response<Body>,
) -> Result<Response<Body>, Cut> {
    match outcome {
        Outcome::Shown => Ok(perform()),
        Outcome::ShownThenStatus(status) => {
            perform();
            Ok(refuse(status, None))
        }
        Outcome::ShownThenCut => {
            perform();
            Err(Cut)
        }
        Outcome::ShownThenHang => {
            perform();
            std::future::pending().await
        }
        Outcome::Status(status) => Ok(refuse(status, None)),
        Outcome::Later { status, seconds } => Ok(refuse(status, Some(seconds))),
        Outcome::Cut => Err(Cut),
    }
}

pub(super) fn json(status: u16, body: &Value) -> Response<Body> {
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
