//! The accept loop: no delay for small writes, a time limit for headers, and a graceful shutdown.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::idle_timeout::IdleTimeout;

/// A client that has not sent its headers within this time is disconnected.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HEADER_BYTES: usize = 64 * 1024;
/// How long open calls may take to end at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);
/// A client that does not read for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Concurrent connections. More wait to be accepted; unauthenticated ones are short-lived.
const MAX_CONNECTIONS: usize = 8192;
/// How often accept errors are logged.
const ACCEPT_ERROR_LOG_INTERVAL: Duration = Duration::from_secs(10);

type AcceptedConnection = std::io::Result<(TcpStream, SocketAddr)>;

/// Tells streams, which never end on their own, that the server shuts down.
#[derive(Clone)]
pub struct ShutdownSignal(watch::Receiver<bool>);

impl ShutdownSignal {
    /// Returns when the server shuts down.
    pub async fn wait_for_shutdown(&mut self) {
        // An error means that the server is already gone.
        let _ = self.0.wait_for(|closing| *closing).await;
    }
}

/// Serves until `shutdown` resolves, then lets open calls end.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let (close, closing) = watch::channel(false);
    let closing = ShutdownSignal(closing);
    let router = router.layer(Extension(closing.clone()));
    let mut shutdown = pin!(shutdown);
    let mut trouble = AcceptErrorLog::default();
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        tokio::select! {
            (accepted, place) = accept_connection(&listener, &room) => match accepted {
                Ok((stream, _)) => {
                    let talk = serve_connection(stream, router.clone(), closing.clone());
                    tokio::spawn(async move {
                        talk.await;
                        drop(place);
                    });
                }
                Err(error) => trouble.log_and_pause(&error).await,
            },
            () = &mut shutdown => break,
        }
    }
    drop((listener, router, closing));
    let _ = close.send(true);
    // Every connection and stream holds a receiver until it ends.
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, close.closed()).await.is_err() {
        tracing::warn!("some connections did not end in time; closing them");
    }
    Ok(())
}

/// Accepts the next connection once there is a free slot.
async fn accept_connection(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (AcceptedConnection, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed, so a slot becomes free eventually.
    let place = Arc::clone(room).acquire_owned().await.ok();
    (listener.accept().await, place)
}

async fn serve_connection(stream: TcpStream, router: Router, mut closing: ShutdownSignal) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "connection ended immediately");
    }
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(
            TokioIo::new(IdleTimeout::new(stream, WRITE_TIMEOUT)),
            TowerToHyperService::new(router),
        )
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closing.wait_for_shutdown() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection broke");
    }
}

/// Handles accept errors, such as too many open files. Descriptors become free again, so the listener waits and
/// retries.
#[derive(Default)]
struct AcceptErrorLog {
    last_logged: Option<Instant>,
}

impl AcceptErrorLog {
    async fn log_and_pause(&mut self, error: &std::io::Error) {
        use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            return;
        }
        // Retries fail alike, and a line for each would fill the disk.
        if self.last_logged.is_none_or(|at| at.elapsed() > ACCEPT_ERROR_LOG_INTERVAL) {
            self.last_logged = Some(Instant::now());
            tracing::error!(%error, "cannot accept connections; retrying");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
