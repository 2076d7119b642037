//! The server of every scripted platform. It uses hyper directly, because only there can a request end without any
//! response. It runs on its own thread and runtime, and stopping it closes every connection.

use std::future::Future;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// The connection is closed without a response.
#[derive(Debug)]
pub(super) struct ConnectionCut;

impl std::fmt::Display for ConnectionCut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut by the script")
    }
}

impl std::error::Error for ConnectionCut {}

/// Listens until dropped.
pub(super) struct EmulatorServer {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EmulatorServer {
    /// Answers requests on a free loopback port.
    ///
    /// # Panics
    /// If no loopback port is available.
    pub fn start<A, R>(answer: A) -> Self
    where
        A: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
        R: Future<Output = Result<Response<Body>, ConnectionCut>> + Send + 'static,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("a bound address");
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || run_server(listener, answer, stopped));
        Self { address, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for EmulatorServer {
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
fn run_server<A, R>(listener: std::net::TcpListener, answer: A, stopped: oneshot::Receiver<()>)
where
    A: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Result<Response<Body>, ConnectionCut>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = TcpListener::from_std(listener).expect("a listener of this runtime");
        let mut connections = JoinSet::new();
        let accept = async {
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(serve_connection(socket, answer.clone()));
                while connections.try_join_next().is_some() {}
            }
        };
        tokio::select! {
            () = accept => {}
            _ = stopped => {}
        }
    });
}

async fn serve_connection<A, R>(socket: TcpStream, answer: A)
where
    A: Fn(Request<Incoming>) -> R + Send + 'static,
    R: Future<Output = Result<Response<Body>, ConnectionCut>> + Send + 'static,
{
    // Sends small frames immediately: buffering would look like a slow platform.
    let _ = socket.set_nodelay(true);
    let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service_fn(answer));
    let _ = connection.with_upgrades().await;
}
