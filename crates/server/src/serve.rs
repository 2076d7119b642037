//! The accept loop: no delay on small writes, no patience for slow headers, a clean end.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A client that has not sent its headers by then is let go.
const HEADER_LIMIT: Duration = Duration::from_secs(10);
const MAX_HEADERS: usize = 64 * 1024;
/// Calls that wait for an answer may end in peace for this long.
const GRACE: Duration = Duration::from_secs(30);

/// Tells streams, which never end by themselves, that the server goes down.
#[derive(Clone)]
pub struct Closing(watch::Receiver<bool>);

impl Closing {
    /// Returns when the server goes down.
    pub async fn wait(&mut self) {
        // An error means that the server is gone altogether.
        let _ = self.0.wait_for(|closing| *closing).await;
    }
}

/// Serves until `shutdown` is ready, then lets open calls end.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let (close, closing) = watch::channel(false);
    let router = router.layer(Extension(Closing(closing)));
    let connections = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => open(stream, &router, &connections),
                Err(error) => pause(&error).await,
            },
            () = &mut shutdown => break,
        }
    }
    drop(listener);
    let _ = close.send(true);
    if tokio::time::timeout(GRACE, connections.shutdown()).await.is_err() {
        tracing::warn!("some connections did not end in time and are cut");
    }
    Ok(())
}

fn open(stream: TcpStream, router: &Router, connections: &GracefulShutdown) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection ended at once");
    }
    let service = TowerToHyperService::new(router.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_LIMIT)
        .max_buf_size(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let watched = connections.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = watched.await {
            tracing::debug!(%error, "a connection broke");
        }
    });
}

/// Out of descriptors, for example: those in use come back, so the listener waits and goes on.
async fn pause(error: &std::io::Error) {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::error!(%error, "no connection can be accepted");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
