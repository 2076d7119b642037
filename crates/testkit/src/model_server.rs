//! A scripted model server: OpenAI's `/v1/chat/completions` and `/v1/models`, Anthropic's `/v1/messages`, and
//! Ollama's `/api/tags`.
//!
//! It runs on its own thread and runtime. A test that pauses time, blocks its runtime or drops it does not disturb
//! the server, and stopping the server closes every connection.

mod anthropic;
pub mod obedient;
mod openai;
mod reply;
mod request;
mod script;
mod serve;
mod state;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use request::{ReceivedRequest, WireShape};
pub use script::{ReplyGate, ReplyScript};
use state::ModelServerState;

/// Longer than any normal wait, shorter than a person would wait for a test run.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs until dropped.
pub struct ModelServer {
    address: SocketAddr,
    state: Arc<ModelServerState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Listens on a free loopback port. By default it answers `echo: <last user text>`.
    ///
    /// # Panics
    /// If no loopback port is available.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("a bound address");
        let state = Arc::new(ModelServerState::default());
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn({
            let state = Arc::clone(&state);
            move || run_server(listener, state, stopped)
        });
        Self { address, state, stop: Some(stop), thread: Some(thread) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns `http://127.0.0.1:port`, without a path.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the base URL of both wire formats: `http://127.0.0.1:port/v1`.
    pub fn url(&self) -> String {
        format!("{}/v1", self.root_url())
    }

    /// Queues a script for the next request without one. Scripts are used in order, once each.
    pub fn push(&self, script: ReplyScript) {
        self.state.push(script);
    }

    /// Answers every request for which no queued script is left.
    pub fn answer_with(&self, choose: impl Fn(&ReceivedRequest) -> ReplyScript + Send + Sync + 'static) {
        self.state.set_chooser(Arc::new(choose));
    }

    /// Sets the models that `/v1/models` and `/api/tags` list.
    pub fn set_models<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        self.state.set_models(names.into_iter().map(str::to_owned).collect());
    }

    /// Sets how many of the latest requests are retained. Defaults to 10,000.
    pub fn retain_requests(&self, count: usize) {
        self.state.retain_requests(count);
    }

    /// Returns the retained requests, oldest first.
    pub fn requests(&self) -> Vec<Arc<ReceivedRequest>> {
        self.state.requests()
    }

    /// # Panics
    /// If there was no request.
    pub fn last_request(&self) -> Arc<ReceivedRequest> {
        self.requests().pop().expect("at least one request")
    }

    pub fn request_count(&self) -> usize {
        *self.state.arrived.borrow()
    }

    /// Returns the number of responses whose client disconnected before their end.
    pub fn abandoned_count(&self) -> usize {
        *self.state.abandoned.borrow()
    }

    /// Returns the number of accepted connections: one if the client keeps it alive.
    pub fn connection_count(&self) -> usize {
        *self.state.connections.borrow()
    }

    /// # Panics
    /// If they do not arrive within 60 seconds.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Arc<ReceivedRequest>> {
        let mut arrived = self.state.arrived.subscribe();
        let wait = tokio::time::timeout(WAIT_TIMEOUT, arrived.wait_for(|seen| *seen >= count));
        assert!(wait.await.is_ok(), "expected {count} requests, saw {}", self.request_count());
        self.requests()
    }

    /// # Panics
    /// If fewer clients disconnect within 60 seconds.
    pub async fn wait_for_abandoned(&self, count: usize) {
        let mut abandoned = self.state.abandoned.subscribe();
        let wait = tokio::time::timeout(WAIT_TIMEOUT, abandoned.wait_for(|seen| *seen >= count));
        assert!(wait.await.is_ok(), "expected {count} abandoned answers, saw {}", self.abandoned_count());
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server thread has been printed already; a second one here would hide the test's.
            let _ = thread.join();
        }
    }
}

/// Runs the server. Dropping the runtime at the end drops its tasks and so closes open connections, even hanging
/// ones.
fn run_server(listener: std::net::TcpListener, state: Arc<ModelServerState>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = TcpListener::from_std(listener).expect("a listener of this runtime");
        tokio::select! {
            () = serve::serve_models(listener, state) => {}
            _ = stopped => {}
        }
    });
}

#[cfg(test)]
mod tests;
