//! The accept loop: no delay on small writes, no patience for slow headers, a clean end.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A client that has not sent its headers by then is let go.
const HEADER_LIMIT: Duration = Duration::from_secs(10);
const MAX_HEADERS: usize = 64 * 1024;
/// Calls that wait for an answer may end in peace for this long.
const GRACE: Duration = Duration::from_secs(30);
/// How often the log says that nothing can be accepted.
const SAY_AGAIN: Duration = Duration::from_secs(10);

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
    let closing = Closing(closing);
    let router = router.layer(Extension(closing.clone()));
    let mut shutdown = pin!(shutdown);
    let mut trouble = Trouble::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(tokio::spawn(talk(stream, router.clone(), closing.clone()))),
                Err(error) => trouble.pause(&error).await,
            },
            () = &mut shutdown => break,
        }
    }
    drop((listener, router, closing));
    let _ = close.send(true);
    // Every connection and stream holds the other end until it is done.
    if tokio::time::timeout(GRACE, close.closed()).await.is_err() {
        tracing::warn!("some connections did not end in time and are cut");
    }
    Ok(())
}

async fn talk(stream: TcpStream, router: Router, mut closing: Closing) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection ended at once");
    }
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_LIMIT)
        .max_buf_size(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closing.wait() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Out of descriptors, for example: those in use come back, so the listener waits and goes on.
#[derive(Default)]
struct Trouble {
    said: Option<Instant>,
}

impl Trouble {
    async fn pause(&mut self, error: &std::io::Error) {
        use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            return;
        }
        // Each try fails alike; a line for each would fill the disk next.
        if self.said.is_none_or(|at| at.elapsed() > SAY_AGAIN) {
            self.said = Some(Instant::now());
            tracing::error!(%error, "no connection can be accepted");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
