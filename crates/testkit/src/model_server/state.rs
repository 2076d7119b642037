//! What the handle and the server thread share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::request::Request;
use super::script::Script;

pub(super) type Choose = Arc<dyn Fn(&Request) -> Script + Send + Sync>;

/// A load test sends more requests than anyone will look at.
const KEPT: usize = 10_000;

pub(super) struct State {
    script: Mutex<Scripts>,
    requests: Mutex<VecDeque<Arc<Request>>>,
    kept: AtomicUsize,
    models: Mutex<Vec<String>>,
    pub arrived: watch::Sender<usize>,
    pub abandoned: watch::Sender<usize>,
    pub connections: watch::Sender<usize>,
}

#[derive(Default)]
struct Scripts {
    queue: VecDeque<Script>,
    choose: Option<Choose>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            script: Mutex::default(),
            requests: Mutex::default(),
            kept: AtomicUsize::new(KEPT),
            models: Mutex::new(vec!["scripted".to_owned()]),
            arrived: watch::Sender::new(0),
            abandoned: watch::Sender::new(0),
            connections: watch::Sender::new(0),
        }
    }
}

impl State {
    pub fn keep(&self, count: usize) {
        self.kept.store(count, Ordering::Relaxed);
    }

    pub fn push(&self, script: Script) {
        lock(&self.script).queue.push_back(script);
    }

    pub fn answer(&self, choose: Choose) {
        lock(&self.script).choose = Some(choose);
    }

    pub fn set_models(&self, names: Vec<String>) {
        *lock(&self.models) = names;
    }

    pub fn models(&self) -> Vec<String> {
        lock(&self.models).clone()
    }

    pub fn requests(&self) -> Vec<Arc<Request>> {
        lock(&self.requests).iter().cloned().collect()
    }

    pub fn record(&self, request: Request) -> Arc<Request> {
        let request = Arc::new(request);
        let mut requests = lock(&self.requests);
        requests.push_back(Arc::clone(&request));
        if requests.len() > self.kept.load(Ordering::Relaxed) {
            requests.pop_front();
        }
        drop(requests);
        count(&self.arrived);
        request
    }

    pub fn pushed(&self) -> Option<Script> {
        lock(&self.script).queue.pop_front()
    }

    /// The function is called outside the lock, so that it may push scripts itself.
    pub fn script_for(&self, request: &Request) -> Script {
        let choose = {
            let mut scripts = lock(&self.script);
            if let Some(script) = scripts.queue.pop_front() {
                return script;
            }
            scripts.choose.clone()
        };
        match choose {
            Some(choose) => choose(request),
            None => Script::reply(format!("echo: {}", request.last_user_text())),
        }
    }
}

pub(super) fn count(counter: &watch::Sender<usize>) {
    counter.send_modify(|count| *count += 1);
}

/// A test that panics while it holds a lock has failed already; the rest should still run.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
