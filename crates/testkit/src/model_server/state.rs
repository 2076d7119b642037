//! State shared by the handle and the server thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::request::ReceivedRequest;
use super::script::ReplyScript;

pub(super) type ScriptChooser = Arc<dyn Fn(&ReceivedRequest) -> ReplyScript + Send + Sync>;

/// A load test sends more requests than anyone inspects.
const RETAINED_REQUESTS: usize = 10_000;

pub(super) struct ModelServerState {
    script: Mutex<ScriptQueue>,
    requests: Mutex<VecDeque<Arc<ReceivedRequest>>>,
    retained: AtomicUsize,
    models: Mutex<Vec<String>>,
    pub arrived: watch::Sender<usize>,
    pub abandoned: watch::Sender<usize>,
    pub connections: watch::Sender<usize>,
}

#[derive(Default)]
struct ScriptQueue {
    queue: VecDeque<ReplyScript>,
    choose: Option<ScriptChooser>,
}

impl Default for ModelServerState {
    fn default() -> Self {
        Self {
            script: Mutex::default(),
            requests: Mutex::default(),
            retained: AtomicUsize::new(RETAINED_REQUESTS),
            models: Mutex::new(vec!["scripted".to_owned()]),
            arrived: watch::Sender::new(0),
            abandoned: watch::Sender::new(0),
            connections: watch::Sender::new(0),
        }
    }
}

impl ModelServerState {
    pub fn retain_requests(&self, count: usize) {
        self.retained.store(count, Ordering::Relaxed);
    }

    pub fn push(&self, script: ReplyScript) {
        lock(&self.script).queue.push_back(script);
    }

    pub fn set_chooser(&self, choose: ScriptChooser) {
        lock(&self.script).choose = Some(choose);
    }

    pub fn set_models(&self, names: Vec<String>) {
        *lock(&self.models) = names;
    }

    pub fn models(&self) -> Vec<String> {
        lock(&self.models).clone()
    }

    pub fn requests(&self) -> Vec<Arc<ReceivedRequest>> {
        lock(&self.requests).iter().cloned().collect()
    }

    pub fn record_request(&self, request: ReceivedRequest) -> Arc<ReceivedRequest> {
        let request = Arc::new(request);
        let mut requests = lock(&self.requests);
        requests.push_back(Arc::clone(&request));
        if requests.len() > self.retained.load(Ordering::Relaxed) {
            requests.pop_front();
        }
        drop(requests);
        count_up(&self.arrived);
        request
    }

    pub fn next_pushed(&self) -> Option<ReplyScript> {
        lock(&self.script).queue.pop_front()
    }

    /// Returns the script for a request. Calls the chooser outside the lock, so that it may push scripts itself.
    pub fn script_for(&self, request: &ReceivedRequest) -> ReplyScript {
        let choose = {
            let mut scripts = lock(&self.script);
            if let Some(script) = scripts.queue.pop_front() {
                return script;
            }
            scripts.choose.clone()
        };
        match choose {
            Some(choose) => choose(request),
            None => ReplyScript::reply(format!("echo: {}", request.last_user_text())),
        }
    }
}

pub(super) fn count_up(counter: &watch::Sender<usize>) {
    counter.send_modify(|count| *count += 1);
}

/// Ignores poisoning: a test that panicked while holding a lock has failed already, and the rest should still run.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
