//! What all platforms on the wire are made of: a server that can cut a connection instead of answering, a script of
//! what happens to the next messages, and the board that people read. The server stands on hyper itself: only there
//! can a request end with no answer at all.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::Body;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::{Outcome, reached};

/// Runs on a thread and a runtime of its own until it is dropped, and takes every connection with it.
pub(super) struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A response that is never written: the connection is closed instead.
#[derive(Clone, Copy, Debug)]
struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut by the script")
    }
}

impl std::error::Error for Cut {}

impl Server {
    /// Listens on a free loopback port. `router` is told where that is.
    ///
    /// # Panics
    /// When no loopback port can be had: no test can go on without one.
    pub fn start(router: impl FnOnce(SocketAddr) -> Router) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("a bound address");
        let router = router(address);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || run(listener, router, stopped));
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server thread has been printed already; a second one here would hide the test's.
            let _ = thread.join();
        }
    }
}

/// Dropping the runtime at the end drops its tasks: open connections close, hanging answers included.
fn run(listener: std::net::TcpListener, router: Router, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = TcpListener::from_std(listener).expect("a listener of this runtime");
        tokio::select! {
            () = serve(listener, router) => {}
            _ = stopped => {}
        }
    });
}

async fn serve(listener: TcpListener, router: Router) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        connections.spawn(converse(socket, router.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(socket: TcpStream, router: Router) {
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        let answer = inner.call(request);
        async move {
            let Ok(response) = answer.await;
            if response.extensions().get::<Cut>().is_some() { Err(Cut) } else { Ok(response) }
        }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).with_upgrades().await;
}

pub(super) fn json(body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    response
}

pub(super) fn status(code: u16, body: &Value) -> Response<Body> {
    let mut response = json(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // A redirect must lead somewhere for a test to see that nobody follows it.
    if response.status().is_redirection() {
        response.headers_mut().insert("location", HeaderValue::from_static("/replies"));
    }
    response
}

/// What happens to messages: those that were pushed, in order, and then always the same.
pub(super) struct Script(Mutex<(VecDeque<Outcome>, Outcome)>);

impl Default for Script {
    fn default() -> Self {
        Self(Mutex::new((VecDeque::new(), Outcome::Shown)))
    }
}

impl Script {
    pub fn push(&self, outcome: Outcome) {
        lock(&self.0).0.push_back(outcome);
    }

    /// Does with one message what is next: `show` shows it and answers that it is shown.
    pub async fn play(&self, show: impl FnOnce() -> Response<Body>) -> Response<Body> {
        let outcome = {
            let mut script = lock(&self.0);
            script.0.pop_front().unwrap_or(script.1)
        };
        let shown = outcome.shows().then(show);
        perform(outcome, shown.unwrap_or_default()).await
    }
}

/// Answers as an outcome says; `accepted` where it says that all is well.
pub(super) async fn perform(outcome: Outcome, accepted: Response<Body>) -> Response<Body> {
    let failed = |code| status(code, &serde_json::json!({ "ok": false, "error": "scripted" }));
    match outcome {
        Outcome::Shown => accepted,
        Outcome::ShownThenStatus(code) | Outcome::Status(code) => failed(code),
        Outcome::Later { status: code, seconds } => {
            let mut response = failed(code);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
            response
        }
        Outcome::ShownThenCut | Outcome::Cut => {
            let mut response = Response::default();
            response.extensions_mut().insert(Cut);
            response
        }
        Outcome::ShownThenHang => std::future::pending().await,
    }
}

/// A message as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The account that said it.
    pub account: String,
    pub peer: String,
    pub thread: Option<String>,
    pub text: String,
    /// The platform's id of it.
    pub id: String,
}

/// Everything that people see, in order.
pub(super) struct Board {
    said: Mutex<Vec<Said>>,
    count: watch::Sender<usize>,
}

impl Default for Board {
    fn default() -> Self {
        Self { said: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl Board {
    pub fn show(&self, said: Said) {
        lock(&self.said).push(said);
        self.count.send_modify(|count| *count += 1);
    }

    /// Whether there was a message of this id to put the text into.
    pub fn edit(&self, id: &str, text: &str) -> bool {
        let mut said = lock(&self.said);
        let found = said.iter_mut().find(|said| said.id == id);
        found.map(|said| text.clone_into(&mut said.text)).is_some()
    }

    pub fn said(&self) -> Vec<Said> {
        lock(&self.said).clone()
    }

    /// Wipes it, and says what was on it.
    pub fn wipe(&self) -> Vec<Said> {
        std::mem::take(&mut *lock(&self.said))
    }

    /// Waits until people see this many messages, and panics when they do not.
    pub async fn wait_for(&self, count: usize) -> Vec<Said> {
        assert_reached(&self.count, count, "messages").await;
        self.said()
    }
}

/// Waits until a counter is there, and panics when it does not come.
pub(super) async fn assert_reached(counter: &watch::Sender<usize>, count: usize, of: &str) {
    assert!(reached(counter, count).await, "expected {count} {of}, there are {}", *counter.borrow());
}

/// A test that panics while it holds a lock has failed already; the rest should still run.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
